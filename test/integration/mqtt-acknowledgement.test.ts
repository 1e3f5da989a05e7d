import { connectAsync } from 'mqtt';
import { startMosquitto, type MosquittoServer } from '../support/mosquitto';
import { PACKET, publishAll, startObserver, wireLog, type Observer, type WireLog } from '../support/mqtt-client';
import { startProxy, type TcpProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

const TOPIC = 'cad/north/e1/incident';

function numbered(from: number, to: number): Array<{ topic: string; payload: string }> {
  return Array.from({ length: to - from + 1 }, (_, index) => ({ topic: TOPIC, payload: String(from + index) }));
}

function texts(from: number, to: number): string[] {
  return numbered(from, to).map(({ payload }) => payload);
}

describe.each([4, 5] as const)('held acknowledgements, MQTT version %i', (protocolVersion) => {
  let broker: MosquittoServer;
  let proxy: TcpProxy;
  let wire: WireLog;

  beforeEach(async () => {
    broker = await startMosquitto({ maxInflightMessages: 0, extraConfig: 'allow_duplicate_messages true' });
    proxy = await startProxy(broker.port);
    wire = wireLog();
    proxy.onClientData(wire.hook);
  });
  afterEach(() => broker.kill9());

  async function observe(options: Partial<Parameters<typeof startObserver>[0]> = {}): Promise<Observer> {
    const observer = startObserver({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion, ...options });
    await observer.subscribed();
    return observer;
  }

  /** So many PUBACKs have passed the proxy, and the broker has acted on them. */
  async function acknowledged(count: number, connection?: number): Promise<void> {
    await until(() => wire.acknowledged(connection).length === count, { what: `${count} PUBACK on the wire` });
    // The broker serves every socket that is readable in each turn of its loop, and this takes several turns.
    await publishAll(broker.url, [{ topic: 'barrier', payload: '' }]);
  }

  async function reconnected(observer: Observer): Promise<void> {
    const before = observer.eventsOf('subscribed').length;
    proxy.cut();
    await observer.subscribed(before + 1);
  }

  it('writes no PUBACK before it is told to; the broker delivers everything again, with DUP', async () => {
    const observer = await observe();
    await publishAll(broker.url, numbered(1, 50));
    await observer.received(50);
    expect(wire.count(PACKET.PUBACK)).toBe(0);
    expect(observer.deliveries.every(({ dup, qos }) => !dup && qos === 1)).toBe(true);

    await reconnected(observer);
    await observer.received(100);
    expect(wire.count(PACKET.PUBACK)).toBe(0);
    expect(observer.texts()).toEqual([...texts(1, 50), ...texts(1, 50)]);
    expect(observer.deliveries.slice(50).every(({ dup }) => dup)).toBe(true);
    await observer.subscriber.close();
  });

  it('writes PUBACKs in the order given, each once, and the broker forgets the messages', async () => {
    const observer = await observe();
    await publishAll(broker.url, numbered(1, 50));
    await observer.received(50);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(0, 20))).toBe(20);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(20))).toBe(30);
    // A second time they would name whatever the broker gave those packet ids to meanwhile.
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(0);
    await acknowledged(50);
    const ids = wire.acknowledged();
    expect(new Set(ids).size).toBe(50);
    expect(ids).toEqual([...ids].sort((a, b) => a - b)); // mosquitto counts its packet ids up

    await reconnected(observer);
    await publishAll(broker.url, numbered(51, 51));
    await observer.received(51);
    expect(observer.texts()).toEqual(texts(1, 51));
    await observer.subscriber.close();
  });

  it('leaves out acknowledgements of a dead connection and does not touch the messages of the new one', async () => {
    const observer = await observe();
    await publishAll(broker.url, numbered(1, 10));
    await observer.received(10);
    const ofOld = [...observer.deliveries];
    await reconnected(observer);
    await observer.received(20);
    const ofNew = observer.deliveries.slice(10);

    // In one call, interleaved: only the receipts of the living connection reach it.
    const interleaved = ofNew
      .slice(0, 5)
      .flatMap((delivery, index) => [ofOld.slice(index, index + 1), [delivery]])
      .flat();
    expect(observer.subscriber.acknowledge(interleaved)).toBe(5);
    expect(observer.subscriber.acknowledge(ofOld)).toBe(0);
    await acknowledged(5);
    await reconnected(observer);
    await observer.received(25);
    await publishAll(broker.url, numbered(11, 11));
    await observer.received(26);
    expect(observer.texts().slice(20)).toEqual(texts(6, 11));
    await observer.subscriber.close();
  });

  it('can still acknowledge after stopIntake, takes nothing more, and says goodbye', async () => {
    const observer = await observe();
    await publishAll(broker.url, numbered(1, 10));
    await observer.received(10);
    observer.subscriber.stopIntake();
    await publishAll(broker.url, numbered(11, 20));
    await sleep(200);
    expect(observer.deliveries).toHaveLength(10);
    observer.subscriber.resume(); // for good means for good
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(10);
    await observer.subscriber.close();
    expect(wire.acknowledged()).toHaveLength(10);
    expect(wire.packets.at(-1)?.type).toBe(PACKET.DISCONNECT);
    expect(observer.events.at(-1)).toEqual({ type: 'disconnected', reason: 'closed' });
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(0);

    // The session was kept, and what was not taken is still in it.
    const next = await observe();
    expect(next.eventsOf('connected')).toEqual([{ type: 'connected', sessionPresent: true }]);
    await next.received(10);
    expect(next.texts()).toEqual(texts(11, 20));
    await next.subscriber.close();
  });

  it('breaks the connection off where the sink fails, and the message comes again', async () => {
    const observer = await observe();
    let failures = 1;
    observer.wantMore = () => {
      if (failures-- > 0) throw new Error('no room');
      return true;
    };
    await publishAll(broker.url, numbered(1, 3));
    await observer.received(4);
    expect(observer.eventsOf('disconnected')).toEqual([{ type: 'disconnected', reason: 'the sink failed: no room' }]);
    expect(observer.texts().slice(1)).toEqual(texts(1, 3));
    await observer.subscriber.close();
  });

  it('gives topic, payload, retain flag and QoS 0 as they came', async () => {
    const payload = Buffer.from([0, 0xff, 0x7b, 0xc3]);
    await publishAll(broker.url, [{ topic: 'cad/retained', payload: 'kept', retain: true }]);
    const observer = await observe({ broker: 'harbour' });
    await observer.received(1);
    await publishAll(broker.url, [
      { topic: 'cad/é/x', payload },
      { topic: 'cad/empty', payload: '' },
      { topic: 'cad/zero', payload: 'z', qos: 0 },
    ]);
    await observer.received(4);
    const seen = observer.deliveries.map((delivery) => [
      delivery.broker,
      delivery.topic,
      Buffer.from(delivery.payload).toString('hex'),
      delivery.qos,
      delivery.retained,
    ]);
    expect(seen).toEqual([
      ['harbour', 'cad/retained', '6b657074', 1, true],
      ['harbour', 'cad/é/x', '00ff7bc3', 1, false],
      ['harbour', 'cad/empty', '', 1, false],
      ['harbour', 'cad/zero', '7a', 0, false],
    ]);
    expect(observer.deliveries[3]?.acknowledgement).toBeNull();
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(3);
    await observer.subscriber.close();
  });

  it('C001: two packets of one message are two deliveries, each with its DUP flag as observed', async () => {
    const observer = await observe();
    await publishAll(broker.url, [{ topic: TOPIC, payload: '{"seq":1041}' }]);
    await observer.received(1);
    await reconnected(observer);
    await observer.received(2);
    const [first, second] = observer.deliveries;
    expect(Buffer.from(second?.payload ?? [])).toEqual(Buffer.from(first?.payload ?? []));
    expect([first?.dup, second?.dup]).toEqual([false, true]);
    await observer.subscriber.close();
  });

  it('C004: a QoS 2 message that its publisher sends anew is two deliveries at QoS 1', async () => {
    const observer = await observe();
    const message = { topic: TOPIC, payload: '{"seq":300}', qos: 2 as const };
    await publishAll(broker.url, [message]);
    await publishAll(broker.url, [message]);
    await observer.received(2);
    expect(observer.deliveries.map(({ qos, dup }) => ({ qos, dup }))).toEqual([
      { qos: 1, dup: false },
      { qos: 1, dup: false },
    ]);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(2);
    await observer.subscriber.close();
  });

  it('C009: copies for overlapping filters are acknowledged one by one', async () => {
    const observer = await observe({ filters: ['cad/north/+/incident', 'cad/north/#'] });
    await publishAll(broker.url, [{ topic: TOPIC, payload: '{"seq":70}' }]);
    await observer.received(2);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(2);
    await acknowledged(2);
    expect(new Set(wire.acknowledged()).size).toBe(2);
    await reconnected(observer);
    await publishAll(broker.url, [{ topic: 'cad/north/other', payload: 'sentinel' }]);
    await observer.received(3);
    expect(observer.texts()).toEqual(['{"seq":70}', '{"seq":70}', 'sentinel']);
    await observer.subscriber.close();
  });

  it('C021: what was not acknowledged on the first connection is acknowledged on the second, and nothing is left', async () => {
    const observer = await observe();
    await publishAll(broker.url, [{ topic: TOPIC, payload: '{"seq":20}' }]);
    await observer.received(1);
    await reconnected(observer);
    await observer.received(2);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    await acknowledged(1, 2);
    expect(wire.acknowledged(1)).toEqual([]);
    await reconnected(observer);
    await publishAll(broker.url, [{ topic: TOPIC, payload: 'sentinel' }]);
    await observer.received(3);
    expect(observer.texts()[2]).toBe('sentinel');
    await observer.subscriber.close();
  });
});

