/** What the table `_prisma_migrations` says, and what follows from it. */
import { ColumnTypeEnum } from '@prisma/driver-adapter-utils';
import type { SqlQueryable } from '@prisma/driver-adapter-utils';
import { hasChecksum } from './migration-folder';
import type { Migration } from './migration-folder';
import { DatabaseNewerError, StorageError } from './storage-error';

/** One run of a migration. A failed one stays on record beside its repetition. */
export interface MigrationRun {
  readonly name: string;
  readonly checksum: string;
  readonly state: 'applied' | 'unfinished' | 'rolled-back';
  /** The error of a run that failed, where it could be recorded. */
  readonly logs: string | null;
}

const READ_RUNS = `
  SELECT migration_name, checksum,
    CASE WHEN rolled_back_at IS NOT NULL THEN 'rolled-back' WHEN finished_at IS NULL THEN 'unfinished' ELSE 'applied' END,
    logs
  FROM _prisma_migrations ORDER BY started_at, migration_name`;

/** Empty where the table does not exist: nothing was ever applied. */
export async function readHistory(database: SqlQueryable): Promise<readonly MigrationRun[]> {
  const [table] = await rowsOf(database, "SELECT to_regclass('_prisma_migrations') IS NOT NULL");
  if (table?.[0] !== true) return [];
  const rows = await rowsOf(database, READ_RUNS);
  return rows.map(([name, checksum, state, logs]) => ({
    name: String(name),
    checksum: String(checksum),
    state: state as MigrationRun['state'],
    logs: typeof logs === 'string' && logs !== '' ? logs : null,
  }));
}

/**
 * The migrations that are still to be applied, in order. One that is being applied by another process is among them.
 *
 * @throws DatabaseNewerError
 * @throws StorageError MIGRATION_EDITED
 */
export function pendingOf(runs: readonly MigrationRun[], migrations: readonly Migration[]): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]));
  const standing = runs.filter((run) => run.state !== 'rolled-back');
  const unknown = standing.filter((run) => !known.has(run.name)).map((run) => run.name);
  if (unknown.length > 0) throw new DatabaseNewerError(unknown);

  for (const run of standing) {
    const migration = known.get(run.name);
    if (migration !== undefined && !hasChecksum(migration, run.checksum)) throw editedError(run);
  }
  const applied = new Set(standing.filter((run) => run.state === 'applied').map((run) => run.name));
  return migrations.filter((migration) => !applied.has(migration.name));
}

/** Names of runs that were started and did not end. Under the lock nobody is working on them any more. */
export function unfinishedOf(runs: readonly MigrationRun[]): readonly MigrationRun[] {
  return runs.filter((run) => run.state === 'unfinished');
}

export function unfinishedError(run: MigrationRun): StorageError {
  const reason = run.logs === null ? 'it was interrupted' : (run.logs.split('\n')[0] ?? '');
  return new StorageError(
    'MIGRATION_FAILED',
    `migration ${run.name} was started earlier and did not finish (${reason}); look what it left behind, then set ` +
      'rolled_back_at (to repeat it) or finished_at (it is complete) of its row in the table _prisma_migrations',
  );
}

function editedError(run: MigrationRun): StorageError {
  return new StorageError(
    'MIGRATION_EDITED',
    `migration ${run.name} was applied to the database with another content than this program has under that name; ` +
      'run the program that made the database, or restore the file',
  );
}

/** For a migration that is known to have left nothing behind: it will be applied again, and its run stays on record. */
export async function markRolledBack(database: SqlQueryable, names: readonly string[]): Promise<void> {
  await database.executeRaw({
    sql: `UPDATE _prisma_migrations SET rolled_back_at = now()
      WHERE finished_at IS NULL AND rolled_back_at IS NULL AND migration_name = ANY ($1::text[])`,
    args: [names],
    argTypes: [{ scalarType: 'string', arity: 'list' }],
  });
}

/**
 * Appended to a script, so that it is recorded as finished by the very transaction that makes its changes: a process
 * that dies between a script and the engine's own mark would leave a complete migration behind that looks interrupted.
 * Only the run under way is unfinished, because nothing starts while another is.
 */
export const MARK_FINISHED = `
;
UPDATE _prisma_migrations SET finished_at = now() WHERE finished_at IS NULL AND rolled_back_at IS NULL;
`;

async function rowsOf(database: SqlQueryable, sql: string): Promise<unknown[][]> {
  const result = await database.queryRaw({ sql, args: [], argTypes: [] });
  const booleans = new Set(result.columnTypes.flatMap((type, i) => (type === ColumnTypeEnum.Boolean ? [i] : [])));
  // PGlite gives booleans, pg too unless a parser was set; `t` is Postgres's own text.
  return result.rows.map((row) => row.map((value, i) => (booleans.has(i) ? value === true || value === 't' : value)));
}
