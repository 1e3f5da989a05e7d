/** GraphQL over HTTP: what is refused before GraphQL sees it, and how the answer goes out. Refusals are thrown. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApolloServer } from '@apollo/server';
import { HeaderMap } from '@apollo/server';
import { Kind, parse } from 'graphql';
import { Refusal } from '../ops/bearer';
import type { Access } from './access';
import { currentCorrelationId } from './apollo';
import { createContext } from './context';
import type { ApiContext, ApiServices } from './context';
import { judgeOrigin } from './origin';
import { RefusedRequest, refusedToken } from './refused';
import type { Viewer } from './viewer';

export interface GraphqlRoute {
  readonly apollo: ApolloServer<ApiContext>;
  readonly services: ApiServices;
  /** Address that the service is bound to. */
  readonly host: string;
  readonly access: Access;
}

/** These show that a script sent the request, which no page can make a browser do across origins without asking us. */
const PREFLIGHT_HEADERS = ['apollo-require-preflight', 'x-apollo-operation-name'];

/** Errors about the request itself, which GraphQL over HTTP answers with 200 in the older of its media types. */
const WELL_FORMED_FAILURES = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
  'BAD_USER_INPUT',
]);

/** @throws RefusedRequest */
export async function serveGraphql(
  { apollo, services, host, access }: GraphqlRoute,
  request: IncomingMessage,
  response: ServerResponse,
  correlationId: string,
): Promise<void> {
  const verdict = judgeOrigin(request, host);
  if (verdict !== 'allowed') throw new RefusedRequest(403, 'FORBIDDEN', 'requests of other sites are refused');
  // Before the body is read, so that who has no token can make us do nothing.
  await viewerOf(access, request);
  const search = searchOf(request);
  let body: unknown;
  if (request.method === 'GET') refuseUnsafeGet(request, search, services.limits.maxTokens);
  else if (request.method === 'POST') body = await readJsonBody(request, services.limits.maxBodyBytes);
  else throw new RefusedRequest(405, 'BAD_REQUEST', 'only GET and POST are served here', { allow: 'GET, POST' });
  // A body takes as long as its sender likes, and the token may have ended meanwhile.
  const viewer = await viewerOf(access, request);

  const result = await currentCorrelationId.run(correlationId, () =>
    apollo.executeHTTPGraphQLRequest({
      httpGraphQLRequest: { method: request.method ?? '', headers: headersOf(request), search, body },
      context: () => Promise.resolve(createContext(services, { viewer, correlationId })),
    }),
  );
  for (const [name, value] of result.headers) response.setHeader(name, value);
  // Incremental delivery is not offered, so there is one part.
  const text = result.body.kind === 'complete' ? result.body.string : '';
  response.statusCode = statusOf(result.status ?? 200, result.headers.get('content-type') ?? '', text);
  response.setHeader('cache-control', 'no-store');
  response.end(text);
}

async function viewerOf(access: Access, { headers: { authorization } }: IncomingMessage): Promise<Viewer> {
  const grant = await access.grant(authorization);
  if (grant instanceof Refusal) throw refusedToken(grant, 'a valid token is needed', authorization);
  return grant.viewer;
}

/** A link or an image of any page makes a browser send a GET, with what the user is logged in by. */
function refuseUnsafeGet(request: IncomingMessage, search: string, maxTokens: number): void {
  if (isMutation(new URLSearchParams(search).get('query') ?? '', maxTokens)) {
    throw new RefusedRequest(405, 'BAD_REQUEST', 'mutations are sent by POST', { allow: 'POST' });
  }
  const scripted =
    mediaTypeOf(request) === 'application/json' ||
    PREFLIGHT_HEADERS.some((name) => (request.headers[name] ?? '') !== '');
  if (!scripted) {
    throw new RefusedRequest(
      403,
      'FORBIDDEN',
      `a GET needs one of the headers ${PREFLIGHT_HEADERS.join(', ')}, not empty`,
    );
  }
}

/** Any operation of the document: which one is meant is for GraphQL to say. */
function isMutation(query: string, maxTokens: number): boolean {
  try {
    const { definitions } = parse(query, { maxTokens, noLocation: true });
    return definitions.some((node) => node.kind === Kind.OPERATION_DEFINITION && node.operation === 'mutation');
  } catch {
    // Apollo parses it again and says what is wrong with it.
    return false;
  }
}

async function readJsonBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  if (mediaTypeOf(request) !== 'application/json') {
    throw new RefusedRequest(415, 'BAD_REQUEST', 'the content type must be application/json', {
      accept: 'application/json',
    });
  }
  const charset = /;\s*charset\s*=\s*"?([^;"\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    throw new RefusedRequest(415, 'BAD_REQUEST', 'the charset must be utf-8');
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity')
    throw new RefusedRequest(415, 'BAD_REQUEST', 'compressed bodies are not accepted');
  const bytes = await readBody(request, maxBytes);
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RefusedRequest(400, 'BAD_REQUEST', 'the body is not JSON in UTF-8');
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new RefusedRequest(
      400,
      'BAD_REQUEST',
      'the body must be one object: several operations at once are not accepted',
    );
  }
  return body;
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  // The rest of a body that is too large is not read: the connection ends with the answer.
  const tooLarge = () =>
    new RefusedRequest(413, 'BAD_REQUEST', `the body must not exceed ${maxBytes} bytes`, { connection: 'close' });
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * In `application/json` a request that is well formed HTTP gets 200, whatever is wrong with its operation (GraphQL over
 * HTTP, section 6.4.1). What a limit refuses stays 400, so that it can be seen from outside.
 */
function statusOf(status: number, contentType: string, text: string): number {
  if (status !== 400 || !contentType.startsWith('application/json')) return status;
  const { errors } = JSON.parse(text) as { errors?: { extensions?: { code?: string } }[] };
  const isWellFormed = errors?.every(({ extensions }) => WELL_FORMED_FAILURES.has(extensions?.code ?? ''));
  return isWellFormed === true ? 200 : status;
}

function mediaTypeOf(request: IncomingMessage): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

function searchOf(request: IncomingMessage): string {
  const url = request.url ?? '';
  const at = url.indexOf('?');
  return at === -1 ? '' : url.slice(at);
}

function headersOf(request: IncomingMessage): HeaderMap {
  const headers = new HeaderMap();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}
