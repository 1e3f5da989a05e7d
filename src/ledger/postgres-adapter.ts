/**
 * The pool of connections to Postgres, and Prisma's driver adapter over it.
 *
 * Three things that the libraries leave open are closed here, each shown by a test:
 * - every session has the settings that the rest relies on, whatever the server's or the role's defaults are;
 * - a COMMIT that Postgres answers with ROLLBACK (the transaction was aborted, the error caught) is an error;
 * - a connection whose server has gone silent is given up, not put back into the pool.
 */
import { Pool } from 'pg';
import type { ClientBase, PoolConfig, QueryResult } from 'pg';
import { PrismaPg } from '@prisma/adapter-pg';
import { DriverAdapterError } from '@prisma/driver-adapter-utils';
import type { SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import { StorageError } from './storage-error';

export interface PostgresOptions {
  /** `postgres://` or `postgresql://`. A parameter `schema` names the schema to use, default `public`. */
  readonly url: string;
  /** Most connections at a time, at least 1. */
  readonly poolSize: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  /** How long connecting, and waiting for a free connection, may take. Default 5000. */
  readonly connectTimeoutMs?: number;
  /**
   * How long one statement may run, and a transaction may lie idle, before the server ends it. An instance that froze
   * while holding a feed's head would block the feed for ever otherwise. 0: no limit. Default 30000.
   */
  readonly statementTimeoutMs?: number;
  /** Told of connections that were lost while nobody used them; the pool replaces them. */
  readonly onConnectionLost?: (error: Error) => void;
}

export const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000;
const DEFAULT_CONNECT_TIMEOUT_MS = 5_000;
/** How much longer than the server's limit we wait: it comes first wherever the server is still there to keep it. */
const SILENCE_FACTOR = 1.5;
const MIN_SILENCE_MARGIN_MS = 1_000;

export interface PostgresPool {
  readonly pool: Pool;
  readonly factory: SqlMigrationAwareDriverAdapterFactory;
  /** For messages: `<database> at <host>:<port>`, without user and password. */
  readonly place: string;
}

/**
 * Opens no connection yet.
 *
 * @param use `session`: one connection for good, as session locks need it. Once it is lost, everything fails.
 * @throws StorageError BAD_URL
 */
export function openPool(options: PostgresOptions, use: 'pool' | 'session' = 'pool'): PostgresPool {
  const url = parseUrl(options.url);
  const schema = url.searchParams.get('schema') ?? 'public';
  const statementTimeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  const settings = sessionSettings(schema, statementTimeoutMs);
  let connections = 0;
  const onConnect = async (client: ClientBase): Promise<void> => {
    connections += 1;
    if (use === 'session' && connections > 1) throw new StorageError('UNREACHABLE', 'the connection was lost');
    guard(client);
    await client.query(settings);
  };
  const config: PoolConfig = {
    connectionString: options.url,
    max: use === 'session' ? 1 : options.poolSize,
    // 0 keeps an idle connection; the pool's default closes it after ten seconds.
    ...(use === 'session' ? { idleTimeoutMillis: 0 } : {}),
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
    query_timeout: statementTimeoutMs === 0 ? undefined : silenceTimeoutMs(statementTimeoutMs),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // pg-pool awaits what this returns before it hands the connection out; its typings do not say so.
    onConnect: (client) => onConnect(client) as unknown as void,
  };
  const pool = new Pool(config);
  const onConnectionLost = options.onConnectionLost ?? ignore;
  // Without a listener, an idle connection that the server closes would end the process.
  pool.on('error', onConnectionLost);
  const factory = new LedgerPrismaPg(pool, { schema, onConnectionError: onConnectionLost });
  return { pool, factory, place: describe(url) };
}

function silenceTimeoutMs(statementTimeoutMs: number): number {
  return Math.max(statementTimeoutMs * SILENCE_FACTOR, statementTimeoutMs + MIN_SILENCE_MARGIN_MS);
}

function ignore(): void {
  // The pool has thrown the connection away already, and opens another when one is needed.
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) {
    throw new StorageError('BAD_URL', 'the database URL must look like postgresql://user:password@host:5432/name');
  }
  return url;
}

