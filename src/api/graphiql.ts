/**
 * GraphiQL, for development: from its npm packages, so that the page works without internet and sends nothing anywhere.
 * They are optional dependencies; an installation without them, as an image is, does not serve the page.
 */
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { GRAPHIQL_HTML, GRAPHIQL_SCRIPT, GRAPHIQL_STYLE } from './graphiql-page';

interface Asset {
  readonly contentType: string;
  readonly read: () => Promise<string | Buffer>;
}

/** By path. */
export type Graphiql = ReadonlyMap<string, Asset>;

const FOLDER = '/graphiql/';
/** Paths that are the page for who asks for HTML. */
const PAGE_PATHS = ['/', '/graphql'];
const JAVASCRIPT = 'text/javascript; charset=utf-8';
const CSS = 'text/css; charset=utf-8';

/**
 * Everything comes from here and goes here; a page of another site cannot frame it. Styles may be inline: the editor
 * places its cursor and its menus by them.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  'font-src data:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** null: not installed. */
export function findGraphiql(): Graphiql | null {
  const files = packageFiles();
  if (files === null) return null;
  const assets = new Map<string, Asset>();
  const text = (name: string, contentType: string, content: string) =>
    assets.set(FOLDER + name, { contentType, read: () => Promise.resolve(content) });
  text('page.js', JAVASCRIPT, GRAPHIQL_SCRIPT);
  text('page.css', CSS, GRAPHIQL_STYLE);
  for (const [name, file] of files) {
    const contentType = name.endsWith('.css') ? CSS : JAVASCRIPT;
    assets.set(FOLDER + name, { contentType, read: () => readFile(file) });
  }
  const page = { contentType: 'text/html; charset=utf-8', read: () => Promise.resolve(GRAPHIQL_HTML) };
  for (const path of PAGE_PATHS) assets.set(path, page);
  return assets;
}

/** Names below the folder, and where the files are; null where one is missing. */
function packageFiles(): Map<string, string> | null {
  const found = new Map<string, string>();
  const wanted: readonly [manifest: string, ...files: string[]][] = [
    ['graphiql/package.json', 'graphiql.min.js', 'graphiql.min.css'],
    ['react/package.json', 'umd/react.production.min.js'],
    ['react-dom/package.json', 'umd/react-dom.production.min.js'],
  ];
  try {
    for (const [manifest, ...files] of wanted) {
      for (const file of files) found.set(file, join(dirname(require.resolve(manifest)), file));
    }
    // A module and what it shares with others, whose name changes with every version.
    const folder = dirname(require.resolve('graphql-ws/client'));
    for (const name of readdirSync(folder).filter((file) => /^(?:client|common-[\w-]+)\.js$/.test(file))) {
      found.set(`graphql-ws/${name}`, join(folder, name));
    }
  } catch {
    return null;
  }
  return [...found.values()].every((file) => existsSync(file)) ? found : null;
}

/** Whether it is for GraphiQL: a file of its folder, or its page, asked for by a browser that was sent here. */
export function isPageRequest(path: string, request: IncomingMessage): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  if (path.startsWith(FOLDER)) return true;
  const asksForPage = /(?:^|[\s,])text\/html(?:[\s,;]|$)/i.test(request.headers.accept ?? '');
  return PAGE_PATHS.includes(path) && asksForPage && !hasQuery(request);
}

function hasQuery({ url = '' }: IncomingMessage): boolean {
  return new URLSearchParams(url.split('?')[1]).has('query');
}

export async function sendGraphiql(
  graphiql: Graphiql,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asset = graphiql.get(path);
  if (asset === undefined) {
    response.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end('there is nothing here\n');
    return;
  }
  const content = await asset.read();
  response.writeHead(200, {
    'content-type': asset.contentType,
    'content-security-policy': CONTENT_SECURITY_POLICY,
    'referrer-policy': 'no-referrer',
    // An upgrade changes what is behind the same names.
    'cache-control': 'no-cache',
    vary: 'accept',
  });
  response.end(request.method === 'HEAD' ? undefined : content);
}
