import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { onCleanup } from './cleanup';
import { withClient } from './postgres';
import { startScript } from './process';
import { sharedPostgresUrl } from './shared-servers';

export const MIGRATIONS = resolve(__dirname, '../../prisma/migrations');

export interface TestDatabase {
  readonly name: string;
  readonly url: string;
  /** Closes whatever is still connected. Called at the end of the test file too. */
  drop(): Promise<void>;
}

/** Migrated once a run; every migrated test database is a copy of it. */
const TEMPLATE = 'replay_ledger_template';

/**
 * Makes the template, once a run. In a process of its own: the migration engine is ESM, which Jest's sandbox does not
 * load, and it leaves a timer behind that would hold Jest open for ten seconds.
 */
export async function createMigratedTemplate(): Promise<void> {
  const admin = new URL(sharedPostgresUrl());
  await withClient(admin.href, (client) => client.query(`CREATE DATABASE ${TEMPLATE}`));
  admin.pathname = `/${TEMPLATE}`;
  const source = `require('./src/ledger/migrate.ts')
    .migrate(${JSON.stringify(admin.href)}, { migrationsDir: ${JSON.stringify(MIGRATIONS)} })
    .then(() => process.exit(0), (error) => { console.error(error); process.exit(1); })`;
  const child = startScript(source);
  const { code } = await child.exit;
  if (code !== 0) throw new Error(`the migrations fail:\n${child.stderr}`);
}

/** A new database with the product's tables. */
export function createMigratedDatabase(): Promise<TestDatabase> {
  return createTestDatabase(TEMPLATE);
}

/** A new, empty database on the shared Postgres, for one test file. */
export async function createTestDatabase(template = 'template1'): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const admin = sharedPostgresUrl();
  await withClient(admin, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
  const drop = async (): Promise<void> => {
    await withClient(admin, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  };
  onCleanup(drop);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return { name, url: url.href, drop };
}
