import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OutboundMessage, Publisher } from '../../src/mqtt/port';
import type { MqttError } from '../../src/mqtt/errors';
import { toEnvelope } from '../../src/mqtt/envelope';
import { createPublisher, type PublisherOptions } from '../../src/mqtt/publisher';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { startMosquitto, type MosquittoServer } from '../support/mosquitto';
import { PACKET, startNaiveConsumer, wireLog } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

const PROPERTIES = { 'idempotency-key': 'a'.repeat(64), feed: 'county-fire-cad', 'ledger-position': '41' };

function message(payload: string | Uint8Array, properties: Record<string, string> = PROPERTIES): OutboundMessage {
  return { topic: 'cop/incidents/I-77', payload: Buffer.from(payload), properties };
}

function open(options: Partial<PublisherOptions> & Pick<PublisherOptions, 'urls'>): Publisher {
  const defaults = { clientId: 'relay', protocolVersion: 4 as const, reconnectMinMs: 20, reconnectMaxMs: 100 };
  const publisher = createPublisher({ ...defaults, ...options });
  onCleanup(() => publisher.close());
  return publisher;
}

describe('the envelope of MQTT 3.1.1', () => {
  it.each(['{"n":12345678901234567890, "b":1,"a":2,"a":3}', '"x"', ' [1.0] ', 'null', '"\\ud800"'])(
    'holds JSON byte for byte: %s',
    (json) => {
      expect(toEnvelope({ feed: 'f' }, Buffer.from(json)).toString()).toBe(`{"meta":{"feed":"f"},"payload":${json}}`);
    },
  );

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['text that is no JSON', Buffer.from('{"agency":')],
    ['two texts', Buffer.from('1 2')],
    ['ill-formed UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['a nesting beyond the stack', Buffer.from('['.repeat(5_000_000))],
  ])('holds anything else in base64: %s', (_name, bytes) => {
    const envelope = JSON.parse(toEnvelope({ feed: 'f' }, bytes).toString()) as Record<string, string>;
    expect(Object.keys(envelope)).toEqual(['meta', 'payloadEncoding', 'payload']);
    expect(envelope.payloadEncoding).toBe('base64');
    expect(Buffer.from(envelope.payload ?? '', 'base64').equals(bytes)).toBe(true);
  });

  it('reads the part of a buffer that the payload is, and no more', () => {
    const bytes = Buffer.from('xx{}xx\xff', 'latin1');
    expect(toEnvelope({}, bytes.subarray(2, 4)).toString()).toBe('{"meta":{},"payload":{}}');
    const encoded = toEnvelope({}, bytes.subarray(0, 2)).toString();
    expect(encoded).toBe(`{"meta":{},"payloadEncoding":"base64","payload":"${Buffer.from('xx').toString('base64')}"}`);
  });
});

