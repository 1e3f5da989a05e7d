import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onCleanup } from '../support/cleanup';
import { startScript } from '../support/process';
import type { TestProcess } from '../support/process';
import { until } from '../support/wait';
import { MIGRATIONS, migrationsOf } from './migrate-fixture';

const SCHEMA = readFileSync(resolve(__dirname, '../../prisma/schema.prisma'), 'utf8');
/** How often the program is killed; more in the long run. */
const KILLS = process.env.LONG === '1' ? 10 : 1;

let root: string;
/** An empty database that was made once: making one takes seconds. */
let template: string;

/**
 * Runs `body` with `open`, `migrate`, `answer` and `errorOf` in a process of its own: PGlite loads by dynamic imports,
 * which Jest's module system does not do.
 */
function start(body: string): TestProcess {
  return startScript(`
    const { openEmbeddedDatabase } = require('./src/embedded/database');
    const { migrate, pendingMigrations } = require('./src/ledger/migrate');
    const { schemaDrift } = require('./src/ledger/schema-engine');
    const { sqlState } = require('./src/ledger/sql-error');
    const open = (dataDir) => openEmbeddedDatabase({ dataDir });
    const json = (value) => JSON.stringify(value, (key, v) => (typeof v === 'bigint' ? String(v) + 'n' : v));
    const answer = (value) => console.log('ANSWER ' + json(value));
    const table = (prisma) => prisma.$executeRaw\`CREATE TABLE IF NOT EXISTS thing (id integer PRIMARY KEY, note text)\`;
    const errorOf = (promise) => promise.then(
      () => 'resolved',
      (error) => ({ code: error.code, state: sqlState(error), message: error.message.split('\\n').pop() }),
    );
    (async () => { ${body} })().catch((error) => { console.error(error); process.exit(1); });`);
}

async function answerOf(process: TestProcess): Promise<unknown> {
  const exit = await process.exit;
  if (exit.code !== 0) throw new Error(`it left with ${exit.code}: ${process.stderr}`);
  const [, json] = await process.waitForLine(/^ANSWER (.*)$/);
  return JSON.parse(json ?? '') as unknown;
}

function copyOfTemplate(): string {
  const folder = mkdtempSync(join(root, 'copy-'));
  cpSync(template, folder, { recursive: true });
  return folder;
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'embedded-'));
  onCleanup(() => rmSync(root, { recursive: true, force: true }));
  template = join(root, 'template');
  const made = start(`
    await (await open(${JSON.stringify(template)})).close();
    answer('made');`);
  expect(await answerOf(made)).toBe('made');
}, 120_000);

test('migrations are applied, and schema.prisma says what they made', async () => {
  const folder = copyOfTemplate();
  const changed = SCHEMA.replace('@map("retired_at")', '@map("retired_on")');
  expect(changed).not.toBe(SCHEMA);
  const process = start(`
    const migrationsDir = ${JSON.stringify(MIGRATIONS)};
    const database = await open(${JSON.stringify(folder)});
    const pending = await pendingMigrations(database, { migrationsDir });
    const { applied } = await migrate(database, { migrationsDir });
    const again = await migrate(database, { migrationsDir });
    const drift = await schemaDrift(database, ${JSON.stringify(SCHEMA)});
    const control = await schemaDrift(database, ${JSON.stringify(changed)});
    await database.close();
    answer({ pending, applied, again: again.applied, drift, control });`);
  const { pending, applied, again, drift, control } = (await answerOf(process)) as Record<string, unknown>;
  expect(applied).toEqual(pending);
  expect((applied as unknown[]).length).toBeGreaterThan(0);
  expect(again).toEqual([]);
  expect(drift).toBeNull();
  expect(control).toContain('retired_on');
}, 120_000);

test('a first start that was cut short within a migration starts again', async () => {
  const folder = copyOfTemplate();
  const first = migrationsOf({ '0001_first': 'CREATE TABLE one (id integer);' });
  const second = migrationsOf({ '0001_first': 'CREATE TABLE one (id integer);', '0002_second': 'SELECT 1;' });
  const process = start(`
    const database = await open(${JSON.stringify(folder)});
    await migrate(database, { migrationsDir: ${JSON.stringify(first)} });
    await database.prisma.$executeRaw\`INSERT INTO _prisma_migrations (id, checksum, migration_name)
      VALUES ('cut', '', '0002_second')\`;
    const { applied } = await migrate(database, { migrationsDir: ${JSON.stringify(second)} });
    await database.close();
    answer(applied);`);
  expect(await answerOf(process)).toEqual(['0002_second']);
}, 120_000);

test('a first start that is killed while it makes the database starts again', async () => {
  const folder = join(root, 'killed-early');
  const first = start(`await open(${JSON.stringify(folder)});`);
  await until(() => existsSync(join(folder, 'database.new', 'base')), { what: 'the database to be in the making' });
  await first.kill9();
  expect(existsSync(join(folder, 'database'))).toBe(false);
  const second = start(`
    const database = await open(${JSON.stringify(folder)});
    const rows = await database.prisma.$queryRaw\`SELECT 1 AS one\`;
    await database.close();
    answer(rows);`);
  expect(await answerOf(second)).toEqual([{ one: 1 }]);
}, 120_000);

