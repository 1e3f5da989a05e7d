/**
 * A subscriber who loses the connection over and over, on two instances with real wake-ups through Redis between them,
 * while both feeds are written: every decision once, in the order of its feed.
 */
import { createRedisWakeUps } from '../../src/live/redis';
import type { WakeUps } from '../../src/live/port';
import { connectRedis, disconnectRedis } from '../../src/window/redis/connect';
import { onCleanup } from '../support/cleanup';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import type { TestPipeline } from '../support/pipeline';
import { startRedis } from '../support/redis';
import { sleep, until } from '../support/wait';
import type { TestApi } from './api-fixture';
import { openOwn, startTestApi } from './api-fixture';
import type { Event } from './api-subscription-fixture';
import { latest, listen } from './api-subscription-fixture';

const DISCONNECTS = 100;
const FIELDS = 'position cursor feed { name } decision { outcome }';

interface Instance {
  readonly path: TestPipeline;
  readonly app: TestApi;
  /** Wake-ups for the feed of the other instance. */
  readonly heard: number[];
}

type Pair = readonly [Instance, Instance];

/** A worker of one feed, and an API for both, which hear of each other through Redis alone. */
async function startInstance(
  of: { readonly redis: string; readonly pollMs: number; readonly url?: string },
  feed: string,
  other: string,
): Promise<Instance> {
  const topics = `["${feed}/#"]`;
  const path = await startPipeline({ url: of.url, contract: caseContract({ feed, topics }) });
  const wakeUps: WakeUps = createRedisWakeUps({
    connect: (name) => connectRedis(of.redis, { name }),
    disconnect: disconnectRedis,
    keyPrefix: 'resume',
  });
  onCleanup(() => wakeUps.close());
  const heard: number[] = [];
  wakeUps.subscribe((name, size) => {
    if (name === other) heard.push(size);
  });
  path.wakeUps.subscribe((name, size) => wakeUps.notify(name, size));
  const app = await startTestApi({
    database: await openOwn(path.url),
    wakeUps,
    limits: { pollMs: of.pollMs },
  });
  return { path, app, heard };
}

async function startInstances(redis: string, pollMs: number): Promise<Pair> {
  const north = await startInstance({ redis, pollMs }, 'north', 'south');
  const south = await startInstance({ redis, pollMs, url: north.path.url }, 'south', 'north');
  await north.path.deliver(delivery(b(0), { topic: 'north/1' }));
  await south.path.deliver(delivery(b(0), { topic: 'south/1' }));
  return [north, south];
}

/** Writes to both feeds, every third message a replay, until it is stopped; then waits for what was written. */
function startLoad(instances: readonly Instance[]): () => Promise<void> {
  const end = new AbortController();
  let sent = 0;
  const running = (async () => {
    for (let n = 1; !end.signal.aborted; n += 2) {
      for (const { path } of instances) {
        const to = { topic: `${path.feed.name}/1` };
        path.offer(delivery(b(n), to), delivery(b(n + 1), to), delivery(b(n), to));
      }
      sent += 3;
      await sleep(15);
    }
  })();
  return async () => {
    end.abort();
    await running;
    await until(() => instances.every(({ path }) => path.acknowledged.length === sent + 1), {
      what: 'the load to land',
    });
  };
}

/** The same every time, as far as timers are. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Followed {
  readonly seen: readonly Event[];
  /** Connections that brought something before they were cut. */
  readonly fruitful: number;
}

/** Follows all feeds from `after`, on the instances in turn, and is cut off `DISCONNECTS` times. */
async function followBadly(instances: Pair, after: string, onDisconnect: (count: number) => void): Promise<Followed> {
  const seen: Event[] = [];
  const next = random(7);
  let fruitful = 0;
  for (let count = 1; count <= DISCONNECTS; count++) {
    const { app } = instances[next() < 0.5 ? 0 : 1];
    const client = app.client();
    const reading = listen(client, 'decisions', { after: seen.at(-1)?.cursor ?? after }, FIELDS);
    // From before the socket is open to well into the stream, on a fast machine or a busy one.
    if (next() < 0.5) await until(() => reading.events.length > 0, { what: 'an event', everyMs: 2 });
    await sleep(next() * 40);
    if (next() < 0.3) reading.stop();
    if (next() < 0.7) client.terminate();
    else void client.dispose();
    expect(reading.errors).toEqual([]);
    seen.push(...reading.events);
    if (reading.events.length > 0) fruitful++;
    onDisconnect(count);
  }
  return { seen, fruitful };
}

async function expectEachOnce(instances: Pair, { seen, fruitful }: Followed): Promise<void> {
  expect(fruitful).toBeGreaterThan(DISCONNECTS / 4);
  const rest = listen(instances[0].app.client(), 'decisions', { after: seen.at(-1)?.cursor }, FIELDS);
  const all = () => [...seen, ...rest.events];
  const sizes = instances.map(({ path }) => path.acknowledged.length);
  await until(() => all().length >= sizes.reduce((sum, size) => sum + size - 1, 0), { what: 'what is left' });
  rest.stop();
  for (const [index, { path }] of instances.entries()) {
    const positions = all().filter(({ feed }) => feed.name === path.feed.name);
    expect(positions.map(({ position }) => Number(position))).toEqual(
      Array.from({ length: (sizes[index] ?? 0) - 1 }, (_, n) => n + 1),
    );
    const replays = positions.filter(({ decision }) => decision.outcome === 'DUPLICATE_SUPPRESSED');
    expect(replays).toHaveLength(((sizes[index] ?? 0) - 1) / 3);
  }
  await until(
    () => instances.every(({ app }) => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0),
    { what: 'the release of every subscription' },
  );
  for (const { app } of instances) expect(app.log.filter(({ level }) => level === 'error')).toEqual([]);
}

describe('a subscriber who is disconnected 100 times under load', () => {
  it('sees every decision exactly once and in order', async () => {
    const redis = await startRedis();
    // Polled so seldom that the other instance's decisions come by Redis, or with a new connection.
    const instances = await startInstances(redis.url, 600_000);
    const after = await latest(instances[0].app);
    const stop = startLoad(instances);
    const followed = await followBadly(instances, after, () => undefined);
    await stop();
    await expectEachOnce(instances, followed);
    for (const { heard } of instances) expect(heard.length).toBeGreaterThan(10);
  });

  it('does so while Redis restarts', async () => {
    const redis = await startRedis();
    const instances = await startInstances(redis.url, 200);
    const after = await latest(instances[0].app);
    const stop = startLoad(instances);
    const trouble: Promise<void>[] = [];
    const followed = await followBadly(instances, after, (count) => {
      if (count === 20 || count === 60) trouble.push(redis.kill9());
      if (count === 35 || count === 70) trouble.push(Promise.all(trouble).then(() => redis.start()));
    });
    await Promise.all(trouble);
    const heardBefore = instances.map(({ heard }) => heard.length);
    await until(() => instances.every(({ heard }, index) => heard.length > (heardBefore[index] ?? 0)), {
      what: 'wake-ups through the Redis that came back',
    });
    await stop();
    await expectEachOnce(instances, followed);
  });
});
