import WebSocket from 'ws';
import type { Client } from 'graphql-ws';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { query } from '../support/ledger';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';
import type { Data, GraphqlError, TestApi } from './api-fixture';
import { openOwn, startBoth, startTestApi } from './api-fixture';

interface Event {
  readonly position: string;
  readonly cursor: string;
  readonly feed: { readonly name: string };
  readonly decision: Data;
}

interface Reading {
  readonly events: Event[];
  readonly errors: GraphqlError[];
  readonly positions: () => number[];
  readonly ended: () => boolean;
  stop(): void;
}

const FIELDS = 'position cursor feed { name } decision { outcome tier reason sequence payloadDigest original { position payloadDigest } }';

function listen(client: Client, name: 'decisions' | 'suppressions', variables: Record<string, unknown> = {}): Reading {
  const events: Event[] = [];
  const errors: GraphqlError[] = [];
  let ended = false;
  const document = `subscription ($filter: DecisionFilter, $after: String) { ${name}(filter: $filter, after: $after) { ${FIELDS} } }`;
  const stop = client.subscribe<Record<string, Event>>(
    { query: document, variables },
    {
      next: (result) => {
        const event = result.data?.[name];
        if (event) events.push(event);
        errors.push(...((result.errors ?? []) as unknown as GraphqlError[]));
      },
      error: (reason) => {
        if (Array.isArray(reason)) errors.push(...(reason as GraphqlError[]));
        ended = true;
      },
      complete: () => (ended = true),
    },
  );
  return { events, errors, positions: () => events.map((event) => Number(event.position)), ended: () => ended, stop };
}

const settled = (app: TestApi, subscriptions = 1) =>
  until(() => app.api.stats().subscriptions === subscriptions && app.api.stats().waiting === subscriptions, {
    what: `${subscriptions} waiting subscriptions`,
  });

const PAGE = 'query ($filter: DecisionFilter) { decisions(filter: $filter, last: 1) { pageInfo { endCursor } } }';

async function latest(app: TestApi, filter: object = {}): Promise<string> {
  return (await app.data(PAGE, { filter })).decisions.pageInfo.endCursor as string;
}

