import { Redis } from 'ioredis';
import { createLocalWindow } from '../../src/window/local';
import { createRedisWindow, type RedisWindow } from '../../src/window/redis/window';
import { caseTitle, countDecisions, decisionsOf, land, range } from '../support/case-run';
import { onCleanup } from '../support/cleanup';
import { query, readIncident } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { startRedis, type RedisOptions } from '../support/redis';
import { until } from '../support/wait';

const COUNTING = 'effects:\n  - { do: increment, field: n, by: { const: "1" } }';

/** A window on a Redis of its own, and a client to look at that. */
async function redisWindow(options: RedisOptions = {}): Promise<{ window: RedisWindow; redis: Redis }> {
  const server = await startRedis(options);
  const ignore = (): void => undefined;
  const window = createRedisWindow({
    url: server.url,
    keyPrefix: 'rl',
    commandTimeoutMs: 5000,
    onProblem: ignore,
    onRecovered: ignore,
  });
  onCleanup(() => window.close());
  await window.checkRedis(20_000);
  const redis = new Redis(server.url);
  onCleanup(() => redis.disconnect());
  return { window, redis };
}

describe('the window is a hint', () => {
  it(`${caseTitle('C056')}`, async () => {
    const { window, redis } = await redisWindow();
    let failures = 1;
    const pipeline = await startPipeline({
      contract: caseContract({ rest: COUNTING }),
      window,
      onStep: (step) => {
        if (step === 'written' && failures-- > 0) throw new Error('the connection is gone before the commit');
      },
    });
    expect(decisionsOf(await land(pipeline, b(100)))).toEqual(['APPLIED']);
    expect(pipeline.steps.filter((step) => step === 'looked-up')).toHaveLength(2);
    // It was not told of what never was.
    expect(pipeline.steps.filter((step) => step === 'recorded')).toHaveLength(1);
    expect(await redis.keys('*')).not.toEqual([]);
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 1 });
  });

  it(`C056: a position in the window that no entry backs suppresses nothing`, async () => {
    const window = createLocalWindow();
    const probe = await startPipeline();
    const [seen] = await land(probe, b(100));
    const pipeline = await startPipeline({ window });
    await land(pipeline, b(1), b(99));
    const [entry] = (await pipeline.entries()).slice(-1);
    // As if somebody had marked the key before the commit, at an entry that exists and is another.
    await window.record('cad-north', {
      memory: { term: 1, size: 2, lastLeaf: entry?.leafHash ?? '' },
      recordedAtMs: Date.now(),
      positions: new Map([[`1:${seen?.key}`, 0]]),
      windowSeconds: 600,
      maxEntries: 1000,
    });
    expect(decisionsOf(await land(pipeline, b(100), b(100)))).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW']);
  });

  it(caseTitle('C060'), async () => {
    const { window, redis } = await redisWindow();
    const first = await startPipeline({ window });
    await land(first, ...range(1, 20).map((n) => b(n)));
    await first.stop();
    await redis.flushall();
    const second = await startPipeline({ url: first.url, window });
    const replays = await land(second, ...range(1, 20).map((n) => b(n)));
    // The tier is that of the ledger: a lost cache is no smaller window.
    expect(countDecisions(replays)).toEqual({ 'DUPLICATE_SUPPRESSED WINDOW': 20 });
    expect(replays.map(({ original }) => original)).toEqual(range(0, 19));
    const hints = await window.lookup(
      'cad-north',
      replays.map(({ key }) => `1:${key}`),
    );
    expect([...(hints?.positions.values() ?? [])].sort((x, y) => x - y)).toEqual(range(0, 19));
  });

  it(`${caseTitle('C061')} (a source with a mark)`, async () => {
    const pipeline = await startPipeline({
      contract: caseContract({ dedup: '{ windowSeconds: 600, maxEntries: 3 }' }),
    });
    await land(pipeline, ...range(1, 5).map((n) => b(n)));
    const replays = await land(pipeline, b(1), b(3), b(5));
    // Entries 0, 2 and 4 are repeated by 5, 6 and 7: five, four and three away.
    expect(decisionsOf(replays)).toEqual([
      'DUPLICATE_SUPPRESSED LEDGER',
      'DUPLICATE_SUPPRESSED LEDGER',
      'DUPLICATE_SUPPRESSED WINDOW',
    ]);
  });

  it(`${caseTitle('C061')} (a feed without order)`, async () => {
    const identity =
      '{ mode: eventId, agency: { pointer: /agency }, source: { pointer: /src }, eventId: { pointer: /seq } }';
    const dedup = '{ windowSeconds: 600, maxEntries: 3 }';
    const pipeline = await startPipeline({ contract: caseContract({ identity, dedup }) });
    await land(pipeline, ...range(1, 5).map((n) => b(n)));
    expect(decisionsOf(await land(pipeline, b(1)))).toEqual(['DUPLICATE_SUPPRESSED LEDGER']);
  });

  it(caseTitle('C062'), async () => {
    const forward = 'forward: { topic: "cop/{incident}" }';
    const pipeline = await startPipeline({ contract: caseContract({ rest: `${COUNTING}\n${forward}` }) });
    await land(pipeline, b(110));
    const state = async (): Promise<unknown> =>
      Promise.all(
        ['incident_field', 'source_head', 'applied_key', 'outbox'].map((table) =>
          query(pipeline.url, `SELECT * FROM ${table}`),
        ),
      );
    const before = await state();
    expect(decisionsOf(await land(pipeline, b(110)))).toEqual(['DUPLICATE_SUPPRESSED WINDOW']);
    expect(decisionsOf(await land(pipeline, b(109), b(110, { status: 'X' })))).toEqual([
      'STALE_OUT_OF_ORDER HIGH_WATER_MARK',
      'KEY_CONFLICT',
    ]);
    expect(await state()).toEqual(before);
  });

  it(`${caseTitle('C064')} (40 rounds over three workers)`, async () => {
    const contract = caseContract({ rest: COUNTING });
    const first = await startPipeline({ contract, batchMaxDeliveries: 3 });
    const workers = [first];
    for (let n = 1; n < 3; n += 1)
      workers.push(await startPipeline({ contract, url: first.url, batchMaxDeliveries: 3 }));
    const rounds = range(1, 40);
    const copies = 4;
    for (const round of rounds) {
      for (const worker of workers)
        worker.offer(...Array.from({ length: copies }, () => delivery(b(round, { src: `e${round}` }))));
    }
    await until(() => workers.every(({ acknowledged }) => acknowledged.length === rounds.length * copies), {
      what: 'every copy',
    });
    const counts = countDecisions(await first.entries());
    expect(counts).toMatchObject({ APPLIED: rounds.length });
    expect(await readIncident(first.url, 'I-77')).toEqual({ n: rounds.length });
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(rounds.length * copies * workers.length);
  });
});

