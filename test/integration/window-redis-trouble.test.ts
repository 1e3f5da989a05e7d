import { type Fixture, FEED, LEAF, NAMES, T0, batch, key, known, start } from './window-redis-fixture';

describe('a server that lacks room', () => {
  test('C066: full with noeviction: records are refused, look-ups go on, nothing is added behind its back', async () => {
    const { window, reports, redis } = await start({ maxmemory: '3mb' });
    await window.record(FEED, batch(0, 100));
    await redis.config('SET', 'maxmemory', '1');
    const members = await redis.zcard(NAMES.keys);

    for (let size = 200; size <= 500; size += 100) {
      expect(await window.record(FEED, batch(size - 100, size))).toBe(false);
      expect(await known(window, 500)).toHaveLength(100);
    }
    // A feed that it never saw, and a newer term: deletions come first there, and must not open the door.
    expect(await window.record('another', batch(0, 100))).toBe(false);
    expect((await window.lookup('another', [key(1)]))?.memory).toBeNull();
    expect(await redis.zcard(NAMES.keys)).toBe(members);
    expect(reports).toEqual(['problem: full']);

    await redis.config('SET', 'maxmemory', '0');
    expect(await window.record(FEED, batch(500, 501))).toBe(true);
    expect(reports).toEqual(['problem: full', 'recovered']);
    expect(await known(window, 501)).toEqual([...Array.from({ length: 100 }, (_, number) => number), 500]);
  });

  test('C066: a full server is trimmed all the same, so that it can take keys again', async () => {
    const { window, redis } = await start();
    await window.record(FEED, batch(0, 10));
    await window.record(FEED, batch(10, 20, T0 + 1000));
    await redis.config('SET', 'maxmemory', '1');
    expect(await window.record(FEED, batch(20, 30, T0 + 600_001))).toBe(false);
    expect(await known(window, 30)).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    const update = { ...batch(5, 10), memory: { term: 2, size: 10, lastLeaf: LEAF } };
    expect(await window.record(FEED, update)).toBe(false);
    expect(await redis.exists(NAMES.keys, NAMES.marks)).toBe(0);
  });

  test('C065: evicting: the check warns, and what is still known is right', async () => {
    const { window, redis } = await start({ maxmemory: '3mb', policy: 'allkeys-lru' });
    const check = await window.checkRedis();
    expect(check.maxmemoryPolicy).toBe('allkeys-lru');
    expect(check.warnings).toEqual([expect.stringContaining('set noeviction')]);
    for (let size = 1000; size <= 50_000; size += 1000) {
      await window.record(FEED, batch(size - 1000, size));
    }
    expect(Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))?.[1])).toBeGreaterThan(0);
    const numbers = Array.from({ length: 50_000 }, (_, number) => number);
    const hints = await window.lookup(FEED, numbers.map(key));
    for (const [found, position] of hints?.positions ?? []) {
      expect(found).toBe(key(position));
    }
    expect(hints?.positions.size).toBeLessThan(50_000);
  });

  test('read-only: records are refused, look-ups go on', async () => {
    const { window, reports, redis } = await start();
    await window.record(FEED, batch(0, 3));
    await redis.replicaof('127.0.0.1', 1);
    expect(await window.record(FEED, batch(3, 4))).toBe(false);
    expect(reports).toEqual(['problem: read_only']);
    // It connects again, in case that the name leads elsewhere by now, and then stays.
    expect((await window.checkRedis(20_000)).reachable).toBe(true);
    expect(await window.record(FEED, batch(3, 4))).toBe(false);
    expect(await known(window, 4)).toEqual([0, 1, 2]);
    await redis.replicaof('NO', 'ONE');
    expect(await window.record(FEED, batch(3, 4))).toBe(true);
    expect(reports).toEqual(['problem: read_only', 'recovered']);
  });
});

