import { Redis } from 'ioredis';
import type { RedisError } from '../../src/window/redis/error';
import { feedKeys } from '../../src/window/redis/keys';
import { type RedisWindow, createRedisWindow } from '../../src/window/redis/window';
import type { WindowUpdate } from '../../src/window/window';
import { onCleanup } from '../support/cleanup';
import { type RedisOptions, startRedis } from '../support/redis';

export const FEED = 'county-fire-cad';
export const NAMES = feedKeys('rl', FEED);
export const LEAF = 'cd'.repeat(32);
export const T0 = 1_700_000_000_000;

export function key(number: number): string {
  return `1:${number.toString(16).padStart(64, '0')}`;
}

/** Entries `from … size - 1`; the entry at position p has key p. */
export function batch(from: number, size: number, atMs = T0): WindowUpdate {
  const numbers = Array.from({ length: size - from }, (_, index) => from + index);
  return {
    memory: { term: 1, size, lastLeaf: LEAF },
    recordedAtMs: atMs,
    positions: new Map(numbers.map((number) => [key(number), number])),
    windowSeconds: 600,
    maxEntries: 100_000,
  };
}

export interface Fixture {
  readonly window: RedisWindow;
  readonly reports: string[];
  /** A client of the test's own. */
  readonly redis: Redis;
}

/** A window on a server of its own. */
export async function start(options: RedisOptions = {}): Promise<Fixture> {
  const server = await startRedis(options);
  const reports: string[] = [];
  const window = createRedisWindow({
    url: server.url,
    keyPrefix: 'rl',
    commandTimeoutMs: 5000,
    onProblem: (error: RedisError) => reports.push(`problem: ${error.code}`),
    onRecovered: () => reports.push('recovered'),
  });
  onCleanup(() => window.close());
  expect((await window.checkRedis(20_000)).reachable).toBe(true);
  const redis = new Redis(server.url, { disconnectTimeout: 100 });
  redis.on('error', () => undefined);
  onCleanup(() => redis.disconnect());
  return { window, reports, redis };
}

/** Numbers of the keys below `limit` that the window knows. */
export async function known(window: RedisWindow, limit: number): Promise<number[]> {
  const numbers = Array.from({ length: limit }, (_, number) => number);
  const hints = await window.lookup(FEED, numbers.map(key));
  return numbers.filter((number) => hints?.positions.get(key(number)) === number);
}
