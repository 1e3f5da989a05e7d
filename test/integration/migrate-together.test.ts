import { createTestDatabase } from '../support/database';
import { withClient } from '../support/postgres';
import { until } from '../support/wait';
import { migrateAlone, migrationsOf, outcomeOf, startMigration } from './migrate-fixture';

/** Long enough that others arrive meanwhile, and would trip over a table that is there already. */
const SLOW = { '0001_slow': `SELECT pg_sleep(1.5);\nCREATE TABLE one (id integer);\nSELECT pg_sleep(0.5);` };
const RUNNING = `FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep(1.5)%'`;
/** The advisory lock of prisma migrate. */
const LOCK = 72707369;

async function count(url: string, sql: string): Promise<number> {
  return withClient(url, async (client) => {
    const result = await client.query<{ n: number }>(`SELECT count(*)::integer AS n ${sql}`);
    return result.rows[0]?.n ?? 0;
  });
}

function waitForScript(url: string): Promise<true> {
  return until(async () => (await count(url, RUNNING)) > 0, {
    what: 'the script to run',
  });
}

test('several instances start at once: one migrates, the others wait and find it done', async () => {
  const { url } = await createTestDatabase();
  const folder = migrationsOf(SLOW);
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => outcomeOf(startMigration(url, folder))));
  const applied = outcomes.map((outcome) => outcome.applied ?? outcome.error);
  expect(applied.filter((names) => Array.isArray(names) && names.length === 1)).toEqual([['0001_slow']]);
  expect(applied.filter((names) => Array.isArray(names) && names.length === 0)).toHaveLength(3);
  expect(await count(url, 'FROM _prisma_migrations')).toBe(1);
});

test('the one that migrates is killed: its script still ends as a whole, with its mark, and the next goes on', async () => {
  const { url } = await createTestDatabase();
  const folder = migrationsOf(SLOW);
  const first = startMigration(url, folder);
  await waitForScript(url);
  await first.kill9();
  expect(await migrateAlone(url, folder)).toEqual({ applied: [] });
  expect(await count(url, `FROM _prisma_migrations WHERE finished_at IS NOT NULL`)).toBe(1);
  expect(await count(url, 'FROM one')).toBe(0);
});

test('its connection dies within the script: nothing of it is left, and the next says so', async () => {
  const { url } = await createTestDatabase();
  const folder = migrationsOf(SLOW);
  const first = startMigration(url, folder);
  await waitForScript(url);
  await withClient(url, (client) => client.query(`SELECT pg_terminate_backend(pid) ${RUNNING}`));
  expect((await outcomeOf(first)).error).toMatchObject({ code: 'UNREACHABLE' });
  expect(await count(url, `FROM pg_class WHERE relname = 'one'`)).toBe(0);
  expect((await migrateAlone(url, folder)).error).toMatchObject({ code: 'MIGRATION_FAILED' });
});

test('the wait has an end', async () => {
  const { url } = await createTestDatabase();
  await withClient(url, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    const { error } = await migrateAlone(url, migrationsOf(SLOW), 300);
    expect(error).toMatchObject({ code: 'MIGRATION_LOCKED' });
    expect(error?.message).toContain(String(LOCK));
  });
});
