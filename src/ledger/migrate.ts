/**
 * Brings a database to what this program needs (design section 9; issue text "Storage").
 *
 * The check comes first and needs no more than reading, so that a service role can start on a current database. Only
 * what is pending takes the lock and the rights of an owner.
 *
 * The lock is the advisory lock of `prisma migrate` (72707369), so that the two also wait for each other. It belongs to
 * a session, which is why a migration has one connection of its own and never a pool: instances that start at once wait
 * for the first, and then find nothing to do. Embedded, the folder lock has seen to it that we are alone.
 *
 * A script runs in one transaction, together with the mark that it is finished: it is there as a whole, or not at all.
 * So scripts must not contain transaction control, nor statements that refuse to run in a transaction.
 */
import type { SqlDriverAdapter, SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import { requireServer } from './client';
import type { Database, EmbeddedDatabase } from './client';
import { readMigrationFolder } from './migration-folder';
import type { Migration, MigrationFolder } from './migration-folder';
import {
  MARK_FINISHED,
  markRolledBack,
  pendingOf,
  readHistory,
  unfinishedError,
  unfinishedOf,
} from './migration-history';
import { openPool } from './postgres-adapter';
import { applyMigrations } from './schema-engine';
import { sqlState } from './sql-error';
import { StorageError, toStorageError } from './storage-error';

export interface MigrateOptions {
  /** Folder of `<name>/migration.sql`. */
  readonly migrationsDir: string;
  /** How long to wait for another process that is migrating. Default 300000. */
  readonly lockTimeoutMs?: number;
}

export interface MigrationResult {
  /** Names of the migrations that this call applied, in order. */
  readonly applied: readonly string[];
}

/** Fixed in Prisma's schema engine. */
const PRISMA_MIGRATE_LOCK = 72707369;
const DEFAULT_LOCK_TIMEOUT_MS = 300_000;
const LOCK_NOT_AVAILABLE = '55P03';
const INSUFFICIENT_PRIVILEGE = '42501';
/** The engine's code for "the database schema is not empty". */
const NOT_EMPTY = 'P3005';

/**
 * Names of the migrations that `migrate` would apply, or that another process is applying. Only reads.
 *
 * @throws DatabaseNewerError
 * @throws StorageError MIGRATION_EDITED, and whatever the connection comes to
 */
export async function pendingMigrations(database: Database, options: MigrateOptions): Promise<readonly string[]> {
  const folder = await readMigrationFolder(options.migrationsDir);
  const adapter = await database.adapterFactory.connect();
  try {
    return pendingOf(await readHistory(adapter), folder.migrations).map((migration) => migration.name);
  } catch (error) {
    throw toStorageError(error, 'cannot read the migrations of the database');
  } finally {
    await adapter.dispose();
  }
}

/**
 * Applies what is pending; safe to call from several processes at once.
 *
 * @param target URL of a Postgres, with a role that may change its tables if anything is pending; or an embedded
 * database.
 * @throws DatabaseNewerError
 * @throws StorageError
 */
export async function migrate(target: string | EmbeddedDatabase, options: MigrateOptions): Promise<MigrationResult> {
  const folder = await readMigrationFolder(options.migrationsDir);
  if (typeof target !== 'string') return migrateEmbedded(target, folder);

  const { pool, factory, place } = openPool(
    { url: target, poolSize: 1, applicationName: 'replay-ledger migrate', statementTimeoutMs: 0 },
    'session',
  );
  try {
    await requireServer(pool, place);
    const adapter = await factory.connect();
    if ((await pendingIn(adapter, folder)).length === 0) return { applied: [] };
    await lock(adapter, options.lockTimeoutMs ?? DEFAULT_LOCK_TIMEOUT_MS);
    return await apply(adapter, folder);
  } catch (error) {
    throw toStorageError(error, `cannot migrate the database ${place}`);
  } finally {
    await pool.end(); // ends the session, and with it the lock
  }
}

async function migrateEmbedded(database: EmbeddedDatabase, folder: MigrationFolder): Promise<MigrationResult> {
  const adapter = await database.adapterFactory.connect();
  try {
    // Nobody else can have been here: an unfinished run is of this program, killed before the script's transaction
    // committed. A newcomer whose first start was cut short must not be left with a folder that never starts again.
    const unfinished = unfinishedOf(await readHistory(adapter));
    if (unfinished.length > 0)
      await markRolledBack(
        adapter,
        unfinished.map((run) => run.name),
      );
    return await apply(adapter, folder);
  } catch (error) {
    throw toStorageError(error, 'cannot migrate the embedded database');
  } finally {
    await adapter.dispose();
  }
}

async function lock(adapter: SqlDriverAdapter, timeoutMs: number): Promise<void> {
  try {
    await execute(adapter, `SET lock_timeout TO ${timeoutMs}`);
    await execute(adapter, `SELECT pg_advisory_lock(${PRISMA_MIGRATE_LOCK})`);
    await execute(adapter, 'SET lock_timeout TO 0');
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    throw new StorageError(
      'MIGRATION_LOCKED',
      `another process has been migrating the database for ${timeoutMs} ms, or hangs in it; ` +
        `it holds the advisory lock ${PRISMA_MIGRATE_LOCK} (see pg_locks)`,
      { cause: error },
    );
  }
}

async function pendingIn(adapter: SqlDriverAdapter, folder: MigrationFolder): Promise<readonly Migration[]> {
  return pendingOf(await readHistory(adapter), folder.migrations);
}

/** Under the lock. Checks again: another process may have migrated while this one waited for it. */
async function apply(adapter: SqlDriverAdapter, folder: MigrationFolder): Promise<MigrationResult> {
  const runs = await readHistory(adapter);
  const pending = pendingOf(runs, folder.migrations);
  if (pending.length === 0) return { applied: [] };
  const [unfinished] = unfinishedOf(runs);
  if (unfinished !== undefined) throw unfinishedError(unfinished);
  const watch = watchScripts(adapter, pending);
  try {
    return { applied: await applyMigrations(watch.factory, folder) };
  } catch (error) {
    throw await failure(adapter, watch, error);
  }
}

interface ScriptWatch {
  /** Gives the engine the one connection that holds the lock. */
  readonly factory: SqlMigrationAwareDriverAdapterFactory;
  /** The first error of the database: the engine reports it as text alone. */
  error: unknown;
  /** The migration whose script failed, if one did. */
  failed: string | null;
}

function watchScripts(adapter: SqlDriverAdapter, pending: readonly Migration[]): ScriptWatch {
  const nameOf = new Map(pending.map((migration) => [migration.script, migration.name]));
  const attempt = async <T>(action: Promise<T>, script: string | null): Promise<T> => {
    try {
      return await action;
    } catch (error) {
      watch.error ??= error;
      if (script !== null) watch.failed ??= nameOf.get(script) ?? null;
      throw error;
    }
  };
  const { provider, adapterName } = adapter;
  const watched: SqlDriverAdapter = {
    provider,
    adapterName,
    queryRaw: (query) => attempt(adapter.queryRaw(query), null),
    executeRaw: (query) => attempt(adapter.executeRaw(query), null),
    executeScript: (script) => {
      return attempt(adapter.executeScript(nameOf.has(script) ? `${script}${MARK_FINISHED}` : script), script);
    },
    startTransaction: (isolation) => attempt(adapter.startTransaction(isolation), null),
    getConnectionInfo: () => adapter.getConnectionInfo?.() ?? { supportsRelationJoins: true },
    dispose: () => Promise.resolve(),
  };
  const connect = (): Promise<SqlDriverAdapter> => Promise.resolve(watched);
  const watch: ScriptWatch = {
    factory: { provider, adapterName, connect, connectToShadowDb: connect },
    error: null,
    failed: null,
  };
  return watch;
}

async function failure(adapter: SqlDriverAdapter, watch: ScriptWatch, error: unknown): Promise<unknown> {
  const cause = watch.error ?? error;
  const state = sqlState(cause);
  if (state === INSUFFICIENT_PRIVILEGE) {
    if (watch.failed !== null) await markRolledBack(adapter, [watch.failed]);
    return new StorageError(
      'PRIVILEGE',
      `migrations are pending, and the role may not apply them (${messageOf(cause)}); ` +
        'name the owner of the tables in MIGRATE_DATABASE_URL',
      { cause },
    );
  }
  if (watch.failed !== null && state !== null) {
    // The server refused the script, so that its transaction left nothing: it may be tried again once mended.
    await markRolledBack(adapter, [watch.failed]);
    return new StorageError('MIGRATION_FAILED', `migration ${watch.failed} failed: ${messageOf(cause)}`, { cause });
  }
  if ((error as { code?: unknown }).code === NOT_EMPTY) {
    return new StorageError(
      'DATABASE_NOT_EMPTY',
      'the database has tables, and none of this program: name an empty database, or another schema by ?schema=',
      { cause: error },
    );
  }
  return cause;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function execute(adapter: SqlDriverAdapter, sql: string): Promise<void> {
  await adapter.executeRaw({ sql, args: [], argTypes: [] });
}
