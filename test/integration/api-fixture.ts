/** An API on a pipeline's database, and clients for it that know HTTP and graphql-transport-ws, and nothing of ours. */
import { createClient } from 'graphql-ws';
import type { Client } from 'graphql-ws';
import WebSocket from 'ws';
import { startApi } from '../../src/api/server';
import type { Api, ApiOptions } from '../../src/api/server';
import { openDatabase } from '../../src/ledger/client';
import type { Database } from '../../src/ledger/client';
import { createLocalWakeUps } from '../../src/live/local';
import { onCleanup } from '../support/cleanup';
import type { TestPipeline } from '../support/pipeline';
import { startPipeline } from '../support/pipeline';

/** Cutting a connection while it is being made is an error event, which nobody would hear. */
class QuietSocket extends WebSocket {
  constructor(...args: ConstructorParameters<typeof WebSocket>) {
    super(...args);
    this.on('error', () => undefined);
  }
}

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly facts: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export interface GraphqlError {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: { readonly code: string; readonly correlationId: string } & Record<string, unknown>;
}

/** Answers are JSON that tests look into. */
export type Data = Record<string, any>; // eslint-disable-line @typescript-eslint/no-explicit-any

export interface Answer {
  readonly status: number;
  readonly data?: Data | null;
  readonly errors?: readonly GraphqlError[];
}

export const OPERATIONS: ApiOptions['operations'] = {
  readiness: () => Promise.resolve({ ready: true, details: {} }),
  metrics: () => Promise.resolve({ contentType: 'text/plain; version=0.0.4', body: 'up 1\n' }),
  mayRead: () => Promise.resolve('granted'),
};

export interface TestApi {
  readonly api: Api;
  readonly log: readonly LogLine[];
  /** Raw statements that the API sent since the last call. */
  statements(): number;
  post(query: string, variables?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  /** As `post`, and fails on errors. */
  data(query: string, variables?: Record<string, unknown>): Promise<Data>;
  /** The codes of the errors. */
  codes(query: string, variables?: Record<string, unknown>): Promise<string[]>;
  /** @param token for `connection_init` */
  client(token?: string): Client;
}

export async function startTestApi(of: { readonly database: Database } & Partial<ApiOptions>): Promise<TestApi> {
  const log: LogLine[] = [];
  const note = (level: LogLine['level']) => (facts: object, message: string) => {
    log.push({ level, facts: facts as LogLine['facts'], message });
  };
  let sent = 0;
  const prisma = of.database.prisma.$extends({
    query: {
      $queryRaw: ({ args, query }) => {
        sent++;
        return query(args);
      },
    },
  }) as unknown as Database['prisma'];
  const api = await startApi({
    host: '127.0.0.1',
    port: 0,
    wakeUps: createLocalWakeUps(),
    tokens: null,
    operations: OPERATIONS,
    development: false,
    log: { info: note('info'), warn: note('warn'), error: note('error') },
    ...of,
    database: { ...of.database, prisma },
  });
  onCleanup(() => api.close());

  const post: TestApi['post'] = async (query, variables = {}, headers = {}) => {
    const response = await fetch(api.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query, variables }),
    });
    return { status: response.status, ...((await response.json()) as Omit<Answer, 'status'>) };
  };
  return {
    api,
    log,
    statements: () => {
      const count = sent;
      sent = 0;
      return count;
    },
    post,
    data: async (query, variables) => {
      const answer = await post(query, variables);
      if (answer.errors !== undefined || !answer.data) throw new Error(JSON.stringify(answer));
      return answer.data;
    },
    codes: async (query, variables) =>
      ((await post(query, variables)).errors ?? []).map((error) => error.extensions.code),
    client: (token) => {
      const client = createClient({
        connectionParams: token === undefined ? undefined : { authorization: `Bearer ${token}` },
        url: api.url.replace('http', 'ws'),
        webSocketImpl: QuietSocket,
        retryAttempts: 0,
        lazy: true,
      });
      onCleanup(() => client.dispose());
      return client;
    },
  };
}

/** A pipeline and an API on its database, which hears of its commits. */
export async function startBoth(
  contract?: string,
  options: Partial<ApiOptions> = {},
): Promise<{ readonly path: TestPipeline; readonly app: TestApi }> {
  const path = await startPipeline({ contract });
  const app = await startTestApi({ database: path.database, wakeUps: path.wakeUps, ...options });
  return { path, app };
}

/** A connection pool of its own on a database, as an API has it. */
export async function openOwn(url: string, statementTimeoutMs?: number): Promise<Database> {
  const database = await openDatabase({ url, poolSize: 4, applicationName: 'api test', statementTimeoutMs });
  onCleanup(() => database.close());
  return database;
}

export async function expectStillServing(app: TestApi): Promise<void> {
  expect((await app.data('{ feeds { name } }')).feeds).toEqual([{ name: 'cad-north' }]);
}

/** An operation over a WebSocket, by hand; answers the first message about it. */
export async function overSocket(
  app: TestApi,
  payload: object,
): Promise<{ type: string; payload: { errors?: unknown[] } & unknown[] }> {
  const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await new Promise((resolve) => socket.once('message', resolve));
  const answer = new Promise<string>((resolve) => socket.once('message', (data: Buffer) => resolve(data.toString())));
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
  const text = await answer;
  socket.terminate();
  return JSON.parse(text) as { type: string; payload: { errors?: unknown[] } & unknown[] };
}

/** A correlation id. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
