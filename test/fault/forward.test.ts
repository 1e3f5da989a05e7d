import { createHash } from 'node:crypto';
import { expireLeases, startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { FEED, applied, expectEachAppliedOnce, faultContract, faultMessages } from '../support/fault-feed';
import { query } from '../support/ledger';
import { startMosquitto, type MosquittoServer } from '../support/mosquitto';
import { PACKET, publishAll, startObserver, wireLog, type Observer, type WireLog } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

interface Forwarded {
  readonly position: number;
  readonly term: string;
  readonly feed: string;
  readonly key: string;
  readonly topic: string;
  readonly payload: string;
}

/** What a consumer downstream is told, in the form of each protocol version (design section 7). */
function readForwarded(observer: Observer, version: 4 | 5): Forwarded[] {
  return observer.deliveries.map(({ topic, payload, userProperties }) => {
    const text = Buffer.from(payload).toString();
    if (version === 5) return { topic, payload: text, ...metaOf(userProperties) };
    const envelope = /^\{"meta":(\{[^}]*\}),"payload":(.*)\}$/s.exec(text);
    if (envelope === null) throw new Error(`no envelope: ${text}`);
    return { topic, payload: envelope[2] ?? '', ...metaOf(JSON.parse(envelope[1] ?? '') as Record<string, string>) };
  });
}

function metaOf(meta: Readonly<Record<string, unknown>>) {
  expect(Object.keys(meta).sort()).toEqual(['feed', 'idempotency-key', 'ledger-position', 'ledger-term']);
  return {
    position: Number(meta['ledger-position']),
    term: String(meta['ledger-term']),
    feed: String(meta.feed),
    key: String(meta['idempotency-key']),
  };
}

/** A position that came before may come again, but none is passed over: delivery downstream is at least once. */
function expectNoGap(positions: readonly number[], expected: readonly number[]): void {
  const firsts = positions.filter((position, index) => positions.indexOf(position) === index);
  expect(firsts).toEqual(expected);
  // Repeats begin again at something unmarked, and go on from there in order.
  let newest = -1;
  for (const [index, position] of positions.entries()) {
    const before = positions[index - 1] ?? -1;
    const next = expected.find((candidate) => candidate > before);
    expect(position <= before || position === next).toBe(true);
    newest = Math.max(newest, position);
  }
  expect(newest).toBe(expected[expected.length - 1]);
}

/** Positions in PUBLISH packets, in the order they were sent: in a user property, or in the envelope. */
function positionsOf(wire: WireLog): number[] {
  return wire.packets
    .filter(({ type }) => type === PACKET.PUBLISH)
    .map(({ body }) => {
      const [, position] = /ledger-position(?:\0.|":")(\d+)/s.exec(body.toString('latin1')) ?? [];
      if (position === undefined) throw new Error('a message without its position');
      return Number(position);
    });
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe.each([
  { name: '3.1.1', version: 4 },
  { name: '5', version: 5 },
] as const)('forwarding what was applied, MQTT $name', ({ version }) => {
  const MESSAGES = faultMessages(3, 1, 60);
  let broker: MosquittoServer;
  beforeAll(async () => {
    broker = await startMosquitto({ maxInflightMessages: 0 });
  });

  async function startWorld() {
    const { url } = await createMigratedDatabase();
    const setup: AppSetup = {
      databaseUrl: url,
      mqttUrl: broker.url,
      contracts: [faultContract({ forward: 'cop/{incident}' })],
      mqttVersion: version,
    };
    return { url, setup };
  }

  it('in order of position, with what a consumer guards by, and nothing that was not applied', async () => {
    const { url, setup } = await startWorld();
    const observer = startObserver({
      urls: [broker.url],
      clientId: 'cop',
      filters: ['cop/#'],
      protocolVersion: version,
    });
    await observer.subscribed();
    const consumer = await startConsuming(setup);
    const relay = startInstance({ ...setup, role: 'relay' });
    const held = [
      { ...faultMessages(1, 3, 3)[0], payload: '{"seq":3,"incident":"I-0","delta":9}' }, // a conflict
      { topic: `${FEED}/engine-1/events`, payload: '{"seq":' },
    ].map(({ topic = '', payload }) => ({ topic, payload }));
    await publishAll(broker.url, [...MESSAGES, ...MESSAGES.slice(30, 50), ...held]);
    await applied(url, MESSAGES.length);
    await observer.received(MESSAGES.length);
    expect(await consumer.stop()).toEqual({ code: 0, signal: null });
    expect(await relay.stop()).toEqual({ code: 0, signal: null });

    const entries = await expectEachAppliedOnce(url, MESSAGES);
    const forwarded = readForwarded(observer, version);
    expect(forwarded).toEqual(
      entries
        .filter(({ outcome }) => outcome === 'APPLIED')
        .map(({ position, sourceId, sequence, incidentId }) => ({
          position,
          term: '1',
          feed: FEED,
          key: sha256(`county|${sourceId}|${sequence}`),
          topic: `cop/${incidentId}`,
          payload: MESSAGES.find((m) => m.source === sourceId && String(m.sequence) === sequence)?.payload,
        })),
    );
    expect(await query(url, 'SELECT position FROM outbox WHERE sent_at IS NULL')).toEqual([]);
    await observer.subscriber.close();
  });

  it('a broker and a relay that die in between: at least once, without a gap, marked as a prefix', async () => {
    const { url, setup } = await startWorld();
    const consumer = await startConsuming(setup);
    await publishAll(broker.url, MESSAGES);
    await applied(url, MESSAGES.length);
    expect(await consumer.stop()).toEqual({ code: 0, signal: null });
    const sent = () =>
      query<{ sent: boolean }>(url, 'SELECT sent_at IS NOT NULL AS sent FROM outbox ORDER BY position');

    // What the relay sends is read on its way: what a broker loses that dies is not the relay's doing.
    const proxy = await startProxy(broker.port);
    const published = wireLog();
    const answers = wireLog();
    proxy.onServerData(answers.hook);
    let killed = false;
    proxy.onClientData((chunk, connection) => {
      published.hook(chunk, connection);
      if (killed || published.count(PACKET.PUBLISH) < 40) return;
      killed = true;
      process.kill(broker.pid, 'SIGKILL');
    });
    const throughProxy: AppSetup = { ...setup, mqttUrl: `mqtt://127.0.0.1:${proxy.port}`, role: 'relay' };
    const relay = startInstance(throughProxy);
    await until(() => killed && !broker.running, { what: 'the broker to die' });
    await relay.kill9();
    const flags = (await sent()).map((row) => row.sent);
    expect(flags).toEqual([...flags].sort((a, b) => Number(b) - Number(a)));
    expect(flags).toContain(false);
    expect(flags.filter(Boolean).length).toBeLessThanOrEqual(answers.count(PACKET.PUBACK));

    await expireLeases(url);
    await broker.start();
    const next = startInstance(throughProxy);
    await until(async () => (await sent()).every((row) => row.sent), { what: 'everything to be sent' });
    expect(await next.stop()).toEqual({ code: 0, signal: null });
    const entries = await expectEachAppliedOnce(url, MESSAGES);
    expectNoGap(
      positionsOf(published),
      entries.map(({ position }) => position),
    );
  });
});
