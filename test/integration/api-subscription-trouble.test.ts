import WebSocket from 'ws';
import type { WakeUps } from '../../src/live/port';
import { b, startPipeline } from '../support/pipeline';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';
import { openOwn, startBoth, startTestApi } from './api-fixture';
import { deliverAll, listen, rawSubscription, settled } from './api-subscription-fixture';

/** Wake-ups that know how many listen to them. */
function counted(wakeUps: WakeUps): { readonly wakeUps: WakeUps; readonly listeners: () => number } {
  let count = 0;
  const subscribe: WakeUps['subscribe'] = (listener) => {
    const stop = wakeUps.subscribe(listener);
    count++;
    return () => {
      count--;
      stop();
    };
  };
  const counting = { ...wakeUps, notify: wakeUps.notify.bind(wakeUps), subscribe, close: () => wakeUps.close() };
  return { wakeUps: counting, listeners: () => count };
}

describe('subscriptions in trouble', () => {
  it('C098: releases everything within a second of a complete or a reset, without another event', async () => {
    const { app } = await startBoth();
    const reading = listen(app.client(), 'suppressions');
    await settled(app);
    reading.stop();
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, {
      what: 'release',
      timeoutMs: 1000,
    });

    const raw = await rawSubscription(app);
    await settled(app);
    (raw as unknown as { _socket: { resetAndDestroy(): void } })._socket.resetAndDestroy();
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, {
      what: 'release',
      timeoutMs: 1000,
    });
  });

  it('leaves nothing behind of 2000 subscriptions whose sockets go away at any moment', async () => {
    const path = await startPipeline();
    const { wakeUps, listeners } = counted(path.wakeUps);
    const app = await startTestApi({ database: path.database, wakeUps });
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const before = timers();
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        [0, 1, 3, 8, 21].map(async (ms) => {
          const socket = await rawSubscription(app, { wait: false, count: 20 });
          setTimeout(() => (ms === 3 ? socket.close() : socket.terminate()), ms + (round % 5));
        }),
      );
      if (round % 5 === 0) await path.deliver(b(round + 1));
    }
    await until(() => app.api.stats().sockets === 0, { what: 'the sockets to be gone' });
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, {
      what: 'release',
      timeoutMs: 2000,
    });
    // Each socket has a timer while it is there. Those of the connection pool come and go, and are few.
    await until(() => timers() < before + 20, { what: 'the timers to be gone' });
    expect(listeners()).toBe(1);
    expect(app.log.filter((line) => line.level === 'error')).toEqual([]);
    await app.api.close();
    expect(listeners()).toBe(0);
  });

  it('C100: a burst reaches a fast reader whole, while a reader who does not read is cut off with a reason', async () => {
    const { path, app } = await startBoth(undefined, { limits: { stalledAfterMs: 500 } });
    const text = 'x'.repeat(3000);
    const count = 5000;
    await deliverAll(
      path,
      Array.from({ length: count }, (_, n) => b(n, { text })),
    );
    const fast = listen(app.client(), 'suppressions', {}, 'position cursor');
    const stalled = await rawSubscription(app, { field: 'payload' });
    await settled(app, 2);
    // Neither reads nor answers: the kernel's buffers fill, then the service waits for it in vain.
    stalled.pause();
    let closed: [number, string] | null = null;
    stalled.on('close', (code, reason) => (closed = [code, String(reason)]));
    await deliverAll(
      path,
      Array.from({ length: count }, (_, n) => b(n, { text })),
    );
    await until(() => fast.events.length === count, { what: 'all suppressions' });
    expect(fast.positions()).toEqual(Array.from({ length: count }, (_, i) => count + i));
    await until(() => app.log.some((line) => line.message === 'socket cut off'), { what: 'the cut' });
    await settled(app, 1);
    stalled.resume();
    await until(() => closed !== null, { what: 'the close' });
    const cut = app.log.find((line) => line.message === 'socket cut off');
    expect(cut?.facts.reason).toBe('reading too slowly');
    expect(Number(cut?.facts.bufferedBytes)).toBeLessThan(2 * 1024 * 1024);
    expect(fast.errors).toEqual([]);
  });

  it('drops a socket that does not answer pings, and one that floods without reading', async () => {
    const { app } = await startBoth(undefined, {
      limits: { keepAliveMs: 50, maxBufferedBytes: 10_000, stalledAfterMs: 60_000 },
    });
    const silent = await rawSubscription(app);
    silent.pause();
    await until(() => app.log.some((line) => line.facts.reason === 'no answer to a ping'), { what: 'the cut' });
    await until(() => app.api.stats().sockets === 0, { what: 'the socket to be gone' });

    const flood = await rawSubscription(app);
    flood.pause();
    const ping = JSON.stringify({ type: 'ping', payload: { x: 'y'.repeat(100_000) } });
    for (let n = 0; n < 400 && !app.log.some((line) => line.facts.reason === 'too much unread'); n++) {
      if (flood.readyState === WebSocket.OPEN) flood.send(ping);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await until(() => app.api.stats().sockets === 0, { what: 'the socket to be gone' });
    expect(app.api.stats()).toMatchObject({ subscriptions: 0, waiting: 0 });
  });

  it('goes on by itself after a short loss of the database, and says so after a long one', async () => {
    const path = await startPipeline();
    const url = new URL(path.url);
    const proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    const database = await openOwn(url.href);
    const app = await startTestApi({ database, wakeUps: path.wakeUps, limits: { pollMs: 50, streamRetryMs: 1500 } });
    const reading = listen(app.client(), 'decisions');
    await settled(app);
    await proxy.refuse(true);
    proxy.cut();
    await path.deliver(b(1));
    await new Promise((resolve) => setTimeout(resolve, 300));
    await proxy.refuse(false);
    await until(() => reading.events.length === 1, { what: 'the event' });
    expect(reading.errors).toEqual([]);
    await settled(app);
    await proxy.refuse(true);
    proxy.cut();
    await path.deliver(b(2));
    await until(() => reading.errors.length === 1, { what: 'the error' });
    expect(reading.errors[0]?.extensions.code).toBe('SERVICE_UNAVAILABLE');
    expect(JSON.stringify(reading.errors)).not.toMatch(/127\.0\.0\.1|SELECT|ECONN|\/src\//);
    await until(reading.ended, { what: 'the end' });
  });

  it('ends subscriptions when the service ends', async () => {
    const { app } = await startBoth();
    const socket = await rawSubscription(app);
    await settled(app);
    const closed = new Promise<number>((resolve) => socket.on('close', resolve));
    await app.api.close();
    expect(await closed).toBe(1001);
    expect(app.api.stats()).toEqual({ sockets: 0, subscriptions: 0, waiting: 0 });
  });
});