describe('publishing', () => {
  let broker: MosquittoServer;

  beforeEach(async () => {
    broker = await startMosquitto();
  });
  afterEach(() => broker.kill9());

  it('carries the properties as MQTT 5 user properties', async () => {
    const consumer = await startNaiveConsumer(broker.url, ['cop/#'], { protocolVersion: 5 });
    const publisher = open({ urls: [broker.url], protocolVersion: 5 });
    const payload = Buffer.from([0, 0xff]);
    await publisher.publish(message(payload));
    await until(() => consumer.received.length === 1, { what: 'the message' });
    const [packet] = consumer.received;
    expect(packet?.topic).toBe('cop/incidents/I-77');
    expect(packet?.qos).toBe(1);
    expect(Buffer.from(packet?.payload ?? '').equals(payload)).toBe(true);
    expect({ ...packet?.properties?.userProperties }).toEqual(PROPERTIES);
    await publisher.close();
    await consumer.close();
  });

  it('carries them in an envelope on MQTT 3.1.1', async () => {
    const consumer = await startNaiveConsumer(broker.url, ['cop/#']);
    const publisher = open({ urls: [broker.url] });
    await publisher.publish(message('{"n":12345678901234567890}'));
    await until(() => consumer.received.length === 1, { what: 'the message' });
    expect(consumer.received[0]?.payload.toString()).toBe(
      `{"meta":${JSON.stringify(PROPERTIES)},"payload":{"n":12345678901234567890}}`,
    );
    await publisher.close();
    await consumer.close();
  });

  it('keeps the order of calls, and no more unacknowledged than an MQTT 5 broker wants', async () => {
    // mosquitto announces this as its Receive Maximum.
    const strict = await startMosquitto({ maxInflightMessages: 3 });
    const consumer = await startNaiveConsumer(strict.url, ['cop/#'], { protocolVersion: 5 });
    const proxy = await startProxy(strict.port);
    const sent = wireLog();
    proxy.onClientData(sent.hook);
    const publisher = open({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion: 5 });
    await publisher.publish(message('first'));
    proxy.pauseDownstream();
    const all = Array.from({ length: 50 }, (_, index) => publisher.publish(message(String(index))));
    await until(() => consumer.received.length === 4, { what: 'as many as may be in flight' });
    expect(sent.count(PACKET.PUBLISH)).toBe(4);
    proxy.resume();
    await Promise.all(all);
    await until(() => consumer.received.length === 51, { what: 'all messages' });
    const texts = consumer.received.map(({ payload }) => payload.toString());
    expect(texts).toEqual(['first', ...Array.from({ length: 50 }, (_, index) => String(index))]);
    await publisher.close();
    await consumer.close();
  });

  it.each([4, 5] as const)(
    'rejects all when the connection ends before the PUBACK, and sends nothing again by itself (version %i)',
    async (protocolVersion) => {
      const proxy = await startProxy(broker.port);
      const sent = wireLog();
      proxy.onClientData(sent.hook);
      const publisher = open({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion });
      await publisher.publish(message('1'));
      proxy.pauseDownstream(); // the PUBACKs do not come through
      const pending = [publisher.publish(message('2')), publisher.publish(message('3'))];
      const outcomes = Promise.allSettled(pending);
      await until(() => sent.count(PACKET.PUBLISH) === 3, { what: 'the messages to be sent' });
      proxy.cut();
      for (const outcome of await outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'CONNECTION_LOST' } });
      }
      proxy.resume();
      await publisher.publish(message('4'));
      expect(sent.count(PACKET.PUBLISH)).toBe(4);
      await publisher.close();
    },
  );

  it('gives up a PUBACK that does not come, and the connection with it', async () => {
    const proxy = await startProxy(broker.port);
    const publisher = open({ urls: [`mqtt://127.0.0.1:${proxy.port}`], publishTimeoutMs: 500 });
    await publisher.publish(message('1'));
    proxy.pauseDownstream();
    await expect(publisher.publish(message('2'))).rejects.toMatchObject({ name: 'MqttError', code: 'TIMEOUT' });
    proxy.resume();
    await publisher.publish(message('3'));
    await publisher.close();
  });

  it('waits for a broker, but not for ever', async () => {
    const port = await freePort();
    const publisher = open({ urls: [`mqtt://127.0.0.1:${port}`], publishTimeoutMs: 300 });
    await expect(publisher.publish(message('1'))).rejects.toMatchObject({
      code: 'NOT_CONNECTED',
      message: expect.stringContaining('ECONNREFUSED') as string,
    });
    const late = await startMosquitto({ port });
    await until(() => publisher.publish(message('2')).then(() => true), { what: 'a connection' });
    await publisher.close();
    await late.kill9();
  });

  it('fails over to the next broker', async () => {
    const consumer = await startNaiveConsumer(broker.url, ['cop/#']);
    const publisher = open({ urls: [`mqtt://127.0.0.1:${await freePort()}`, broker.url] });
    await publisher.publish(message('1'));
    await until(() => consumer.received.length === 1, { what: 'the message' });
    await publisher.close();
    await consumer.close();
  });

  it.each(['', 'cop/+', 'cop/#', 'cop/\0', 'x'.repeat(65_536)])(
    'refuses a topic that would cost the connection (%#)',
    async (topic) => {
      const publisher = open({ urls: [broker.url] });
      const good = publisher.publish(message('1'));
      await expect(publisher.publish({ ...message('2'), topic })).rejects.toMatchObject({ code: 'INVALID_TOPIC' });
      await good;
      await publisher.close();
    },
  );

  it('rejects what is pending at close, and everything after', async () => {
    const publisher = open({ urls: [`mqtt://127.0.0.1:${await freePort()}`] });
    const pending = expect(publisher.publish(message('1'))).rejects.toMatchObject({ code: 'CLOSED' });
    await publisher.close();
    await pending;
    await expect(publisher.publish(message('2'))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('sends nothing more of what was given when the broker refuses a message', async () => {
    const narrow = await startMosquitto({ maxInflightMessages: 2 });
    const proxy = await startProxy(narrow.port);
    const sent = wireLog();
    proxy.onClientData(sent.hook);
    // mosquitto closes the connection when it refuses; a broker whose quota is exceeded (0x97) goes on. Nobody listens,
    // so its PUBACKs say 0x10 (no matching subscribers), and the first of them is made into that.
    let refused = false;
    proxy.onServerData((chunk) => {
      if (refused || chunk[0] !== PACKET.PUBACK << 4 || chunk[1] !== 3) return;
      refused = true;
      chunk[4] = 0x97;
    });
    const publisher = open({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion: 5 });
    const given = Array.from({ length: 6 }, (_, index) => publisher.publish(message(String(index))));
    const outcomes = await Promise.allSettled(given);
    const codes = outcomes.map((one) => (one.status === 'fulfilled' ? 'taken' : (one.reason as MqttError).code));
    expect(codes).toEqual(['REFUSED', 'taken', 'HELD_BACK', 'HELD_BACK', 'HELD_BACK', 'HELD_BACK']);
    expect(sent.count(PACKET.PUBLISH)).toBe(2);
    await publisher.publish(message('again'));
    await publisher.close();
    await narrow.kill9();
  });

  it('reports a message that an MQTT 5 broker refuses', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-acl-'));
    onCleanup(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755); // the broker may run under another user
    writeFileSync(join(folder, 'acl'), 'topic readwrite cop/incidents/#\n', { mode: 0o644 });
    const limited = await startMosquitto({ extraConfig: `acl_file ${join(folder, 'acl')}` });
    const publisher = open({ urls: [limited.url], protocolVersion: 5 });
    await expect(publisher.publish({ ...message('x'), topic: 'cop/other' })).rejects.toMatchObject({
      code: 'REFUSED',
      message: 'Publish error: Not authorized',
    });
    // mosquitto 2.0.11 closes the connection after the refusal, so the next one may be lost with it.
    await until(() => publisher.publish(message('x')).then(() => true), { what: 'a message that may pass' });
    await publisher.close();
  });
});
