import { openDatabase } from '../../src/ledger/client';
import type { Database } from '../../src/ledger/client';
import { isDataError, sqlState } from '../../src/ledger/sql-error';
import { onCleanup } from '../support/cleanup';
import { createTestDatabase } from '../support/database';

let database: Database;

beforeAll(async () => {
  const { url } = await createTestDatabase();
  database = await openDatabase({ url, poolSize: 3, applicationName: 'sql-error test' });
  onCleanup(() => database.close());
  await database.prisma.$executeRaw`CREATE TABLE thing (id integer PRIMARY KEY, name text NOT NULL CHECK (name <> ''))`;
  await database.prisma.$executeRawUnsafe(`
    CREATE FUNCTION raise(state text) RETURNS integer LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = state; END $$`);
});

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await promise.then(
    () => null,
    (error: unknown) => ({ error }),
  );
  if (outcome === null) throw new Error('it resolved');
  return outcome.error;
}

describe('errors raised inside a function', () => {
  const data = ['22003', '22P02', '22001', '22012', '23502', '23503', '23505', '23514', '23001'];
  const passing = ['40001', '40P01', '55P03', '57014', '53300', '08006', '25P02', '42501', '42P01', 'P0001', 'XX000'];

  test.each([...data.map((state) => [state, true] as const), ...passing.map((state) => [state, false] as const)])(
    '%s',
    async (state, isData) => {
      const alone = await errorOf(database.prisma.$queryRaw`SELECT raise(${state})`);
      const inside = await errorOf(database.prisma.$transaction((tx) => tx.$queryRaw`SELECT raise(${state})`));
      expect([sqlState(alone), sqlState(inside)]).toEqual([state, state]);
      expect([isDataError(alone), isDataError(inside)]).toEqual([isData, isData]);
    },
  );
});

describe('errors of statements', () => {
  test('constraints and conversions are about the data', async () => {
    const { prisma } = database;
    await prisma.$executeRaw`INSERT INTO thing VALUES (1, 'one')`;
    const errors = [
      await errorOf(prisma.$executeRaw`INSERT INTO thing VALUES (1, 'again')`),
      await errorOf(prisma.$executeRaw`INSERT INTO thing VALUES (2, NULL)`),
      await errorOf(prisma.$executeRaw`INSERT INTO thing VALUES (2, '')`),
      await errorOf(prisma.$queryRaw`SELECT 'x'::text::integer`),
      await errorOf(prisma.$queryRaw`SELECT 1 / 0`),
      await errorOf(prisma.$queryRaw`SELECT ${'a\u0000b'}::text`),
    ];
    expect(errors.map(sqlState)).toEqual(['23505', '23502', '23514', '22P02', '22012', '22021']);
    expect(errors.map(isDataError)).toEqual(errors.map(() => true));
  });

  test('a missing table and a syntax error are not', async () => {
    const missing = await errorOf(database.prisma.$queryRaw`SELECT * FROM nowhere`);
    const syntax = await errorOf(database.prisma.$queryRawUnsafe('SELEKT'));
    expect([missing, syntax].map(sqlState)).toEqual(['42P01', '42601']);
    expect([missing, syntax].map(isDataError)).toEqual([false, false]);
  });

  test('a query that Prisma built itself', async () => {
    const error = await errorOf(database.prisma.feed.findMany());
    expect(sqlState(error)).toBe('42P01');
  });

  test('a real deadlock: its victim is tried again', async () => {
    const { prisma } = database;
    await prisma.$executeRaw`INSERT INTO thing VALUES (10, 'a'), (11, 'b') ON CONFLICT DO NOTHING`;
    let arrived = 0;
    let bothHoldOne = (): void => undefined;
    const both = new Promise<void>((resolve) => (bothHoldOne = resolve));
    const lockBoth = (first: number, second: number): Promise<unknown> =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT id FROM thing WHERE id = ${first} FOR UPDATE`;
        if (++arrived === 2) bothHoldOne();
        await both;
        await tx.$queryRaw`SELECT id FROM thing WHERE id = ${second} FOR UPDATE`;
      });
    const outcomes = await Promise.allSettled([lockBoth(10, 11), lockBoth(11, 10)]);
    const failed = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
    expect(failed.map(sqlState)).toEqual(['40P01']);
    expect(isDataError(failed[0])).toBe(false);
  });
});

test('what has no SQLSTATE', () => {
  const cyclic: { cause?: unknown } = {};
  cyclic.cause = cyclic;
  const system = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  const expired = Object.assign(new Error('expired'), { code: 'P2028', meta: { timeout: 1 } });
  for (const error of [null, undefined, 'text', 22003, {}, cyclic, system, expired, new Error('22003')]) {
    expect(sqlState(error)).toBeNull();
    expect(isDataError(error)).toBe(false);
  }
});