test('C071 C073: a commit that was none is never reported as one; values are exact; a failed script is an error', async () => {
  const process = start(`
    const { prisma, adapterFactory, close } = await open(${JSON.stringify(copyOfTemplate())});
    await table(prisma);
    await prisma.$executeRawUnsafe(\`CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.id = 131 THEN RAISE EXCEPTION 'refused at commit' USING ERRCODE = '23514'; END IF; RETURN NULL; END $$\`);
    await prisma.$executeRawUnsafe(\`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON thing DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION refuse_late()\`);
    const insert = (tx, id) => tx.$executeRaw\`INSERT INTO thing VALUES (\${id}, 'x')\`;
    await insert(prisma, 130);
    const caught = await errorOf(prisma.$transaction(async (tx) => {
      await insert(tx, 1);
      await insert(tx, 130).catch(() => undefined);
    }));
    const late = await errorOf(prisma.$transaction((tx) => insert(tx, 131)));
    const expired = await errorOf(prisma.$transaction(async (tx) => {
      await insert(tx, 132);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }, { timeout: 100 }));
    const thrown = await errorOf(prisma.$transaction(async (tx) => { await insert(tx, 133); throw new Error('mine'); }));
    await prisma.$transaction((tx) => insert(tx, 2), { isolationLevel: 'Serializable' });
    const adapter = await adapterFactory.connect();
    const script = await errorOf(adapter.executeScript('INSERT INTO thing VALUES (3); SELECT 1 / 0'));
    const ids = await prisma.$queryRaw\`SELECT id FROM thing ORDER BY id\`;
    const [exact] = await prisma.$queryRaw\`SELECT 9223372036854775807 AS big, 123456789012345678901234567890.1::numeric AS n\`;
    await close();
    await close();
    answer({ caught, late, expired, thrown, script, ids, big: exact.big, n: exact.n.toFixed() });`);
  expect(await answerOf(process)).toEqual({
    caught: expect.objectContaining({ state: '25P02' }) as unknown,
    late: { state: '23514', message: 'refused at commit' },
    expired: expect.objectContaining({ code: 'P2028' }) as unknown,
    thrown: { state: null, message: 'mine' },
    script: expect.objectContaining({ state: '22012' }) as unknown,
    ids: [{ id: 2 }, { id: 130 }],
    big: '9223372036854775807n',
    n: '123456789012345678901234567890.1',
  });
});

test('a second process on the folder is refused, and so is a second opening', async () => {
  const folder = copyOfTemplate();
  const holder = start(`
    await open(${JSON.stringify(folder)});
    console.log('HELD ' + json(await errorOf(open(${JSON.stringify(folder)}))));
    setInterval(() => undefined, 1000);`);
  const [, again] = await holder.waitForLine(/^HELD (.*)$/);
  const second = await answerOf(start(`answer(await errorOf(open(${JSON.stringify(folder)})));`));
  for (const refusal of [JSON.parse(again ?? '') as unknown, second]) {
    expect(refusal).toMatchObject({
      code: 'FOLDER_LOCKED',
      message: `the data folder ${folder} is in use by another process (pid ${holder.pid})`,
    });
  }
  await holder.kill9();
  const third = start(`await (await open(${JSON.stringify(folder)})).close(); answer('opened');`);
  expect(await answerOf(third)).toBe('opened');
});

test('kill -9 during inserts: no acknowledged row is lost', async () => {
  const folder = copyOfTemplate();
  let acknowledged = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const writer = start(`
      const { prisma } = await open(${JSON.stringify(folder)});
      await table(prisma);
      for (let id = ${acknowledged + 1_000_000 * (round + 1)}; ; id += 1) {
        await prisma.$transaction((tx) => tx.$executeRaw\`INSERT INTO thing VALUES (\${id}, repeat('x', 500))\`);
        console.log('ROW ' + id);
      }`);
    await until(() => writer.stdout.split('\n').length > 300, { what: 'rows to be written' });
    await writer.kill9();
    const written = writer.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => Number(line.slice('ROW '.length)));
    acknowledged += written.length;
    const reader = start(`
      const { prisma, close } = await open(${JSON.stringify(folder)});
      const rows = await prisma.$queryRaw\`SELECT id FROM thing\`;
      await close();
      answer(rows.map((row) => row.id));`);
    const found = new Set((await answerOf(reader)) as number[]);
    expect(written.filter((id) => !found.has(id))).toEqual([]);
  }
  expect(acknowledged).toBeGreaterThan(0);
}, 300_000);

test('a folder that cannot be one', async () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  const refusal = await answerOf(start(`answer(await errorOf(open(${JSON.stringify(file)})));`));
  expect(refusal).toMatchObject({ code: 'FOLDER_UNUSABLE' });
});
