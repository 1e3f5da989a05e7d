import { Redis } from 'ioredis';
import type { WakeUps } from '../../src/live/port';
import { createRedisWakeUps } from '../../src/live/redis';
import { connectRedis, disconnectRedis } from '../../src/window/redis/connect';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis';
import { until } from '../support/wait';

/** An instance, and what its listener heard. */
function instance(url: string): { wakeUps: WakeUps; heard: string[] } {
  const wakeUps = createRedisWakeUps({
    connect: (name) => connectRedis(url, { name }),
    disconnect: disconnectRedis,
    keyPrefix: 'rl',
  });
  onCleanup(() => wakeUps.close());
  const heard: string[] = [];
  wakeUps.subscribe((feed, size) => heard.push(`${feed} ${size}`));
  return { wakeUps, heard };
}

/** Notifies until the other hears it: an instance that has just connected may miss the first ones. */
async function untilHeard(from: WakeUps, feed: string, heard: readonly string[]): Promise<void> {
  await until(
    () => {
      from.notify(feed, 1);
      return heard.includes(`${feed} 1`);
    },
    { what: `a wake-up for ${feed}` },
  );
}

async function ownClient(url: string): Promise<Redis> {
  const redis = new Redis(url, { disconnectTimeout: 100 });
  redis.on('error', () => undefined);
  onCleanup(() => redis.disconnect());
  await redis.ping();
  return redis;
}

test('reach the other instance; our own come once', async () => {
  const { url } = await startRedis();
  const [one, other] = [instance(url), instance(url)];
  await untilHeard(one.wakeUps, 'first', other.heard);
  await untilHeard(other.wakeUps, 'second', one.heard);
  one.heard.length = 0;
  one.wakeUps.notify('a', 7);
  await until(() => other.heard.includes('a 7'), { what: 'the wake-up' });
  // Published after ours, on the same channel, heard by us: then ours would have come back by now.
  other.wakeUps.notify('b', 8);
  await until(() => one.heard.includes('b 8'), { what: 'the answer' });
  expect(one.heard.filter((text) => text === 'a 7')).toHaveLength(1);
});

test('many in one turn: the newest size of every feed arrives', async () => {
  const { url } = await startRedis();
  const [one, other] = [instance(url), instance(url)];
  await untilHeard(one.wakeUps, 'first', other.heard);
  for (let size = 1; size <= 1000; size += 1) {
    one.wakeUps.notify('a', size);
    one.wakeUps.notify('b', size);
  }
  await until(() => other.heard.includes('a 1000') && other.heard.includes('b 1000'), { what: 'the newest sizes' });
  expect(other.heard.length).toBeLessThan(1000);
});

test('Redis absent, started, killed, started, frozen, resumed: local ones go on, the others come back', async () => {
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const [one, other] = [instance(url), instance(url)];
  one.wakeUps.notify('absent', 1);
  expect(one.heard).toEqual(['absent 1']);

  const redis = await startRedis({ port });
  await untilHeard(one.wakeUps, 'started', other.heard);
  for (const round of ['again', 'and again']) {
    await redis.kill9();
    one.wakeUps.notify(`down ${round}`, 1);
    expect(one.heard).toContain(`down ${round} 1`);
    await redis.start();
    await untilHeard(one.wakeUps, round, other.heard);
  }
  redis.freeze();
  for (let size = 1; size <= 1000; size += 1) {
    one.wakeUps.notify('frozen', size);
  }
  expect(one.heard).toContain('frozen 1000');
  await new Promise((resolve) => setTimeout(resolve, 3000)); // longer than a silent socket is kept
  redis.resume();
  await untilHeard(one.wakeUps, 'resumed', other.heard);
});

test('what is no wake-up is ignored', async () => {
  const { url } = await startRedis();
  const [one, other] = [instance(url), instance(url)];
  await untilHeard(one.wakeUps, 'first', other.heard);
  const redis = await ownClient(url);
  const messages = ['', '{', 'null', '{}', '[]', '["x"]', '["x","a"]', '["x","a","1"]', '["x",1,1]', '[1,"a",1]'];
  for (const text of [...messages, '["x","a",-1]', '["x","a",1.5]', '["x","a",1e30]', '[null,null,null]']) {
    expect(await redis.publish('rl:heads', text)).toBeGreaterThan(0);
  }
  await redis.publish('rl:heads', '["x","{a}\\u0000 b",5]');
  await until(() => other.heard.includes('{a}\0 b 5'), { what: 'the last one' });
  expect(other.heard.filter((text) => text !== 'first 1')).toEqual(['{a}\0 b 5']);
});

test('a subscription that is refused is asked for again', async () => {
  const { url } = await startRedis();
  const redis = await ownClient(url);
  await redis.acl('SETUSER', 'default', '-subscribe');
  const [one, other] = [instance(url), instance(url)];
  await until(async () => /cmdstat_subscribe:.*rejected_calls=[2-9]/.test(await redis.info('commandstats')), {
    what: 'both to be refused',
  });
  one.wakeUps.notify('refused', 1);
  expect(one.heard).toEqual(['refused 1']);
  await redis.acl('SETUSER', 'default', '+subscribe');
  await untilHeard(one.wakeUps, 'allowed', other.heard);
});

test('closed: leaves no connection behind, also while Redis is away', async () => {
  const redis = await startRedis();
  const { wakeUps } = instance(redis.url);
  const client = await ownClient(redis.url);
  const ours = async (): Promise<number> =>
    ((await client.client('LIST')) as string).split('name=replay-ledger').length - 1;
  await until(async () => (await ours()) === 2, { what: 'the connections' });
  await wakeUps.close();
  await until(async () => (await ours()) === 0, { what: 'the connections to end' });

  const away = instance(redis.url);
  await redis.kill9();
  away.wakeUps.notify('a', 1);
  await away.wakeUps.close();
  expect(away.heard).toEqual(['a 1']);
});
