import { Redis } from 'ioredis';
import { createRedisWindow } from '../../src/window/redis/window';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis';
import { until } from '../support/wait';
import { FEED, NAMES, T0, batch, key, start } from './window-redis-fixture';

describe('the keys', () => {
  test('C069: all of one feed are in one slot of a cluster, whatever its name, and say nothing of it', async () => {
    // The port of the cluster's own protocol is 10 000 higher, and has to be one.
    const port = await until(async () => [await freePort()].find((each) => each <= 55_535), { what: 'a low port' });
    const server = await startRedis({ port, args: ['--cluster-enabled', 'yes'] });
    const redis = new Redis(server.url, { disconnectTimeout: 100 });
    onCleanup(() => redis.disconnect());
    await redis.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => String(slot)));
    await until(async () => (await redis.cluster('INFO')).includes('cluster_state:ok'), { what: 'the cluster' });
    await expect(redis.mget('one', 'other')).rejects.toThrow('CROSSSLOT');

    const window = createRedisWindow({
      url: server.url,
      keyPrefix: 'rl',
      onProblem: (error) => {
        throw error;
      },
      onRecovered: () => undefined,
    });
    onCleanup(() => window.close());
    await window.checkRedis(20_000);
    const names = ['{x}', 'a}b{', '', '{}', '{NFD}', '{x}:keys'];
    for (const [index, feed] of names.entries()) {
      expect(await window.record(feed, batch(index, index + 1))).toBe(true);
      expect((await window.lookup(feed, [key(index)]))?.positions).toEqual(new Map([[key(index), index]]));
    }
    const written = await redis.keys('*');
    expect(written).toHaveLength(3 * names.length);
    for (const name of written) {
      expect(name).toMatch(/^rl:\{[0-9a-f]{16}\}:(memory|keys|marks)$/);
    }
  });

  test('keys and marks expire without traffic, the memory does not', async () => {
    const { window, redis } = await start();
    await window.record(FEED, { ...batch(0, 3), windowSeconds: 100 });
    for (const name of [NAMES.keys, NAMES.marks]) {
      const ttlMs = await redis.pttl(name);
      expect(ttlMs).toBeGreaterThan(100_000);
      expect(ttlMs).toBeLessThanOrEqual(160_000);
    }
    expect(await redis.pttl(NAMES.memory)).toBe(-1);
  });

  test('marks are bounded by maxEntries, however long the policy is', async () => {
    const { window, redis } = await start();
    for (let size = 1; size <= 50; size += 1) {
      await window.record(FEED, { ...batch(size - 1, size, T0 + size), windowSeconds: 1e9, maxEntries: 5 });
    }
    expect(await redis.zcard(NAMES.keys)).toBe(5);
    expect(await redis.zcard(NAMES.marks)).toBe(6);
  });
});

describe('the check at the start', () => {
  test('says version and policy, and nothing else where all is well', async () => {
    const { window } = await start();
    expect(await window.checkRedis()).toEqual({
      reachable: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/) as string,
      maxmemoryPolicy: 'noeviction',
      warnings: [],
    });
  });

  test('C065: works where CONFIG is forbidden', async () => {
    const { window, reports } = await start({ policy: 'volatile-ttl', args: ['--rename-command', 'CONFIG', ''] });
    const check = await window.checkRedis();
    expect(check.maxmemoryPolicy).toBe('volatile-ttl');
    expect(check.warnings).toHaveLength(1);
    expect(reports).toEqual([]);
  });

  test('reads CONFIG where INFO is forbidden, and admits where it can read neither', async () => {
    const { window, redis, reports } = await start({ policy: 'allkeys-random' });
    await redis.acl('SETUSER', 'default', '-info');
    expect(await window.checkRedis()).toMatchObject({ version: null, maxmemoryPolicy: 'allkeys-random' });
    await redis.acl('SETUSER', 'default', '-config');
    expect(await window.checkRedis()).toMatchObject({
      maxmemoryPolicy: null,
      warnings: [expect.stringContaining('does not tell')],
    });
    expect(await window.record(FEED, batch(0, 1))).toBe(true);
    expect(reports).toEqual([]);
  });

  test('a server without the commands of 6.2: null, one report', async () => {
    const { window, reports } = await start({ args: ['--rename-command', 'ZMSCORE', ''] });
    await window.record(FEED, batch(0, 1));
    expect(await window.lookup(FEED, [key(0)])).toBeNull();
    expect(await window.lookup(FEED, [key(0)])).toBeNull();
    expect(reports).toEqual(['problem: unsupported']);
  });
});
