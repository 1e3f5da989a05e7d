import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createLocalWindow } from '../../src/window/local';
import { createRedisWindow } from '../../src/window/redis/window';
import type { Window } from '../../src/window/window';
import { onCleanup } from '../support/cleanup';
import { createTables } from '../support/fault-postgres';
import { expectSoundLedger, query, readEntries, readIncident, type StoredEntry } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { startPostgres } from '../support/postgres';
import { startRedis } from '../support/redis';
import { makeServerFolder } from '../support/server-user';
import { sharedRedisUrl } from '../support/shared-servers';
import { until } from '../support/wait';

const FEED = 'cad-north';
const CONTRACT = caseContract({
  rest: 'effects:\n  - { do: increment, field: count, by: { const: "1" } }\nforward: { topic: "cop/{incident}" }',
});

const payloads = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => b(first + i));
const outcomes = (entries: readonly StoredEntry[]) => [...new Set(entries.map(({ outcome }) => outcome))];
const terms = (entries: readonly StoredEntry[]) => [...new Set(entries.map(({ term }) => term))];

async function termEvents(url: string) {
  const rows = await query<{ actor: string; detail: string }>(
    url,
    "SELECT actor, detail FROM admin_event WHERE kind = 'TERM_OPENED' ORDER BY position",
  );
  return rows.map(({ actor, detail }) => ({ actor, ...(JSON.parse(detail) as object) }));
}

const noWindow: Window = {
  lookup: () => Promise.resolve(null),
  record: () => Promise.resolve(false),
  close: () => Promise.resolve(),
};

/** Windows on one Redis that share what they know. */
function redisWindows(url = sharedRedisUrl()): () => Promise<Window> {
  const keyPrefix = `test-${randomBytes(6).toString('hex')}`;
  return async () => {
    const window = createRedisWindow({
      url,
      keyPrefix,
      commandTimeoutMs: 5_000,
      onProblem: () => undefined,
      onRecovered: () => undefined,
    });
    onCleanup(() => window.close());
    await window.checkRedis();
    return window;
  };
}

/** A server that can be put back to its last backup, on the same port. */
async function startRestorable() {
  const backups = makeServerFolder('backup');
  onCleanup(() => rmSync(backups, { recursive: true, force: true }));
  let server = await startPostgres();
  let dataDir = '';
  let count = 0;
  const url = await createTables(server);
  return {
    url,
    backUp: async () => {
      dataDir = join(backups, String((count += 1))); // the server may be running on the one before
      await server.copyData(dataDir);
    },
    restore: async () => {
      await server.stop('immediate');
      server = await startPostgres({ port: server.port, dataDir });
    },
  };
}