describe('Redis', () => {
  it(`${caseTitle('C065')} (10 000 keys)`, async () => {
    const { window, redis } = await redisWindow({ maxmemory: '3mb', policy: 'allkeys-lru' });
    const pipeline = await startPipeline({
      contract: caseContract({ dedup: '{ windowSeconds: 600, maxEntries: 100000 }', rest: COUNTING }),
      window,
    });
    await land(pipeline, ...range(1, 10_000).map((n) => b(n)));
    // The keys of a feed are one sorted set, so all of them go at once. That changes no decision.
    let fillers = 0;
    while ((await redis.dbsize()) > fillers) await redis.set(`filler-${(fillers += 1)}`, 'x'.repeat(50_000));
    expect(Number(/evicted_keys:(\d+)/.exec(await redis.info('stats'))?.[1])).toBeGreaterThan(0);
    const replays = await land(pipeline, ...range(1, 1000).map((n) => b(n)));
    expect(countDecisions(replays)).toEqual({ 'DUPLICATE_SUPPRESSED WINDOW': 1000 });
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 10_000 });
  });

  it(caseTitle('C067'), async () => {
    const { window, redis } = await redisWindow();
    const pipeline = await startPipeline({ contract: caseContract({ rest: COUNTING }), window });
    await land(pipeline, ...range(1, 81).map((n) => b(n)));
    const copies = await Promise.all(
      (await redis.keys('*')).map(async (key) => [key, await redis.dumpBuffer(key)] as const),
    );
    await land(pipeline, ...range(82, 91).map((n) => b(n)));
    await redis.flushall();
    for (const [key, copy] of copies) if (copy !== null) await redis.restore(key, 0, copy);
    const entries = await land(pipeline, ...range(82, 92).map((n) => b(n)));
    expect(decisionsOf(entries)).toEqual([...Array<string>(10).fill('DUPLICATE_SUPPRESSED WINDOW'), 'APPLIED']);
    expect(await query(pipeline.url, 'SELECT mark::text FROM source_head')).toEqual([{ mark: '92' }]);
    expect(await query(pipeline.url, 'SELECT term FROM feed_head')).toEqual([{ term: 1 }]);
    const last = entries.at(-1);
    const hints = await window.lookup('cad-north', [`1:${last?.key}`]);
    expect(hints).toMatchObject({ memory: { size: 102, lastLeaf: last?.leafHash } });
    expect(hints?.positions.get(`1:${last?.key}`)).toBe(101);
  });
});