describe('a server with nonsense in it', () => {
  test.each(['memory', 'keys', 'marks'] as const)(
    'another type under %s: repaired by the next record',
    async (part) => {
      const { window, reports, redis } = await start();
      await window.record(FEED, batch(0, 3));
      await redis.set(NAMES[part], 'not ours');
      const hints = await window.lookup(FEED, [key(0)]);
      if (part === 'marks') {
        expect(hints?.positions.get(key(0))).toBe(0);
      } else {
        expect(hints).toBeNull();
        expect(reports).toEqual(['problem: wrong_type']);
      }
      expect(await window.record(FEED, batch(3, 6))).toBe(true);
      expect(await known(window, 6)).toEqual(part === 'marks' ? [0, 1, 2, 3, 4, 5] : [3, 4, 5]);
      expect((await window.lookup(FEED, []))?.memory).toEqual({ term: 1, size: 6, lastLeaf: LEAF });
      expect(await redis.type(NAMES.keys)).toBe('zset');
    },
  );

  test.each([
    ['term', ''],
    ['term', '-1'],
    ['term', '0x1'],
    ['term', ' 1'],
    ['term', 'nan'],
    ['term', '1.5'],
    ['term', '9'.repeat(16)],
    ['size', 'inf'],
    ['size', '1e3'],
    ['size', '1\n'],
    ['size', '9'.repeat(400)],
    ['lastLeaf', ''],
    ['lastLeaf', 'CD'.repeat(32)],
    ['lastLeaf', `${LEAF}00`],
  ])('memory field %s is %j: it was never there', async (field, text) => {
    const { window, redis } = shared;
    await redis.flushall();
    await window.record(FEED, batch(0, 3));
    await redis.hset(NAMES.memory, field, text);
    expect(await window.lookup(FEED, [key(0)])).toEqual({ positions: new Map(), memory: null });
    expect(await window.record(FEED, batch(3, 6))).toBe(true);
    expect((await window.lookup(FEED, []))?.memory).toEqual({ term: 1, size: 6, lastLeaf: LEAF });
    expect((await known(window, 6)).slice(-3)).toEqual([3, 4, 5]);
    expect(shared.reports).toEqual([]);
  });

  test.each(['term', 'size', 'lastLeaf'])('memory field %s is gone', async (field) => {
    const { window, redis } = shared;
    await redis.flushall();
    await window.record(FEED, batch(0, 3));
    await redis.hdel(NAMES.memory, field);
    expect(await window.lookup(FEED, [key(0)])).toEqual({ positions: new Map(), memory: null });
    expect(await window.record(FEED, batch(3, 6))).toBe(true);
    expect((await window.lookup(FEED, []))?.memory).toEqual({ term: 1, size: 6, lastLeaf: LEAF });
  });

  test('positions that are none are left out, and marks that are none do no harm', async () => {
    const { window, redis } = shared;
    await redis.flushall();
    await window.record(FEED, batch(0, 4));
    const members = await redis.zrangeBuffer(NAMES.keys, 0, '-1');
    for (const [index, score] of ['1.5', '-3', 'inf'].entries()) {
      await redis.zadd(NAMES.keys, score, members[index] ?? '');
    }
    expect(await known(window, 4)).toEqual([3]);
    await redis.zadd(NAMES.marks, T0 + 1, 'garbage');
    expect(await window.record(FEED, batch(4, 5, T0 + 600_002))).toBe(true);
    expect(await known(window, 5)).toContain(4);
    expect(await redis.zscore(NAMES.marks, 'garbage')).toBeNull();
  });

  test('C067: a size set lower in Redis is raised by the next record, and never lowered by one', async () => {
    const { window, redis } = shared;
    await redis.flushall();
    await window.record(FEED, batch(82, 91));
    await redis.hset(NAMES.memory, 'size', '81');
    expect((await window.lookup(FEED, []))?.memory?.size).toBe(81);
    await window.record(FEED, batch(91, 92));
    expect((await window.lookup(FEED, []))?.memory?.size).toBe(92);
    await window.record(FEED, batch(70, 75));
    expect((await window.lookup(FEED, []))?.memory?.size).toBe(92);
  });

  let shared: Fixture;

  beforeAll(async () => {
    shared = await start();
  });
});