describe('a broker that holds back at its in-flight limit', () => {
  it.each([
    { protocolVersion: 4, limit: 'of the broker', maxInflightMessages: 5, receiveMaximum: undefined },
    { protocolVersion: 5, limit: 'announced as Receive Maximum', maxInflightMessages: 0, receiveMaximum: 5 },
  ] as const)(
    'C022: five unacknowledged stop the feed, acknowledged it goes on without a reconnect (limit $limit)',
    async ({ protocolVersion, maxInflightMessages, receiveMaximum }) => {
      const broker = await startMosquitto({ maxInflightMessages });
      const observer = startObserver({ urls: [broker.url], protocolVersion, receiveMaximum });
      await observer.subscribed();
      const undecodable = Array.from({ length: 5 }, () => ({ topic: TOPIC, payload: '{"agency":' }));
      await publishAll(broker.url, [...undecodable, { topic: TOPIC, payload: '{"seq":21}' }]);
      await observer.received(5);
      await sleep(300);
      expect(observer.deliveries).toHaveLength(5);
      expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(5);
      await observer.received(6);
      expect(observer.texts()[5]).toBe('{"seq":21}');
      expect(observer.eventsOf('connected')).toHaveLength(1);
      expect(observer.eventsOf('disconnected')).toHaveLength(0);
      await observer.subscriber.close();
    },
  );
});

