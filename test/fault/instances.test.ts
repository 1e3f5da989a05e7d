import { consumes, startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { applied, countOutcomes, expectEachAppliedOnce, faultContract, faultMessages } from '../support/fault-feed';
import { expectSoundLedger, query, readIncident } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { b, caseContract, delivery, startPipeline, type PipelineOptions, type TestPipeline } from '../support/pipeline';
import { withClient } from '../support/postgres';
import { sleep, until } from '../support/wait';

const FEED = 'cad-north';
const COUNTING = caseContract({
  dedup: '{ windowSeconds: 600, maxEntries: 10000, ordering: tolerant }',
  rest: 'effects:\n  - { do: increment, field: count, by: { const: "1" } }',
});

/** Several workers on one feed, as if every one of them held its lease. */
async function startWorkers(count: number, options: PipelineOptions = {}): Promise<TestPipeline[]> {
  const first = await startPipeline({ contract: COUNTING, poolSize: 2, ...options });
  const workers = [first];
  while (workers.length < count) {
    workers.push(await startPipeline({ contract: COUNTING, poolSize: 2, ...options, url: first.url }));
  }
  return workers;
}

async function leases(url: string): Promise<{ name: string; owner: string }[]> {
  return query(url, "SELECT name, owner FROM lease WHERE name LIKE 'feed/%' AND expires_at > now() ORDER BY name");
}

describe('two instances', () => {
  const FEEDS = ['north', 'east', 'south', 'west'];

  it('share the feeds out, and one takes over what the other leaves when it is killed', async () => {
    const { url } = await createMigratedDatabase();
    const broker = await startMosquitto();
    const contracts = FEEDS.map((feed) => faultContract({ feed }));
    const setup: AppSetup = { databaseUrl: url, mqttUrl: broker.url, contracts, env: { BATCH_MAX_DELIVERIES: '20' } };
    const one = await startConsuming(setup);
    const two = startInstance(setup);
    await until(
      async () => {
        const owners = (await leases(url)).map(({ owner }) => owner);
        return owners.length === 4 && new Set(owners).size === 2 && owners.filter((o) => o === owners[0]).length === 2;
      },
      { what: 'two feeds each' },
    );

    const messages = FEEDS.map((feed) => ({ feed, list: faultMessages(3, 1, 60, feed) }));
    const half = messages.flatMap(({ list }) => list.slice(0, 90));
    const rest = messages.flatMap(({ list }) => list.slice(90));
    await publishAll(broker.url, half);
    await two.kill9();
    await publishAll(broker.url, rest);
    // Lease two seconds, looked at three times as often; the rest is patience with a slow machine.
    for (const { feed, list } of messages) await applied(url, list.length, feed, 20_000);
    expect(new Set((await leases(url)).map(({ owner }) => owner)).size).toBe(1);
    for (const feed of FEEDS) await consumes(one, feed);

    expect(await one.stop()).toEqual({ code: 0, signal: null });
    for (const { feed, list } of messages) await expectEachAppliedOnce(url, list, feed);
  });
});

describe('several workers on one feed at once', () => {
  it('C012: both get every message, each is applied once, and both acknowledge all', async () => {
    const workers = await startWorkers(2);
    const payloads = Array.from({ length: 200 }, (_, n) => b(n + 1));
    await Promise.all(
      workers.map(async (worker) => {
        for (const payload of payloads) {
          worker.offer(delivery(payload));
          if (Math.random() < 0.2) await sleep(Math.random() * 50);
        }
        await worker.stop();
      }),
    );
    for (const worker of workers) expect(worker.acknowledged).toHaveLength(200);
    const [{ url } = { url: '' }] = workers;
    const entries = await expectSoundLedger(url, FEED);
    expect(countOutcomes(entries)).toEqual({ APPLIED: 200, DUPLICATE_SUPPRESSED: 200 });
    expect(await readIncident(url, 'I-77')).toEqual({ count: 200 });
  });

  it('C064: fifty copies of a message over five workers, thirty rounds, are thirty effects', async () => {
    const workers = await startWorkers(5);
    const rounds = Array.from({ length: 30 }, (_, n) => b(n + 1));
    for (const payload of rounds) {
      for (const worker of workers) worker.offer(...Array.from({ length: 10 }, () => delivery(payload)));
    }
    await Promise.all(workers.map((worker) => worker.stop()));
    const [{ url } = { url: '' }] = workers;
    const entries = await expectSoundLedger(url, FEED);
    expect(countOutcomes(entries)).toEqual({ APPLIED: 30, DUPLICATE_SUPPRESSED: 30 * 49 });
    expect(await readIncident(url, 'I-77')).toEqual({ count: 30 });
  });

  it('C088: sixteen writers that begin an empty ledger together make one dense ledger', async () => {
    const workers = await startWorkers(16, { batchMaxDeliveries: 10 });
    workers.forEach((worker, index) => {
      worker.offer(...Array.from({ length: 100 }, (_, n) => delivery(b(n + 1, { src: `s${index}` }))));
    });
    await Promise.all(workers.map((worker) => worker.stop()));
    const [{ url } = { url: '' }] = workers;
    expect(countOutcomes(await expectSoundLedger(url, FEED))).toEqual({ APPLIED: 1600 });
    expect(await readIncident(url, 'I-77')).toEqual({ count: 1600 });
    expect(await query(url, "SELECT kind FROM admin_event WHERE kind = 'TERM_OPENED'")).toEqual([]);
  });
});

/** Keeps an incident locked until `release`: whoever needs it waits, with what it has locked before in hand. */
async function holdIncident(url: string, id: string) {
  await query(url, 'INSERT INTO incident (id) VALUES ($1)', [id]);
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let locked: () => void = () => undefined;
  const isLocked = new Promise<void>((resolve) => (locked = resolve));
  const done = withClient(url, async (client) => {
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM incident WHERE id = $1 FOR UPDATE', [id]);
    locked();
    await released;
    await client.query('COMMIT');
  });
  await isLocked;
  return {
    release: () => {
      release();
      return done;
    },
  };
}

/** Backends that wait for a lock, the one that has waited longest first. */
function waiting(url: string): Promise<{ pid: number }[]> {
  return query(
    url,
    `SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' ORDER BY query_start`,
  );
}

describe('C005 C058: a worker is held up inside its transaction, and the same message comes to another', () => {
  it('one effect: the second waits, and suppresses what the first applied', async () => {
    const [first, second] = await startWorkers(2);
    if (first === undefined || second === undefined) throw new Error('two workers were asked for');
    const hold = await holdIncident(first.url, 'I-77');
    first.offer(delivery(b(19_515)));
    await until(async () => (await waiting(first.url)).length === 1, { what: 'the first to wait' });
    second.offer(delivery(b(19_515), { dup: true }));
    await until(async () => (await waiting(first.url)).length === 2, { what: 'the second to wait' });
    await sleep(2_500); // longer than the shortest lease
    expect([...first.acknowledged, ...second.acknowledged]).toHaveLength(0);
    await hold.release();
    await Promise.all([first.stop(), second.stop()]);
    const entries = await expectSoundLedger(first.url, FEED);
    expect(entries.map(({ outcome, dup }) => [outcome, dup])).toEqual([
      ['APPLIED', false],
      ['DUPLICATE_SUPPRESSED', true],
    ]);
    expect(await readIncident(first.url, 'I-77')).toEqual({ count: 1 });
  });

  it('one effect: the first is rolled back, and the second applies it', async () => {
    const [first, second] = await startWorkers(2);
    if (first === undefined || second === undefined) throw new Error('two workers were asked for');
    const hold = await holdIncident(first.url, 'I-77');
    first.offer(delivery(b(102)));
    const holder = await until(async () => (await waiting(first.url))[0], { what: 'the first to wait' });
    second.offer(delivery(b(102), { dup: true }));
    await until(async () => (await waiting(first.url)).length === 2, { what: 'the second to wait' });
    await query(first.url, 'SELECT pg_terminate_backend($1)', [holder.pid]);
    await hold.release();
    await Promise.all([first.stop(), second.stop()]);
    const entries = await expectSoundLedger(first.url, FEED);
    expect(countOutcomes(entries)).toEqual({ APPLIED: 1, DUPLICATE_SUPPRESSED: 1 });
    expect([...first.acknowledged, ...second.acknowledged]).toHaveLength(2);
    expect(await readIncident(first.url, 'I-77')).toEqual({ count: 1 });
  });
});

describe('C077: batches name the same incidents in opposite orders', () => {
  const feedContract = (feed: string) =>
    caseContract({
      feed,
      topics: `["${feed}/+"]`,
      identity: '{ agency: { pointer: /agency }, source: { pointer: /src }, sequence: { pointer: /seq } }',
      rest: 'items: /items\neffects:\n  - { do: increment, field: count, by: { const: "1" } }',
    });
  const pair = (n: number, order: readonly string[]): string =>
    JSON.stringify({ items: order.map((src) => ({ agency: 'NFD', src, seq: n, incident: `I-${src}` })) });

  it('incidents are locked in one order: who waits for the first of them holds no other', async () => {
    const path = await startPipeline({ contract: feedContract('feed-one') });
    await query(path.url, "INSERT INTO incident (id) VALUES ('I-B')");
    const hold = await holdIncident(path.url, 'I-A');
    path.offer(delivery(pair(1, ['C', 'B', 'A']), { topic: 'feed-one/x' }));
    await until(async () => (await waiting(path.url)).length === 1, { what: 'the batch to wait' });
    await query(path.url, "SELECT 1 FROM incident WHERE id = 'I-B' FOR UPDATE NOWAIT");
    await hold.release();
    await path.stop();
    expect(countOutcomes(await expectSoundLedger(path.url, 'feed-one'))).toEqual({ APPLIED: 3 });
  });

  it('a hundred pairs of two feeds that share incidents: no deadlock, and each effect once', async () => {
    const one = await startPipeline({ contract: feedContract('feed-one'), batchMaxDeliveries: 1 });
    const two = await startPipeline({ contract: feedContract('feed-two'), batchMaxDeliveries: 1, url: one.url });
    const deadlocks = async () => {
      const [row] = await query<{ deadlocks: number }>(
        one.url,
        'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
      );
      return row?.deadlocks;
    };
    for (let n = 1; n <= 100; n += 1) {
      one.offer(delivery(pair(n, ['A', 'B']), { topic: 'feed-one/x' }));
      two.offer(delivery(pair(n, ['B', 'A']), { topic: 'feed-two/x' }));
    }
    await Promise.all([one.stop(), two.stop()]);
    for (const feed of ['feed-one', 'feed-two']) {
      expect(countOutcomes(await expectSoundLedger(one.url, feed))).toEqual({ APPLIED: 200 });
    }
    expect(await readIncident(one.url, 'I-A')).toEqual({ count: 200 });
    expect(await readIncident(one.url, 'I-B')).toEqual({ count: 200 });
    await Promise.all([one.database.close(), two.database.close()]); // a server process counts when it ends
    expect(await deadlocks()).toBe(0);
  });
});
