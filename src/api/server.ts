/** The API on one port: GraphQL over HTTP and WebSocket at /graphql, and what operators ask (routes.ts). */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Database } from '../ledger/client';
import type { WakeUps } from '../live/port';
import type { Tokens } from '../ops/bearer';
import { Access } from './access';
import { createApollo } from './apollo';
import type { ApiServices } from './context';
import { findGraphiql } from './graphiql';
import { DEFAULT_LIMITS } from './limits';
import type { ApiLimits } from './limits';
import { Gate } from './live/gate';
import { HeadWatcher } from './live/heads';
import type { ApiLog } from './log';
import { ContractTexts } from './read/contracts';
import { GRAPHQL_PATH, pathOf, serve } from './routes';
import type { Operations, Routes } from './routes';
import { buildApiSchema } from './schema';
import { createWebSockets } from './websocket';
import type { WebSockets } from './websocket';

export interface ApiOptions {
  /** The one address to listen on. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Its statement timeout is the API's. */
  readonly database: Database;
  readonly wakeUps: WakeUps;
  /** null: whoever reaches the address may read everything, so it must be a loopback one. */
  readonly tokens: Tokens | null;
  readonly operations: Operations;
  /** What is wrong with the contract file of a feed. Absent: files are not watched here. */
  readonly contractErrorOf?: (feed: string) => string | null;
  /** Introspection, suggestions and GraphiQL are on in development alone. */
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
    contractErrorOf: options.contractErrorOf ?? (() => null),
    heads: new HeadWatcher(prisma, options.wakeUps, limits.pollMs, log),
    streamReads: new Gate(limits.maxStreamReads),
  };
  const apollo = createApollo(rules, log);
  await apollo.start();
  const access = new Access(options.tokens);
  const webSockets = createWebSockets({ services, rules, host, access });
  const graphiql = development ? findGraphiql() : null;
  const routes: Routes = { graphql: { apollo, services, host, access }, operations: options.operations, graphiql, log };
  server.on('request', (request: IncomingMessage, response: ServerResponse) => void serve(routes, request, response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    upgrade(webSockets, request, socket, head),
  );
  try {
    await listen(server, options.port, host);
  } catch (error) {
    await webSockets.close();
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

function upgrade(webSockets: WebSockets, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (pathOf(request) === GRAPHQL_PATH) webSockets.upgrade(request, socket, head);
  else socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
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