describe('subscriptions', () => {
  it('C096: after a cursor nothing is missed or repeated between query and subscription; without it, from now on', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(4), b(5), b(6), b(7), b(4));
    const cursor = await latest(app, { feed: 'cad-north' });
    await path.deliver(b(5), b(6));
    const resumed = listen(app.client(), 'suppressions', { after: cursor, filter: { feed: 'cad-north' } });
    const fresh = listen(app.client(), 'suppressions', { filter: { feed: 'cad-north' } });
    await settled(app, 2);
    await path.deliver(b(7));
    await until(() => resumed.events.length === 3 && fresh.events.length === 1, { what: 'the events' });
    expect(resumed.events.map((event) => event.decision.sequence)).toEqual(['5', '6', '7']);
    expect(resumed.positions()).toEqual([5, 6, 7]);
    expect(fresh.events[0]).toMatchObject({ position: '7', feed: { name: 'cad-north' }, decision: { sequence: '7' } });
    expect([...resumed.errors, ...fresh.errors]).toEqual([]);
  });

  it('C007: tells a conflict from a repetition, with both payload digests', async () => {
    const { path, app } = await startBoth();
    const reading = listen(app.client(), 'suppressions');
    await settled(app);
    const [first, second] = await path.deliver(b(500, { status: 'ONSCENE' }), b(500, { status: 'CLEARED' }), b(501));
    await until(() => reading.events.length === 1, { what: 'the event' });
    expect(reading.events[0]?.decision).toMatchObject({
      outcome: 'KEY_CONFLICT',
      reason: 'same_key_other_digest',
      payloadDigest: second?.payloadDigest,
      original: { position: '0', payloadDigest: first?.payloadDigest },
    });
  });

  it('delivers what the filter lets through, of one feed or of all, in order', async () => {
    const north = await startPipeline();
    const south = await startPipeline({ url: north.url, contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }) });
    const app = await startTestApi({ database: north.database, wakeUps: north.wakeUps, limits: { pollMs: 50 } });
    const all = listen(app.client(), 'decisions');
    const some = listen(app.client(), 'decisions', { filter: { feed: 'cad-south', incidentId: 'I-9', outcome: ['APPLIED'] } });
    const others = listen(app.client(), 'suppressions', { filter: { outcome: ['KEY_CONFLICT'] } });
    await settled(app, 3);
    await north.deliver(b(1, { incident: 'I-9' }), b(1, { incident: 'I-9' }));
    // The southern pipeline wakes nobody: the poll finds it.
    const southern = (n: number, changes: object) => delivery(b(n, { ...changes }), { topic: 'cad/south/e1' });
    await south.deliver(southern(1, {}), southern(2, { incident: 'I-9' }), southern(2, { incident: 'I-9' }), southern(2, {}));
    await until(() => all.events.length === 6 && some.events.length === 1 && others.events.length === 1, { what: 'the events' });
    const names = (reading: Reading) => reading.events.map((event) => `${event.feed.name}:${event.position}`);
    expect(names(all)).toEqual(['cad-north:0', 'cad-north:1', 'cad-south:0', 'cad-south:1', 'cad-south:2', 'cad-south:3']);
    expect(names(some)).toEqual(['cad-south:1']);
    expect(names(others)).toEqual(['cad-south:3']);
    // The cursor of an event resumes there, whatever filter it was made under.
    const again = listen(app.client(), 'decisions', { after: others.events[0]?.cursor });
    const rest = listen(app.client(), 'decisions', { after: all.events[1]?.cursor, filter: { feed: 'cad-south' } });
    await until(() => rest.events.length === 4, { what: 'the rest' });
    await settled(app, 5);
    expect(again.events).toEqual([]);
  });

  it('refuses what it cannot do, and says why', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const own = await latest(app, { feed: 'cad-north' });
    const codesOf = async (name: 'decisions' | 'suppressions', variables: Record<string, unknown>) => {
      const reading = listen(app.client(), name, variables);
      await until(reading.ended, { what: 'the end' });
      expect(reading.errors[0]?.extensions.correlationId).toMatch(/^[0-9a-f-]{36}$/);
      return reading.errors.map((error) => error.extensions.code);
    };
    expect(await codesOf('decisions', { after: 'AAAA' })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('decisions', { after: own })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('decisions', { filter: { feed: 'nope' } })).toEqual(['NOT_FOUND']);
    expect(await codesOf('decisions', { filter: { from: '2026-01-01T00:00:00Z' } })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('suppressions', { filter: { outcome: ['APPLIED'] } })).toEqual(['BAD_USER_INPUT']);
    await query(path.url, 'UPDATE feed_head SET term = 2');
    expect(await codesOf('decisions', { after: own, filter: { feed: 'cad-north' } })).toEqual(['LEDGER_TERM_CHANGED']);
    expect(app.api.stats()).toMatchObject({ subscriptions: 0, waiting: 0 });
  });

  it('ends with LEDGER_TERM_CHANGED when the ledger goes back in time under it', async () => {
    const { path, app } = await startBoth(undefined, { limits: { pollMs: 20 } });
    const reading = listen(app.client(), 'decisions');
    await settled(app);
    await query(path.url, 'UPDATE feed_head SET term = 2');
    await until(() => reading.errors.length > 0, { what: 'the error' });
    expect(reading.errors[0]?.extensions).toMatchObject({ code: 'LEDGER_TERM_CHANGED', feed: 'cad-north' });
    await until(reading.ended, { what: 'the end' });
    expect(app.api.stats()).toMatchObject({ subscriptions: 0, waiting: 0 });
  });

  it('C098: releases everything within a second of a complete or a reset, without another event', async () => {
    const { app } = await startBoth();
    const reading = listen(app.client(), 'suppressions');
    await settled(app);
    reading.stop();
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, { what: 'release', timeoutMs: 1000 });

    const raw = await rawSubscription(app);
    await settled(app);
    (raw as unknown as { _socket: { resetAndDestroy(): void } })._socket.resetAndDestroy();
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, { what: 'release', timeoutMs: 1000 });
  });

  it('leaves nothing behind of 2000 subscriptions whose sockets go away at any moment', async () => {
    const { path, app } = await startBoth();
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
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, { what: 'release', timeoutMs: 2000 });
    expect(app.log.filter((line) => line.level === 'error')).toEqual([]);
  });

  it('sees every decision exactly once, in order, over reconnects at random moments under load', async () => {
    const { path, app } = await startBoth();
    const total = 2000;
    const load = (async () => {
      for (let n = 0; n < total; n += 50) {
        path.offer(...Array.from({ length: 50 }, (_, i) => delivery(b(n + i))));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    const first = listen(app.client(), 'decisions', { filter: { feed: 'cad-north' } });
    await until(() => first.events.length > 0, { what: 'the first event' });
    first.stop();
    const seen = first.events.slice();
    for (let n = 0; seen.length === 0 || Number(seen.at(-1)?.position) < total - 1; n++) {
      const client = app.client();
      const reading = listen(client, 'decisions', { filter: { feed: 'cad-north' }, after: seen.at(-1)?.cursor });
      await new Promise((resolve) => setTimeout(resolve, 20 + ((n * 37) % 200)));
      client.terminate();
      seen.push(...reading.events);
      if (n > 2000) throw new Error(`stuck at ${seen.at(-1)?.position}`);
    }
    await load;
    const start = Number(seen[0]?.position);
    expect(seen.map((event) => Number(event.position))).toEqual(Array.from({ length: total - start }, (_, i) => start + i));
  });

  it('C100: a burst reaches a fast reader whole, while a reader who does not read is cut off with a reason', async () => {
    const { path, app } = await startBoth(undefined, { limits: { stalledAfterMs: 500 } });
    const text = 'x'.repeat(3000);
    const count = 5000;
    await deliverAll(path, Array.from({ length: count }, (_, n) => b(n, { text })));
    const fast = listen(app.client(), 'suppressions');
    const stalled = await rawSubscription(app, { field: 'payload' });
    await settled(app, 2);
    // Neither reads nor answers: the kernel's buffers fill, then the service waits for it in vain.
    stalled.pause();
    let closed: [number, string] | null = null;
    stalled.on('close', (code, reason) => (closed = [code, String(reason)]));
    await deliverAll(path, Array.from({ length: count }, (_, n) => b(n, { text })));
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
    const { app } = await startBoth(undefined, { limits: { keepAliveMs: 50, maxBufferedBytes: 10_000, stalledAfterMs: 60_000 } });
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
    proxy.refuse(true);
    proxy.cut();
    await path.deliver(b(1));
    await new Promise((resolve) => setTimeout(resolve, 300));
    proxy.refuse(false);
    await until(() => reading.events.length === 1, { what: 'the event' });
    expect(reading.errors).toEqual([]);
    await settled(app);
    proxy.refuse(true);
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

async function deliverAll(path: TestPipeline, payloads: readonly string[]): Promise<void> {
  const before = path.acknowledged.length;
  path.offer(...payloads.map((payload) => delivery(payload)));
  await until(() => path.acknowledged.length === before + payloads.length, { what: 'the acknowledgements' });
}

interface RawOptions {
  /** Wait for `connection_ack`; else the subscriptions are sent when it comes. Default true. */
  readonly wait?: boolean;
  readonly count?: number;
  readonly field?: string;
}

/** A socket that speaks the protocol by hand. */
async function rawSubscription(app: TestApi, { wait = true, count = 1, field = 'reason' }: RawOptions = {}): Promise<WebSocket> {
  const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('open', resolve));
  const acknowledged = new Promise((resolve) => socket.once('message', resolve));
  socket.send(JSON.stringify({ type: 'connection_init' }));
  const payload = { query: `subscription { decisions { position decision { ${field} } } }` };
  const subscribe = () => {
    for (let id = 1; id <= count && socket.readyState === WebSocket.OPEN; id++) {
      socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload }));
    }
  };
  const subscribed = acknowledged.then(subscribe);
  if (wait) await subscribed;
  return socket;
}
