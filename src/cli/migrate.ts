/** `replay-ledger migrate`: the migrations alone, for deployments that give them a role of their own. */
import { StartError } from '../startup/parts';
import type { Config } from '../config';
import { migrate } from '../ledger/migrate';
import { MIGRATIONS_DIR } from '../startup/storage';

export async function runMigrate(config: Config): Promise<void> {
  const url = config.migrateDatabaseUrl ?? config.databaseUrl;
  if (url === null) {
    throw new StartError('DATABASE_URL: is not set; the embedded database migrates itself when it is opened');
  }
  const { applied } = await migrate(url, { migrationsDir: MIGRATIONS_DIR });
  console.log(applied.length === 0 ? 'the database is up to date' : `applied: ${applied.join(', ')}`);
}
