import { RELOAD_MS } from '../../src/ops/token-file';
import type { ApiOptions } from '../../src/api/server';
import { b, startPipeline } from '../support/pipeline';
import { caseTitle } from '../support/case-run';
import { sleep, until } from '../support/wait';
import { makeTokens, openTokenFile, rawSocket, rawSubscriber, sequences } from './access-fixture';
import type { RawSocket } from './access-fixture';
import { startTestApi } from './api-fixture';
import { listen, settled } from './api-subscription-fixture';

/** Reloads as often as the service does, unless a test is about something else. */
async function setUp({ reloadMs, ...options }: { reloadMs?: number } & Partial<ApiOptions> = {}) {
  const path = await startPipeline();
  const tokens = makeTokens();
  const first = tokens.add({ name: 'first' });
  const start = () =>
    startTestApi({
      database: path.database,
      wakeUps: path.wakeUps,
      tokens: openTokenFile(tokens.path, reloadMs),
      ...options,
    });
  return { path, tokens, first, start };
}

const released = async (app: Awaited<ReturnType<typeof startTestApi>>) => {
  await until(() => app.api.stats().subscriptions === 0 && app.api.stats().waiting === 0, { what: 'the release' });
};

async function initialised(raw: RawSocket, payload?: unknown): Promise<RawSocket> {
  raw.send({ type: 'connection_init', payload });
  await until(() => raw.messages.length > 0 || raw.closed() !== null, { what: 'an answer' });
  return raw;
}

