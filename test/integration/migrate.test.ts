import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, requireSupported } from '../../src/ledger/client';
import { pendingMigrations } from '../../src/ledger/migrate';
import { onCleanup } from '../support/cleanup';
import { createTestDatabase } from '../support/database';
import { freePort } from '../support/free-port';
import { withClient } from '../support/postgres';
import { MIGRATIONS, migrateAlone, migrationsOf } from './migrate-fixture';

const FIRST = { '0001_first': 'CREATE TABLE one (id integer PRIMARY KEY);\n' };
const SECOND = { ...FIRST, '0002_second': 'CREATE TABLE two (id integer PRIMARY KEY);\n' };

async function rows<T extends object>(url: string, sql: string): Promise<T[]> {
  return withClient(url, async (client) => (await client.query<T>(sql)).rows);
}

async function tables(url: string): Promise<string[]> {
  const found = await rows<{ name: string }>(
    url,
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`,
  );
  return found.map(({ name }) => name).filter((name) => name !== '_prisma_migrations');
}

async function newDatabase(): Promise<string> {
  return (await createTestDatabase()).url;
}

async function pending(url: string, migrationsDir: string): Promise<readonly string[]> {
  const database = await openDatabase({ url, poolSize: 2, applicationName: 'migrate test' });
  try {
    return await pendingMigrations(database, { migrationsDir });
  } finally {
    await database.close();
  }
}

test("the product's migrations, recorded as prisma migrate records them; the second time there is nothing to do", async () => {
  const url = await newDatabase();
  const names = await pending(url, MIGRATIONS);
  expect(names.length).toBeGreaterThan(0);
  expect(await migrateAlone(url, MIGRATIONS)).toEqual({ applied: names });
  expect(await pending(url, MIGRATIONS)).toEqual([]);
  expect(await migrateAlone(url, MIGRATIONS)).toEqual({ applied: [] });

  const records = await rows<Record<string, unknown>>(url, 'SELECT * FROM _prisma_migrations ORDER BY started_at');
  const checksum = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(join(MIGRATIONS, name, 'migration.sql')))
      .digest('hex');
  expect(records).toEqual(
    names.map((name) => ({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      migration_name: name,
      checksum: checksum(name),
      applied_steps_count: 1,
      started_at: expect.any(Date) as Date,
      finished_at: expect.any(Date) as Date,
      rolled_back_at: null,
      logs: null,
    })),
  );
});

test('only what is new is applied, in order', async () => {
  const url = await newDatabase();
  expect(await migrateAlone(url, migrationsOf(FIRST))).toEqual({ applied: ['0001_first'] });
  const more = migrationsOf({ ...SECOND, '0003_third': 'ALTER TABLE two ADD COLUMN three integer;' });
  expect(await pending(url, more)).toEqual(['0002_second', '0003_third']);
  expect(await migrateAlone(url, more)).toEqual({ applied: ['0002_second', '0003_third'] });
  expect(await tables(url)).toEqual(['one', 'two']);
});

test('a script is one query: semicolons in function bodies and strings do not cut it', async () => {
  const url = await newDatabase();
  const script = `
    CREATE FUNCTION answer(x integer) RETURNS text LANGUAGE plpgsql AS $body$
    DECLARE y text; BEGIN y := 'a;b'; IF x > 1 THEN y := y || ';' || x; END IF; RETURN y; END $body$;
    -- the last line has no semicolon; and ends in a comment
    CREATE TABLE one (id integer) -- end`;
  expect(await migrateAlone(url, migrationsOf({ '0001_function': script }))).toEqual({ applied: ['0001_function'] });
  expect(await rows(url, 'SELECT answer(2) AS answer')).toEqual([{ answer: 'a;b;2' }]);
});

test('a script that fails leaves nothing, says why, and is tried again once it is mended', async () => {
  const url = await newDatabase();
  const broken = { ...FIRST, '0002_second': 'CREATE TABLE two (id integer);\nCREATE TABLE one (id integer);' };
  const first = await migrateAlone(url, migrationsOf(broken));
  expect(first.error).toMatchObject({ name: 'StorageError', code: 'MIGRATION_FAILED' });
  expect(first.error?.message).toMatch(/^migration 0002_second failed: .*relation "one" already exists$/);
  expect(await tables(url)).toEqual(['one']);

  expect((await migrateAlone(url, migrationsOf(broken))).error?.message).toEqual(first.error?.message);
  expect(await migrateAlone(url, migrationsOf(SECOND))).toEqual({ applied: ['0002_second'] });
  const records = await rows<{ failed: boolean; logged: boolean }>(
    url,
    `SELECT rolled_back_at IS NOT NULL AS failed, logs IS NOT NULL AS logged FROM _prisma_migrations
      WHERE migration_name = '0002_second' ORDER BY started_at`,
  );
  expect(records).toEqual([
    { failed: true, logged: true },
    { failed: true, logged: true },
    { failed: false, logged: false },
  ]);
});

describe('a history that this program must not write to', () => {
  async function refused(change: string, migrationsDir: string): Promise<string | undefined> {
    const url = await newDatabase();
    await migrateAlone(url, migrationsOf(SECOND));
    await rows(url, change);
    const before = await tables(url);
    const { error } = await migrateAlone(url, migrationsDir);
    expect(await tables(url)).toEqual(before);
    expect(error?.message).not.toMatch(/\n/);
    return `${error?.name} ${error?.code} ${error?.message}`;
  }

  test('reading what is pending finds the same', async () => {
    const url = await newDatabase();
    await migrateAlone(url, migrationsOf(SECOND));
    await expect(pending(url, migrationsOf(FIRST))).rejects.toMatchObject({ code: 'DATABASE_NEWER' });
    const edited = { ...SECOND, '0001_first': 'SELECT 1;' };
    await expect(pending(url, migrationsOf(edited))).rejects.toMatchObject({ code: 'MIGRATION_EDITED' });
  });

  test('a newer database', async () => {
    expect(await refused('SELECT 1', migrationsOf(FIRST))).toMatch(
      /^DatabaseNewerError DATABASE_NEWER the database is newer than this program: it has migration 0002_second,/,
    );
  });

  test('a run that did not finish', async () => {
    const change = `UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name = '0002_second'`;
    expect(await refused(change, migrationsOf(SECOND))).toMatch(
      /^StorageError MIGRATION_FAILED migration 0002_second was started earlier and did not finish \(it was interrupted\)/,
    );
  });

  test('an applied migration that was edited since', async () => {
    const edited = { ...SECOND, '0001_first': 'CREATE TABLE one (id bigint PRIMARY KEY);\n' };
    expect(await refused('SELECT 1', migrationsOf(edited))).toMatch(
      /^StorageError MIGRATION_EDITED migration 0001_first was applied to the database with another content/,
    );
  });
});

test('line ends that a checkout changed are no edit', async () => {
  const url = await newDatabase();
  await migrateAlone(url, migrationsOf(FIRST));
  const windows = { '0001_first': FIRST['0001_first'].replaceAll('\n', '\r\n') };
  expect(await migrateAlone(url, migrationsOf(windows))).toEqual({ applied: [] });
});

test('a database that somebody else uses', async () => {
  const url = await newDatabase();
  await rows(url, 'CREATE TABLE theirs (id integer)');
  const { error } = await migrateAlone(url, migrationsOf(FIRST));
  expect(error).toMatchObject({ code: 'DATABASE_NOT_EMPTY' });
  expect(await tables(url)).toEqual(['theirs']);

  await rows(url, 'CREATE SCHEMA ours');
  const target = new URL(url);
  target.searchParams.set('schema', 'ours');
  expect(await migrateAlone(target.href, migrationsOf(FIRST))).toEqual({ applied: ['0001_first'] });
  expect(await rows(url, 'SELECT count(*)::integer AS n FROM ours.one')).toEqual([{ n: 0 }]);
});

describe('a service role', () => {
  let url: string;
  let asService: string;

  beforeAll(async () => {
    url = await newDatabase();
    const role = `service_${Math.random().toString(36).slice(2)}`;
    await migrateAlone(url, migrationsOf(FIRST));
    await rows(url, `CREATE ROLE ${role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
    await rows(url, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${role}`);
    onCleanup(async () => void (await rows(url, `DROP OWNED BY ${role}; DROP ROLE ${role}`)));
    const target = new URL(url);
    target.username = role;
    asService = target.href;
  });

  test('may find that all is current', async () => {
    expect(await migrateAlone(asService, migrationsOf(FIRST))).toEqual({ applied: [] });
    expect(await pending(asService, migrationsOf(FIRST))).toEqual([]);
  });

  test('may not apply, and says whom it takes; the owner then can', async () => {
    const { error } = await migrateAlone(asService, migrationsOf(SECOND));
    expect(error).toMatchObject({ code: 'PRIVILEGE' });
    expect(error?.message).toMatch(/permission denied.*MIGRATE_DATABASE_URL/);
    expect(await migrateAlone(url, migrationsOf(SECOND))).toEqual({ applied: ['0002_second'] });
  });
});

test('a server that is not there, and a URL that is none', async () => {
  const port = await freePort();
  const { error } = await migrateAlone(`postgresql://postgres:secret@127.0.0.1:${port}/x`, migrationsOf(FIRST));
  expect(error).toMatchObject({ code: 'UNREACHABLE' });
  expect(error?.message).not.toContain('secret');
  expect((await migrateAlone('http://127.0.0.1/x', migrationsOf(FIRST))).error).toMatchObject({ code: 'BAD_URL' });
});

test('Postgres 14 is the oldest', () => {
  expect(() => requireSupported(130_018, 'x')).toThrow('the database x is PostgreSQL 13; 14 or newer is needed');
  expect(() => requireSupported(140_000, 'x')).not.toThrow();
});
