import { join } from 'node:path';
import type { Config } from '../config';
import { openEmbeddedDatabase } from '../embedded/database';
import { openDatabase } from '../ledger/client';
import type { Database } from '../ledger/client';
import type { PostgresOptions } from '../ledger/postgres-adapter';
import { migrate } from '../ledger/migrate';
import type { Cleanup } from '../ops/cleanup';

export interface Storage {
  /** For deciding. */
  readonly main: Database;
  /** For queries: a pool of its own, so that neither burst starves the other, whose statements end soon. */
  readonly api: Database;
  /** For counting ledgers, one statement at a time, that may take longer than a query may. */
  readonly facts: Database;
}

/** Longer than any query of the API takes that uses its index; whoever asks for more is told QUERY_TIMEOUT. */
const API_STATEMENT_TIMEOUT_MS = 5_000;

/** Beside `dist/` and `src/` alike. */
export const MIGRATIONS_DIR = join(__dirname, '..', '..', 'prisma', 'migrations');

/** Opens the database, migrated. Embedded there is one for all. @throws StorageError */
export async function openStorage(config: Config, cleanup: Cleanup): Promise<Storage> {
  const { databaseUrl } = config;
  if (databaseUrl === null) {
    const database = await openEmbeddedDatabase({ dataDir: config.dataDir });
    cleanup.add('database', () => database.close());
    await migrate(database, { migrationsDir: MIGRATIONS_DIR });
    return { main: database, api: database, facts: database };
  }
  await migrate(config.migrateDatabaseUrl ?? databaseUrl, { migrationsDir: MIGRATIONS_DIR });
  const open = async (what: string, options: Omit<PostgresOptions, 'url'>): Promise<Database> => {
    const database = await openDatabase({ url: databaseUrl, ...options });
    cleanup.add(what, () => database.close());
    return database;
  };
  const poolSize = config.databasePoolSize;
  const main = await open('database', { poolSize, applicationName: 'replay-ledger' });
  const api = await open('database of the API', {
    poolSize,
    applicationName: 'replay-ledger api',
    statementTimeoutMs: API_STATEMENT_TIMEOUT_MS,
  });
  const facts = await open('database of the metrics', { poolSize: 1, applicationName: 'replay-ledger metrics' });
  return { main, api, facts };
}
