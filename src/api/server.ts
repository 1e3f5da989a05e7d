/** The API on one port: GraphQL over HTTP and WebSocket at /graphql, and what tells whether the service is alive. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Database } from '../ledger/client';
import type { WakeUps } from '../live/port';
import { createApollo } from './apollo';
import type { ApiServices } from './context';
import { sendError, serveGraphql } from './http';
import type { GraphqlRoute } from './http';
import { DEFAULT_LIMITS } from './limits';
import type { ApiLimits } from './limits';
import { Gate } from './live/gate';
import { HeadWatcher } from './live/heads';
import type { ApiLog } from './log';
import { ContractTexts } from './read/contracts';
import { buildApiSchema } from './schema';
import { LOCAL_VIEWER } from './viewer';
import { createWebSockets } from './websocket';
import type { WebSockets } from './websocket';

export interface Readiness {
  readonly ready: boolean;
  readonly details: Record<string, unknown>;
}

export interface ApiOptions {
  /** The one address to listen on. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Its statement timeout is the API's. */
  readonly database: Database;
  readonly wakeUps: WakeUps;
  /** Asked for every `/readyz`; a rejection means not ready. */
  readonly readiness: () => Promise<Readiness>;
  /** Introspection and suggestions are on in development alone. */
  readonly development: boolean;
  readonly log: ApiLog;
  readonly limits?: Partial<ApiLimits>;
}

export interface ApiStats {
  readonly sockets: number;
  /** Subscriptions that run. */
  readonly subscriptions: number;
  /** Those of them that wait for something new. */
  readonly waiting: number;
}

export interface Api {
  /** Of GraphQL, e.g. `http://127.0.0.1:4000/graphql`. */
  readonly url: string;
  readonly port: number;
  stats(): ApiStats;
  /** Takes nothing new, ends subscriptions, lets requests under way finish. Calling it again waits for the same end. */
  close(): Promise<void>;
}

const GRAPHQL_PATH = '/graphql';
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How long requests under way may take once the service ends. */
const DRAIN_MS = 5_000;

/** @throws the error of listening, e.g. with code EADDRINUSE */
export async function startApi(options: ApiOptions): Promise<Api> {
  const { host, database, log, development } = options;
  const { prisma } = database;
  const limits: ApiLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const rules = { schema: buildApiSchema(), limits, development };
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS });
  const services: ApiServices = {
    prisma,
    limits,
    log,
    contracts: new ContractTexts(),
    heads: new HeadWatcher(prisma, options.wakeUps, limits.pollMs, log),
    streamReads: new Gate(limits.maxStreamReads),
  };
  const apollo = createApollo(rules, log);
  await apollo.start();
  const webSockets = createWebSockets({ services, rules, host, viewerOf: () => LOCAL_VIEWER });
  const routes: Routes = { graphql: { apollo, services, host }, readiness: options.readiness, log };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => void serve(routes, request, response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    upgrade(webSockets, request, socket, head),
  );
  try {
    await listen(server, options.port, host);
  } catch (error) {
    services.heads.close();
    await apollo.stop();
    throw error;
  }
  server.on('error', (error) => log.error({ err: error }, 'the server has a problem'));

  const { port } = server.address() as AddressInfo;
  let closing: Promise<void> | null = null;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}${GRAPHQL_PATH}`,
    port,
    stats: () => ({
      sockets: webSockets.sockets,
      subscriptions: webSockets.operations,
      waiting: services.heads.waiting,
    }),
    close: () =>
      (closing ??= (async () => {
        const stopped = stopListening(server);
        await webSockets.close();
        services.heads.close();
        await stopped;
        await apollo.stop();
      })()),
  };
}

interface Routes {
  readonly graphql: GraphqlRoute;
  readonly readiness: () => Promise<Readiness>;
  readonly log: ApiLog;
}

async function serve(
  { graphql, readiness, log }: Routes,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const correlationId = randomUUID();
  response.setHeader('x-content-type-options', 'nosniff');
  switch (pathOf(request)) {
    case GRAPHQL_PATH:
      return serveGraphql(graphql, request, response, { viewer: LOCAL_VIEWER, correlationId });
    case '/healthz':
      return sendJson(request, response, 200, { alive: true });
    case '/readyz': {
      const state = await readiness().catch((error: unknown): Readiness => {
        log.warn({ err: error, correlationId }, 'cannot tell whether the service is ready');
        return { ready: false, details: {} };
      });
      return sendJson(request, response, state.ready ? 200 : 503, { ready: state.ready, ...state.details });
    }
    default:
      return sendError(response, 404, { code: 'NOT_FOUND', message: 'there is nothing here', correlationId });
  }
}

function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(request.method === 'HEAD' ? undefined : `${JSON.stringify(body)}\n`);
}

function upgrade(webSockets: WebSockets, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (pathOf(request) === GRAPHQL_PATH) webSockets.upgrade(request, socket, head);
  else socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?')[0] ?? '';
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function stopListening(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const late = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(late);
}
