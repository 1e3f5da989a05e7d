import type { SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import type { Pool } from 'pg';
import { PrismaClient } from '../generated/prisma/client';
import { DEFAULT_STATEMENT_TIMEOUT_MS, openPool } from './postgres-adapter';
import type { PostgresOptions } from './postgres-adapter';
import { StorageError, toStorageError } from './storage-error';

/**
 * An open store.
 *
 * `embedded` has one connection. Transactions and queries run one after another, and a query on `prisma` that is
 * awaited inside an interactive transaction waits for that transaction to end, i.e. for ever: inside one, use `tx`
 * alone. Code that keeps to this runs on both kinds.
 */
export interface Database {
  readonly kind: 'postgres' | 'embedded';
  /** `bigint` is read as BigInt and `numeric` as Decimal, exactly; a timestamp as Date, i.e. cut to milliseconds. */
  readonly prisma: PrismaClient;
  /** What `prisma` runs on; migrations use it too. */
  readonly adapterFactory: SqlMigrationAwareDriverAdapterFactory;
  /** Waits for queries under way, then closes every connection. Calling it again does nothing. */
  close(): Promise<void>;
}

/** Owned by this process alone, see embedded/database.ts. */
export interface EmbeddedDatabase extends Database {
  readonly kind: 'embedded';
}

/** The oldest server that is supported (design section 9). */
const MIN_SERVER_VERSION = 14;

/**
 * Opens Postgres and checks that it answers.
 *
 * @throws StorageError BAD_URL, UNREACHABLE, TLS_FAILED, AUTHENTICATION_FAILED, NO_SUCH_DATABASE, SERVER_TOO_OLD,
 *   WRONG_ENCODING
 */
export async function openDatabase(options: PostgresOptions): Promise<Database> {
  const { pool, factory, place } = openPool(options);
  try {
    await requireServer(pool, place);
  } catch (error) {
    await pool.end();
    throw toStorageError(error, `cannot use the database ${place}`);
  }
  const limitMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS;
  const prisma = createPrisma(factory, limitMs || DEFAULT_STATEMENT_TIMEOUT_MS);
  const close = once(async () => {
    await prisma.$disconnect();
    await pool.end();
  });
  return { kind: 'postgres', prisma, adapterFactory: factory, close };
}

/**
 * Prisma logs nothing, and its errors do not quote the call, which would show parameters.
 *
 * @param transactionTimeoutMs default for waiting for a transaction and for its length, which callers may override.
 */
export function createPrisma(
  adapter: SqlMigrationAwareDriverAdapterFactory,
  transactionTimeoutMs: number,
): PrismaClient {
  return new PrismaClient({
    adapter,
    log: [],
    errorFormat: 'minimal',
    transactionOptions: { maxWait: transactionTimeoutMs, timeout: transactionTimeoutMs },
  });
}

/** Connects, and checks the server. @throws what the driver throws; StorageError SERVER_TOO_OLD, WRONG_ENCODING */
export async function requireServer(pool: Pool, place: string): Promise<void> {
  const answer = await pool.query<{ version: number; encoding: string }>(
    `SELECT current_setting('server_version_num')::integer AS version, current_setting('server_encoding') AS encoding`,
  );
  const [{ version, encoding } = { version: 0, encoding: '' }] = answer.rows;
  requireSupported(version, place);
  requireUtf8(encoding, place);
}

/**
 * Messages are Unicode. Another encoding refuses some of them for ever (LATIN1), or takes their bytes for characters of
 * its own (SQL_ASCII), so that lengths, comparisons and JSON are of another text than the one that was hashed.
 */
function requireUtf8(encoding: string, place: string): void {
  if (encoding === 'UTF8') return;
  throw new StorageError(
    'WRONG_ENCODING',
    `the database ${place} is encoded in ${encoding}; UTF8 is needed: ` +
      "create it with ENCODING 'UTF8' TEMPLATE template0",
  );
}

/** @param version as in `server_version_num`, e.g. 150004. @throws StorageError SERVER_TOO_OLD */
export function requireSupported(version: number, place: string): void {
  const major = Math.floor(version / 10_000);
  if (major >= MIN_SERVER_VERSION) return;
  throw new StorageError(
    'SERVER_TOO_OLD',
    `the database ${place} is PostgreSQL ${major}; ${MIN_SERVER_VERSION} or newer is needed`,
  );
}

export function once(action: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => (running ??= action());
}