function describe(url: URL): string {
  const host = url.searchParams.get('host') ?? (url.hostname || 'localhost');
  const port = url.searchParams.get('port') ?? (url.port || '5432');
  return `${decodeURIComponent(url.pathname.slice(1)) || 'the default database'} at ${host}:${port}`;
}

/**
 * One simple query, sent once per connection rather than as start-up parameters, which some proxies refuse.
 * - TimeZone, DateStyle: the adapter takes the offset of a timestamp for +00:00 without looking at it.
 * - isolation: after waiting for a locked row, a statement must see what its holder committed.
 * - synchronous_commit: an acknowledgement follows the commit, so that `off` would lose acknowledged messages. Stronger
 *   settings than `on`, and the choice of `local`, are the operator's.
 * - search_path: Prisma's queries name the schema, raw ones do not; both must mean the same tables.
 */
function sessionSettings(schema: string, statementTimeoutMs: number): string {
  return `
    SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO, YMD'; SET bytea_output TO 'hex'; SET standard_conforming_strings TO on;
    SET default_transaction_isolation TO 'read committed';
    SET search_path TO ${quoteIdentifier(schema)};
    SET statement_timeout TO ${statementTimeoutMs}; SET idle_in_transaction_session_timeout TO ${statementTimeoutMs};
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`;
}

function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

type Query = (...args: unknown[]) => unknown;

/** Looks at the answers that callers await; the pool's own callback form throws a failed connection away by itself. */
function guard(client: ClientBase): void {
  const query = client.query.bind(client) as Query;
  const guarded: Query = (...args) => {
    const answer = query(...args);
    if (!(answer instanceof Promise)) return answer;
    const checked = statementOf(args[0]) === 'COMMIT' ? answer.then(refuseRollback) : answer;
    return checked.catch((error: unknown) => giveUpSilent(client, error));
  };
  client.query = guarded as ClientBase['query'];
}

function statementOf(query: unknown): unknown {
  return typeof query === 'object' && query !== null && 'text' in query ? query.text : query;
}

/** Postgres answers COMMIT in an aborted transaction by `ROLLBACK`, as a success. Nothing was saved. */
function refuseRollback(result: unknown): unknown {
  if ((result as QueryResult).command === 'COMMIT') return result;
  const message = 'COMMIT rolled back: a statement of the transaction had failed';
  const fields = { code: '25P02', severity: 'ERROR', message };
  throw Object.assign(new Error(message), fields);
}

/**
 * After a read timeout the answer is still due, and the next user of the connection would wait behind it. `end()`
 * destroys a connection with a query in flight at once, and the pool drops a connection that is ending.
 */
function giveUpSilent(client: ClientBase, error: unknown): never {
  if (error instanceof Error && error.message === 'Query read timeout' && 'end' in client) {
    void (client as ClientBase & { end(): Promise<void> }).end().catch(ignore);
  }
  throw error;
}

/** Runs a script as one simple query, i.e. in one transaction: the library cuts it at each `;`, in function bodies too. */
class LedgerPrismaPg extends PrismaPg {
  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect();
    const pool = adapter.underlyingDriver();
    adapter.executeScript = async (script) => {
      const client = await pool.connect();
      try {
        await client.query(script);
      } catch (error) {
        throw scriptError(error);
      } finally {
        client.release();
      }
    };
    return adapter;
  }
}

/** The adapter's own conversion is not within reach; a script's error is only shown and classified. */
export function scriptError(error: unknown): unknown {
  const fields = error as { code?: unknown; severity?: unknown; message?: unknown; detail?: unknown; hint?: unknown };
  if (typeof fields.code !== 'string' || typeof fields.severity !== 'string') return error;
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  return new DriverAdapterError({
    kind: 'postgres',
    code: fields.code,
    severity: fields.severity,
    message: text(fields.message) ?? fields.code,
    detail: text(fields.detail),
    column: undefined,
    hint: text(fields.hint),
    originalCode: fields.code,
    originalMessage: text(fields.message),
  });
}