describe('tokens over WebSocket', () => {
  it(caseTitle('C101'), async () => {
    const { path, tokens, start } = await setUp({ limits: { initTimeoutMs: 300 } });
    const expiresAtMs = Math.ceil(Date.now() / 1000) * 1000 + 2000;
    const brief = tokens.add({ name: 'brief', expiresAtMs });
    const lasting = tokens.add({ name: 'lasting' });
    const app = await start();
    const expiring = await rawSubscriber(app, `Bearer ${brief}`);
    const staying = await rawSubscriber(app, `Bearer ${lasting}`);
    await path.deliver(b(7));
    await until(() => sequences(expiring).length === 1, { what: 'an event before the end' });
    expect(await expiring.end()).toEqual([4403, 'the token has expired']);
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs);
    await path.deliver(b(8));
    await until(() => sequences(staying).length === 2, { what: 'the event of who may read on' });
    expect([sequences(expiring), sequences(staying)]).toEqual([['7'], ['7', '8']]);
    // With the token that has expired nobody comes back.
    expect((await initialised(await rawSocket(app), { authorization: `Bearer ${brief}` })).closed()?.[0]).toBe(4403);

    // No connection_init at all, an operation before it, a second one.
    expect((await (await rawSocket(app)).end())[0]).toBe(4408);
    const hasty = await rawSocket(app);
    hasty.send({ id: '1', type: 'subscribe', payload: { query: '{ feeds { name } }' } });
    expect((await hasty.end())[0]).toBe(4401);
    staying.send({ type: 'connection_init', payload: { authorization: `Bearer ${lasting}` } });
    expect((await staying.end())[0]).toBe(4429);

    // Revoked: within the stated bound, and nothing is delivered afterwards.
    const revoked = await rawSubscriber(app, `Bearer ${lasting}`);
    tokens.revoke('lasting');
    expect(await revoked.end(RELOAD_MS + 500)).toEqual([4403, 'the token was revoked']);
    await path.deliver(b(9));
    expect(sequences(revoked)).toEqual([]);
    await released(app);
  });

  it('refuses whoever bears none', async () => {
    const { first, start } = await setUp();
    const app = await start();
    const attempts: unknown[] = [
      undefined,
      {},
      { authorization: first },
      { authorization: ['Bearer', first] },
      { authorization: { Bearer: first } },
      { authorization: 'Bearer rl_unknown' },
      { authorization: `Bearer ${first}`, Authorization: 'Bearer rl_unknown' },
      { token: `Bearer ${first}` },
    ];
    for (const payload of attempts) {
      const raw = await initialised(await rawSocket(app), payload);
      expect([payload, raw.closed()?.[0], raw.messages]).toEqual([payload, 4403, []]);
    }
    for (const name of ['authorization', 'Authorization']) {
      const raw = await initialised(await rawSocket(app), { [name]: `Bearer ${first}` });
      expect(raw.messages).toEqual([{ type: 'connection_ack' }]);
    }
    expect(JSON.stringify(app.log)).not.toContain(first);
  });

  it('delivers nothing after the end although the process was too busy to notice it, and takes nothing', async () => {
    const { path, tokens, start } = await setUp();
    const expiresAtMs = Math.ceil(Date.now() / 1000) * 1000 + 1000;
    const brief = tokens.add({ name: 'brief', expiresAtMs });
    const app = await start();
    const raw = await rawSubscriber(app, `Bearer ${brief}`);
    await path.deliver(b(1));
    await until(() => sequences(raw).length === 1, { what: 'the first event' });
    const late = path.deliver(b(2));
    raw.send({ id: '2', type: 'subscribe', payload: { query: '{ feeds { name } }' } });
    app.statements();
    // Nothing else runs until the token is worth nothing: event, request and timer are all due then.
    while (Date.now() <= expiresAtMs);
    await late;
    expect((await raw.end())[0]).toBe(4403);
    expect(sequences(raw)).toEqual(['1']);
    expect(raw.messages.filter(({ id }) => id === '2')).toEqual([]);
  });

  it('goes by the clock, also where it was set and no timer is due', async () => {
    const { path, tokens, start } = await setUp();
    const hourly = tokens.add({ name: 'hourly', expiresAtMs: Math.ceil(Date.now() / 1000) * 1000 + 3_600_000 });
    const app = await start();
    const [listening, asking] = [
      await rawSubscriber(app, `Bearer ${hourly}`),
      await initialised(await rawSocket(app), { authorization: `Bearer ${hourly}` }),
    ];
    const { now } = Date;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 7_200_000);
    try {
      app.statements();
      asking.send({ id: '1', type: 'subscribe', payload: { query: '{ feeds { name } }' } });
      expect(await asking.end()).toEqual([4403, 'the token has expired']);
      expect([asking.messages.length, app.statements()]).toEqual([1, 0]);
      await path.deliver(b(1));
      expect(await listening.end()).toEqual([4403, 'the token has expired']);
      expect(sequences(listening)).toEqual([]);
    } finally {
      clock.mockRestore();
    }
  });

  it('ends a socket whose rights change, and one that goes on has the new ones', async () => {
    const { path, tokens, first, start } = await setUp({ reloadMs: 20 });
    const app = await start();
    await path.deliver(b(1), b(1, { agency: 'SFD' }));
    const changes: Parameters<typeof tokens.change>[1][] = [
      { agencies: ['NFD', 'SFD'] },
      { agencies: ['NFD'] },
      { role: 'reviewer' },
    ];
    for (const change of changes) {
      const raw = await rawSubscriber(app, `Bearer ${first}`);
      tokens.change('first', change);
      expect(await raw.end()).toEqual([4491, 'the rights of the token have changed']);
      await released(app);
    }
    const narrowed = await rawSubscriber(app, `Bearer ${first}`);
    await path.deliver(b(2, { agency: 'SFD' }), b(3));
    await until(() => sequences(narrowed).length === 1, { what: 'the event' });
    expect(sequences(narrowed)).toEqual(['3']);
    // Changes that are none to this token leave it alone; an end that comes sooner counts.
    tokens.change('first', { agencies: ['NFD', 'NFD'] });
    tokens.add({ name: 'second' });
    await sleep(100);
    expect(narrowed.closed()).toBeNull();
    const expiresAtMs = Math.ceil(Date.now() / 1000) * 1000 + 1000;
    tokens.change('first', { expiresAtMs });
    expect(await narrowed.end()).toEqual([4403, 'the token has expired']);
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAtMs);
  });

  it('a token for years does not end at once, as a timer set that far would', async () => {
    const { path, tokens, start } = await setUp();
    const years = tokens.add({ name: 'years', expiresAtMs: Date.UTC(2099, 0, 1) });
    const app = await start();
    const reading = listen(app.client(years), 'decisions');
    await settled(app);
    await path.deliver(b(1));
    await until(() => reading.events.length === 1, { what: 'the event' });
    expect(reading.ended()).toBe(false);
  });

  it('ends a reader who does not say goodbye as well', async () => {
    const { tokens, first, start } = await setUp({ reloadMs: 20 });
    const app = await start();
    const raw = await rawSubscriber(app, `Bearer ${first}`);
    raw.socket.pause();
    tokens.revoke('first');
    await until(() => app.api.stats().sockets === 0, { what: 'the socket to be gone', timeoutMs: 3_000 });
    await released(app);
  });

  it('asks nobody when there is no token file', async () => {
    const path = await startPipeline();
    const app = await startTestApi({ database: path.database });
    for (const payload of [undefined, { authorization: 'Bearer whatever' }]) {
      expect((await initialised(await rawSocket(app), payload)).messages).toEqual([{ type: 'connection_ack' }]);
    }
  });
});
