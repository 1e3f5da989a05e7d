/**
 * Windows in every state that a Redis can be in, for one script of deliveries: see redis-independence.test.ts.
 */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { createLocalWindow } from '../../src/window/local';
import type { RedisError } from '../../src/window/redis/error';
import { createRedisWindow, type RedisWindow } from '../../src/window/redis/window';
import type { Window, WindowHints } from '../../src/window/window';
import { onCleanup } from './cleanup';
import { freePort } from './free-port';
import { startRedis, type RedisServer } from './redis';
import { sharedRedisUrl } from './shared-servers';
import { until } from './wait';

export interface WindowInTrouble {
  readonly window: Window;
  /** Called before each batch of the script, with its number from 0. */
  beforeBatch(batch: number): Promise<void>;
  /** Shows that the trouble was there, after the script. */
  expectTrouble(): void;
}

const nothing = (): Promise<void> => Promise.resolve();

async function openRedisWindow(
  url: string,
  onProblem: (error: RedisError) => void = () => undefined,
): Promise<RedisWindow> {
  const window = createRedisWindow({
    url,
    keyPrefix: `test-${randomBytes(6).toString('hex')}`,
    commandTimeoutMs: 5_000, // a slow machine must not make another case of it
    onProblem,
    onRecovered: () => undefined,
  });
  onCleanup(() => window.close());
  await window.checkRedis();
  return window;
}

function openClient(server: RedisServer): Redis {
  const client = new Redis(server.url, { retryStrategy: () => 20 });
  client.on('error', () => undefined); // its server is killed under it
  onCleanup(() => client.disconnect());
  return client;
}

/** Counts what the window answered. */
function counting(window: Window): { window: Window; hits: number; misses: number; failures: number } {
  const counts = {
    hits: 0,
    misses: 0,
    failures: 0,
    window: {
      lookup: async (feed: string, keys: readonly string[]): Promise<WindowHints | null> => {
        const hints = await window.lookup(feed, keys);
        counts.hits += hints?.positions.size ?? 0;
        if (hints === null) counts.misses += 1;
        return hints;
      },
      record: async (...args: Parameters<Window['record']>): Promise<boolean> => {
        const taken = await window.record(...args);
        if (!taken) counts.failures += 1;
        return taken;
      },
      close: () => window.close(),
    },
  };
  return counts;
}

/** In the process, without Redis. */
export function localWindow(): Promise<WindowInTrouble> {
  const counts = counting(createLocalWindow());
  const expectTrouble = (): void => expect(counts.hits).toBeGreaterThan(0);
  return Promise.resolve({ window: counts.window, beforeBatch: nothing, expectTrouble });
}

export async function presentRedis(): Promise<WindowInTrouble> {
  const counts = counting(await openRedisWindow(sharedRedisUrl()));
  const expectTrouble = (): void => {
    expect(counts.hits).toBeGreaterThan(0);
    expect(counts).toMatchObject({ misses: 0, failures: 0 });
  };
  return { window: counts.window, beforeBatch: nothing, expectTrouble };
}

export async function absentRedis(): Promise<WindowInTrouble> {
  const counts = counting(
    createRedisWindow({
      url: `redis://127.0.0.1:${await freePort()}`,
      keyPrefix: 'test',
      onProblem: () => undefined,
      onRecovered: () => undefined,
    }),
  );
  onCleanup(() => counts.window.close());
  const expectTrouble = (): void => expect(counts.hits).toBe(0);
  return { window: counts.window, beforeBatch: nothing, expectTrouble };
}

/** Emptied every few batches. */
export async function flushedRedis(): Promise<WindowInTrouble> {
  const server = await startRedis();
  const client = openClient(server);
  const counts = counting(await openRedisWindow(server.url));
  let removed = 0;
  const beforeBatch = async (batch: number): Promise<void> => {
    if (batch % 7 !== 6) return;
    removed += await client.dbsize();
    await client.flushall();
  };
  const expectTrouble = (): void => {
    expect(removed).toBeGreaterThan(0);
    expect(counts.hits).toBeGreaterThan(0);
  };
  return { window: counts.window, beforeBatch, expectTrouble };
}