describe('sessions that were made by somebody else', () => {
  it.each([4, 5] as const)(
    'QoS 2 messages in them are held too: PUBREC only when decided (version %i)',
    async (version) => {
      const broker = await startMosquitto();
      const proxy = await startProxy(broker.port);
      const wire = wireLog();
      proxy.onClientData(wire.hook);
      const former = await connectAsync(broker.url, {
        clientId: 'observer',
        clean: false,
        protocolVersion: version,
        properties: version === 5 ? { sessionExpiryInterval: 3_600 } : undefined,
      });
      await former.subscribeAsync('cad/#', { qos: 2 });
      await former.endAsync();
      await publishAll(broker.url, [
        { topic: TOPIC, payload: 'a', qos: 2 },
        { topic: TOPIC, payload: 'b', qos: 2 },
      ]);

      const observer = startObserver({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion: version });
      await observer.received(2);
      await observer.subscribed();
      expect(observer.deliveries.map(({ qos }) => qos)).toEqual([2, 2]);
      expect(wire.count(PACKET.PUBREC)).toBe(0);
      proxy.cut();
      await observer.received(4);
      expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(2);
      await until(() => wire.count(7) === 2, { what: 'a PUBCOMP for each' });
      proxy.cut();
      await observer.subscribed(3);
      await publishAll(broker.url, [{ topic: TOPIC, payload: 'sentinel' }]);
      await observer.received(5);
      expect(observer.texts()).toEqual(['a', 'b', 'a', 'b', 'sentinel']);
      await observer.subscriber.close();
    },
  );
});
