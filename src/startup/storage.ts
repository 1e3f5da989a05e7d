import { join } from 'node:path';
import type { Config } from '../config';
import { openEmbeddedDatabase } from '../embedded/database';
import { openDatabase } from '../ledger/client';
import type { Database } from '../ledger/client';
import { migrate } from '../ledger/migrate';
import type { Cleanup } from '../ops/cleanup';

export interface Storage {
  /** For deciding. */
  readonly main: Database;
  /** For queries: a pool of its own, so that neither burst starves the other. Embedded there is one for both. */
  readonly api: Database;
}

/** Beside `dist/` and `src/` alike. */
export const MIGRATIONS_DIR = join(__dirname, '..', '..', 'prisma', 'migrations');

/** Opens the database, migrated. @throws StorageError */
export async function openStorage(config: Config, cleanup: Cleanup): Promise<Storage> {
  const { databaseUrl } = config;
  if (databaseUrl === null) {
    const database = await openEmbeddedDatabase({ dataDir: config.dataDir });
    cleanup.add('database', () => database.close());
    await migrate(database, { migrationsDir: MIGRATIONS_DIR });
    return { main: database, api: database };
  }
  await migrate(config.migrateDatabaseUrl ?? databaseUrl, { migrationsDir: MIGRATIONS_DIR });
  const poolSize = config.databasePoolSize;
  const main = await openDatabase({ url: databaseUrl, poolSize, applicationName: 'replay-ledger' });
  cleanup.add('database', () => main.close());
  const api = await openDatabase({ url: databaseUrl, poolSize, applicationName: 'replay-ledger api' });
  cleanup.add('database of the API', () => api.close());
  return { main, api };
}