/** Killed in the middle, and started again without what it knew, as a failover to an empty replica. */
export async function restartedRedis(): Promise<WindowInTrouble> {
  const server = await startRedis();
  const counts = counting(await openRedisWindow(server.url));
  const beforeBatch = async (batch: number): Promise<void> => {
    if (batch === 10) await server.kill9();
    if (batch === 20) await server.start();
    if (batch === 21) await until(() => counts.window.lookup('none', []), { what: 'Redis to be back' });
  };
  const expectTrouble = (): void => {
    expect(counts.misses).toBeGreaterThan(0);
    expect(counts.failures).toBeGreaterThan(0);
    expect(counts.hits).toBeGreaterThan(0);
  };
  return { window: counts.window, beforeBatch, expectTrouble };
}

/** Behind: every other batch was never recorded, as by a replica that lags when it is promoted. */
export async function staleRedis(): Promise<WindowInTrouble> {
  const counts = counting(await openRedisWindow(sharedRedisUrl()));
  let dropped = 0;
  let batch = 0;
  const window: Window = {
    ...counts.window,
    record: (feed, update) => {
      if (batch % 2 === 0) return counts.window.record(feed, update);
      dropped += 1;
      return Promise.resolve(true);
    },
  };
  const beforeBatch = (number: number): Promise<void> => Promise.resolve(void (batch = number));
  const expectTrouble = (): void => {
    expect(dropped).toBeGreaterThan(0);
    expect(counts.hits).toBeGreaterThan(0);
  };
  return { window, beforeBatch, expectTrouble };
}

/**
 * Wrong: every key has the position of another one, those that it does not know have one too, some far beyond the
 * ledger. What the window remembers of the ledger's size is left alone: that is another matter (terms).
 */
export async function wrongRedis(): Promise<WindowInTrouble> {
  const inner = await openRedisWindow(sharedRedisUrl());
  let wrong = 0;
  const lookup = async (feed: string, keys: readonly string[]): Promise<WindowHints | null> => {
    const hints = await inner.lookup(feed, keys);
    if (hints?.memory == null) return hints;
    const { size } = hints.memory;
    const known = [...hints.positions.values(), 0, size - 1, size, size + 1_000_000];
    // Of all keys in the place of their neighbour's: also of two keys of one batch, exchanged.
    const positions = keys.map((key, index) => [key, known[(index + 1) % known.length] ?? 0] as const);
    wrong += positions.filter(([key, position]) => hints.positions.get(key) !== position).length;
    return { memory: hints.memory, positions: new Map(positions) };
  };
  const window: Window = { lookup, record: (...args) => inner.record(...args), close: () => inner.close() };
  const expectTrouble = (): void => expect(wrong).toBeGreaterThan(0);
  return { window, beforeBatch: nothing, expectTrouble };
}

/** C066: from the middle on every write is answered by -OOM, and reads work. */
export async function fullRedis(): Promise<WindowInTrouble> {
  const server = await startRedis({ policy: 'noeviction' });
  const client = openClient(server);
  const problems: string[] = [];
  const counts = counting(await openRedisWindow(server.url, (error) => problems.push(error.code)));
  const beforeBatch = async (batch: number): Promise<void> => {
    if (batch !== 12) return;
    await client.set('ballast', Buffer.alloc(4_000_000));
    await client.config('SET', 'maxmemory', '2mb');
    await expect(client.set('more', 'x')).rejects.toThrow(/OOM/);
  };
  const expectTrouble = (): void => {
    expect(problems).toEqual(['full']);
    expect(counts.failures).toBeGreaterThan(20);
    expect(counts).toMatchObject({ misses: 0 });
    expect(counts.hits).toBeGreaterThan(0);
  };
  return { window: counts.window, beforeBatch, expectTrouble };
}