describe('C083: Postgres is restored to a copy from before', () => {
  it('Redis remembers: what the broker delivers again is applied, and the new term is on record', async () => {
    const { url, backUp, restore } = await startRestorable();
    const open = redisWindows();
    const before = await startPipeline({ url, contract: CONTRACT, window: await open() });
    await before.deliver(...payloads(1, 10));
    await backUp();
    const lost = await before.deliver(...payloads(11, 20));
    before.abandon();
    await restore();
    expect(await readEntries(url, FEED)).toHaveLength(10);

    // Another instance, which remembers nothing itself.
    const after = await startPipeline({ url, contract: CONTRACT, window: await open() });
    const again = await after.deliver(...payloads(11, 20));
    expect(outcomes(again)).toEqual(['APPLIED']);
    expect(terms(again)).toEqual([2]);
    expect(again.map(({ position }) => position)).toEqual(lost.map(({ position }) => position));
    const remembered = { term: 1, size: 20, lastLeaf: lost[9]?.leafHash };
    expect(await termEvents(url)).toEqual([{ actor: 'replay-ledger', found: { term: 1, size: 10 }, remembered }]);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 20 });

    // The window is of the new term, also for what it knew before.
    const replays = await after.deliver(b(5), b(15));
    expect(replays.map(({ original, tier }) => [original, tier])).toEqual([
      [4, 'WINDOW'],
      [14, 'WINDOW'],
    ]);
    expect(await query(url, 'SELECT term, count(*)::int FROM outbox GROUP BY term ORDER BY term')).toEqual([
      { term: 1, count: 10 },
      { term: 2, count: 10 },
    ]);
    await expectSoundLedger(url, FEED);
  });

  it.each([
    ['no window', () => noWindow],
    ['the window in the process', createLocalWindow],
  ])('an instance that went on remembers by itself, with %s', async (_, window) => {
    const { url, backUp, restore } = await startRestorable();
    const path = await startPipeline({ url, contract: CONTRACT, window: window() });
    await path.deliver(...payloads(1, 10));
    await backUp();
    await path.deliver(...payloads(11, 15));
    await restore();
    const again = await path.deliver(b(3), ...payloads(11, 16));
    expect(again.map(({ outcome }) => outcome)).toEqual(['DUPLICATE_SUPPRESSED', ...Array<string>(6).fill('APPLIED')]);
    expect(terms(again)).toEqual([2]);
    expect(await termEvents(url)).toHaveLength(1);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 16 });
    await expectSoundLedger(url, FEED);
  });

  it.each([
    ['as many', 5],
    ['more', 8],
  ])('another instance has written %s entries since: the memory disagrees', async (_, written) => {
    const { url, backUp, restore } = await startRestorable();
    const witness = await startPipeline({ url, contract: CONTRACT, window: noWindow });
    await witness.deliver(...payloads(1, 10));
    await backUp();
    await witness.deliver(...payloads(11, 15));
    await restore();
    // Nobody told this one, so that it goes on in the term it finds.
    const unaware = await startPipeline({ url, contract: CONTRACT, window: noWindow });
    const others = Array.from({ length: written }, (_unused, index) => b(index + 1, { src: 'e2' }));
    expect(terms(await unaware.deliver(...others))).toEqual([1]);

    const again = await witness.deliver(...payloads(11, 15));
    expect(outcomes(again)).toEqual(['APPLIED']);
    expect(terms(again)).toEqual([2]);
    // What the other remembers is of the former term, and no witness against the new one.
    expect(terms(await unaware.deliver(b(written + 1, { src: 'e2' })))).toEqual([2]);
    expect(await termEvents(url)).toHaveLength(1);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 15 + written + 1 });
    await expectSoundLedger(url, FEED);
  });

  it('once more: each restore opens a term of its own', async () => {
    const { url, backUp, restore } = await startRestorable();
    const path = await startPipeline({ url, contract: CONTRACT, window: await redisWindows()() });
    await path.deliver(b(1));
    await backUp();
    await path.deliver(b(2));
    await restore();
    await path.deliver(b(2), b(3));
    await backUp();
    await path.deliver(b(4));
    await restore();
    expect(terms(await path.deliver(b(4)))).toEqual([3]);
    expect(await termEvents(url)).toHaveLength(2);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 4 });
    await expectSoundLedger(url, FEED);
  });
});

describe('nothing went back in time', () => {
  it('no term is opened by two instances in turn, nor by a Redis that forgets or is put back', async () => {
    const redis = await startRedis();
    const client = new Redis(redis.url);
    onCleanup(() => client.disconnect());
    const open = redisWindows(redis.url);
    const one = await startPipeline({ contract: CONTRACT, window: await open() });
    const two = await startPipeline({ contract: CONTRACT, window: await open(), url: one.url });
    for (let n = 1; n <= 21; n += 3) {
      await one.deliver(b(n), b(n));
      await two.deliver(b(n + 1), b(n));
      if (n % 2 === 0) await client.flushall();
      await one.deliver(b(n + 2));
    }
    expect(await termEvents(one.url)).toEqual([]);
    expect(terms(await expectSoundLedger(one.url, FEED))).toEqual([1]);
    expect(await readIncident(one.url, 'I-77')).toEqual({ count: 21 });
  });

  it('C067: a Redis that a failover put back costs nothing, and is put right by the next batch', async () => {
    const redis = await startRedis();
    const client = new Redis(redis.url);
    onCleanup(() => client.disconnect());
    const window = await redisWindows(redis.url)();
    const path = await startPipeline({ contract: CONTRACT, window });
    path.offer(...payloads(1, 81).map((payload) => delivery(payload)));
    await until(() => path.acknowledged.length === 81, { what: 'the messages of before' });
    const [memoryKey] = await client.keys('*:memory');
    if (memoryKey === undefined) throw new Error('the window remembers nothing');
    const then = await client.hgetall(memoryKey);
    await path.deliver(...payloads(82, 91));
    await client.hset(memoryKey, then);

    const entries = await path.deliver(...payloads(82, 92));
    expect(entries.map(({ outcome }) => outcome)).toEqual([
      ...Array<string>(10).fill('DUPLICATE_SUPPRESSED'),
      'APPLIED',
    ]);
    expect((await window.lookup(FEED, []))?.memory).toMatchObject({ term: 1, size: 81 + 10 + 11 });
    expect(await termEvents(path.url)).toEqual([]);
    await expectSoundLedger(path.url, FEED);
  });
});
