import { connect, createServer, type Socket } from 'node:net';
import type { RedisError } from '../../src/window/redis/error';
import { type RedisWindow, createRedisWindow } from '../../src/window/redis/window';
import type { WindowUpdate } from '../../src/window/window';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis';
import { until } from '../support/wait';

const FEED = 'county-fire-cad';
const KEY = `1:${'ab'.repeat(32)}`;
const MEMORY = { term: 1, size: 8, lastLeaf: 'cd'.repeat(32) };
const UPDATE: WindowUpdate = {
  memory: MEMORY,
  recordedAtMs: 1_700_000_000_000,
  positions: new Map([[KEY, 7]]),
  windowSeconds: 600,
  maxEntries: 1000,
};
const HIT = { positions: new Map([[KEY, 7]]), memory: MEMORY };
const MISS = { positions: new Map(), memory: null };

interface Watched {
  readonly window: RedisWindow;
  /** `problem: <code>` and `recovered`, in order. */
  readonly reports: string[];
}

function watch(url: string, commandTimeoutMs = 250): Watched {
  const reports: string[] = [];
  const window = createRedisWindow({
    url,
    keyPrefix: 'rl',
    commandTimeoutMs,
    onProblem: (error: RedisError) => reports.push(`problem: ${error.code}`),
    onRecovered: () => reports.push('recovered'),
  });
  onCleanup(() => window.close());
  return { window, reports };
}

/** Look-up and record, many times, as batches would; resolves when `isDone` holds. */
async function keepAsking({ window }: Watched, isDone: () => boolean, what: string): Promise<void> {
  await until(
    async () => {
      await window.lookup(FEED, [KEY]);
      await window.record(FEED, UPDATE);
      return isDone();
    },
    { what },
  );
}

test('down at the start: null and false at once, one report; used as soon as it is there', async () => {
  const port = await freePort();
  const watched = watch(`redis://127.0.0.1:${port}`);
  const { window, reports } = watched;
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  expect(await window.record(FEED, UPDATE)).toBe(false);
  expect(await window.checkRedis(100)).toMatchObject({
    reachable: false,
    warnings: [expect.stringContaining('not reachable')],
  });
  await until(() => reports.length > 0, { what: 'the report' });
  expect(reports).toEqual(['problem: unreachable']);

  await startRedis({ port });
  await keepAsking(watched, () => reports.length > 1, 'the recovery');
  expect(reports).toEqual(['problem: unreachable', 'recovered']);
  expect(await window.record(FEED, UPDATE)).toBe(true);
  expect(await window.lookup(FEED, [KEY])).toEqual(HIT);
});

test('killed and started again, three times: one report and one recovery each', async () => {
  const redis = await startRedis();
  const watched = watch(redis.url);
  const { window, reports } = watched;
  expect((await window.checkRedis(20_000)).warnings).toEqual([]);
  for (let outage = 1; outage <= 3; outage += 1) {
    expect(await window.record(FEED, UPDATE)).toBe(true);
    const inFlight = Array.from({ length: 50 }, () => window.lookup(FEED, [KEY]));
    await redis.kill9();
    for (const answer of await Promise.all(inFlight)) {
      expect(answer === null || answer.positions.get(KEY) === 7).toBe(true);
    }
    await keepAsking(watched, () => reports.length === 2 * outage - 1, 'the report');
    expect(await window.lookup(FEED, [KEY])).toBeNull();
    await redis.start();
    await keepAsking(watched, () => reports.length === 2 * outage, 'the recovery');
  }
  expect(reports).toEqual(Array.from({ length: 3 }, () => ['problem: unreachable', 'recovered']).flat());
});

test('frozen: one batch waits, the next ones do not; it goes on when the server does', async () => {
  const redis = await startRedis();
  // A timeout so long that a second wait for it would fail this test by its own time.
  const watched = watch(redis.url, 3000);
  const { window, reports } = watched;
  await window.checkRedis(20_000);
  await window.record(FEED, UPDATE);
  redis.freeze();
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  expect(reports).toEqual(['problem: timeout']);
  for (let batch = 0; batch < 200; batch += 1) {
    expect(await window.lookup(FEED, [KEY])).toBeNull();
    expect(await window.record(FEED, UPDATE)).toBe(false);
  }
  redis.resume();
  await until(async () => (await window.lookup(FEED, [KEY])) !== null, { what: 'an answer' });
  expect(await window.lookup(FEED, [KEY])).toEqual(HIT);
  expect(reports).toEqual(['problem: timeout', 'recovered']);
});

