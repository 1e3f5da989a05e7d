import { randomUUID } from 'node:crypto';
import { createLocalWakeUps } from '../../src/live/local';
import type { WakeUps } from '../../src/live/port';
import { createRedisWakeUps } from '../../src/live/redis';
import { connectRedis, disconnectRedis } from '../../src/window/redis/connect';
import { sharedRedisUrl } from '../support/shared-servers';

const implementations: ReadonlyArray<readonly [string, () => WakeUps]> = [
  ['in this process', createLocalWakeUps],
  [
    'by Redis',
    () =>
      createRedisWakeUps({
        connect: (name) => connectRedis(sharedRedisUrl(), { name }),
        disconnect: disconnectRedis,
        keyPrefix: `test:${randomUUID()}`,
      }),
  ],
];

describe.each(implementations)('wake-ups %s', (_name, create) => {
  let wakeUps: WakeUps;

  beforeEach(() => {
    wakeUps = create();
  });

  afterEach(() => wakeUps.close());

  /** Subscribes and writes down what comes. */
  function listen(): { heard: string[]; end: () => void } {
    const heard: string[] = [];
    const end = wakeUps.subscribe((feed, size) => heard.push(`${feed} ${size}`));
    return { heard, end };
  }

  test('every listener hears of every feed, before notify returns', () => {
    const [one, other] = [listen(), listen()];
    wakeUps.notify('a', 1);
    expect(one.heard).toEqual(['a 1']);
    wakeUps.notify('b', 2);
    wakeUps.notify('a', 3);
    expect(one.heard).toEqual(['a 1', 'b 2', 'a 3']);
    expect(other.heard).toEqual(one.heard);
  });

  test('nobody listens: nothing happens', () => {
    expect(() => wakeUps.notify('a', 1)).not.toThrow();
  });

  test('a listener that throws harms neither the others nor the one who notifies', () => {
    const before = listen();
    wakeUps.subscribe(() => {
      throw new Error('a listener of this test');
    });
    const after = listen();
    expect(() => wakeUps.notify('a', 1)).not.toThrow();
    expect([before.heard, after.heard]).toEqual([['a 1'], ['a 1']]);
  });

  test('unsubscribed: hears nothing more; twice does no harm', () => {
    const [one, other] = [listen(), listen()];
    one.end();
    one.end();
    wakeUps.notify('a', 1);
    expect([one.heard, other.heard]).toEqual([[], ['a 1']]);
  });

  test('the same function twice is two listeners', () => {
    const listener = jest.fn();
    const end = wakeUps.subscribe(listener);
    wakeUps.subscribe(listener);
    wakeUps.notify('a', 1);
    expect(listener).toHaveBeenCalledTimes(2);
    end();
    wakeUps.notify('a', 2);
    expect(listener).toHaveBeenCalledTimes(3);
  });

  test('subscribing and unsubscribing from within a wake-up', () => {
    const added = jest.fn();
    const removed = jest.fn();
    let end = (): void => undefined;
    wakeUps.subscribe(() => {
      end();
      wakeUps.subscribe(added);
    });
    end = wakeUps.subscribe(removed);
    wakeUps.notify('a', 1);
    expect(removed).not.toHaveBeenCalled();
    expect(added).not.toHaveBeenCalled();
    wakeUps.notify('a', 2);
    expect(added).toHaveBeenCalledTimes(1);
  });

  test('closed: silent, and closing twice does no harm', async () => {
    const { heard } = listen();
    await wakeUps.close();
    await wakeUps.close();
    const late = listen();
    expect(() => wakeUps.notify('a', 1)).not.toThrow();
    expect([heard, late.heard]).toEqual([[], []]);
    late.end();
  });
});