test('frozen for longer than the client keeps a silent socket', async () => {
  const redis = await startRedis();
  const { window, reports } = watch(redis.url, 50);
  await window.checkRedis(20_000);
  await window.record(FEED, UPDATE);
  redis.freeze();
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  await new Promise((resolve) => setTimeout(resolve, 4000));
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  redis.resume();
  await until(async () => (await window.lookup(FEED, [KEY])) !== null, { what: 'an answer' });
  expect(reports).toEqual(['problem: timeout', 'recovered']);
});

test('an answer that waits behind a long turn of ours is not late', async () => {
  const redis = await startRedis();
  const { window, reports } = watch(redis.url, 50);
  await window.checkRedis(20_000);
  await window.record(FEED, UPDATE);
  await window.lookup(FEED, [KEY]); // the server has the script from now on: one round trip
  const answer = window.lookup(FEED, [KEY]);
  const endMs = performance.now() + 300;
  while (performance.now() < endMs);
  expect(await answer).toEqual(HIT);
  expect(reports).toEqual([]);
});

test('C060: FLUSHALL, SCRIPT FLUSH: knows nothing, and fills again', async () => {
  const redis = await startRedis();
  const { window, reports } = watch(redis.url);
  await window.checkRedis(20_000);
  await window.record(FEED, UPDATE);
  await redisCommands(redis.port, ['FLUSHALL', 'SCRIPT FLUSH']);
  expect(await window.lookup(FEED, [KEY])).toEqual(MISS);
  expect(await window.record(FEED, UPDATE)).toBe(true);
  expect(await window.lookup(FEED, [KEY])).toEqual(HIT);
  expect(reports).toEqual([]);
});

test('something that is no Redis: null, one report, no storm of connections', async () => {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket.on('error', () => undefined));
    socket.on('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onCleanup(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  const { window, reports } = watch(`redis://127.0.0.1:${port}`);
  await until(() => connections >= 4, { what: 'some attempts' });
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  expect(reports).toHaveLength(1);
  const before = connections;
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(connections - before).toBeLessThan(15);
});

test('a server that refuses us: null, one report; used as soon as it lets us in', async () => {
  const redis = await startRedis();
  await redisCommands(redis.port, ['CONFIG SET requirepass secret']);
  const watched = watch(redis.url);
  const { window, reports } = watched;
  await keepAsking(watched, () => reports.length > 0, 'the report');
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  expect(reports).toEqual(['problem: forbidden']);
  await redisCommands(redis.port, ['AUTH secret', 'CONFIG SET requirepass ""']);
  await keepAsking(watched, () => reports.length > 1, 'the recovery');
  expect(await window.lookup(FEED, [KEY])).toEqual(HIT);
});

test('a password in the URL, percent-encoded', async () => {
  const redis = await startRedis();
  await redisCommands(redis.port, ['ACL SETUSER ledger on >p@ss:/# ~* +@all']);
  const { window } = watch(`redis://ledger:p%40ss%3A%2F%23@127.0.0.1:${redis.port}/3`);
  expect((await window.checkRedis(20_000)).reachable).toBe(true);
  expect(await window.record(FEED, UPDATE)).toBe(true);
});

test('closed: in the middle of commands, while down, and twice', async () => {
  const redis = await startRedis();
  const { window, reports } = watch(redis.url);
  await window.checkRedis(20_000);
  const inFlight = window.lookup(FEED, [KEY]);
  await window.close();
  const answer = await inFlight;
  expect(answer === null || answer.memory === null).toBe(true);
  expect(await window.lookup(FEED, [KEY])).toBeNull();
  expect(await window.record(FEED, UPDATE)).toBe(false);
  expect((await window.checkRedis(20_000)).reachable).toBe(false);
  await window.close();
  expect(reports).toEqual([]);

  const down = watch(`redis://127.0.0.1:${await freePort()}`);
  await until(() => down.reports.length > 0, { what: 'the report' });
  await down.window.close();
  expect(down.reports).toEqual(['problem: unreachable']);
});

/** Inline commands on a connection of their own. */
async function redisCommands(port: number, commands: readonly string[]): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' });
  for (const command of commands) {
    const reply = new Promise<Buffer>((resolve, reject) => socket.once('data', resolve).once('error', reject));
    socket.write(`${command}\r\n`);
    expect((await reply).toString()).toMatch(/^\+OK/);
  }
  socket.destroy();
}
