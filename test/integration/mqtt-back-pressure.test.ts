import { startMosquitto } from '../support/mosquitto';
import { PACKET, publishAll, startObserver, wireLog, type TestMessage } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

const KEEPALIVE_SECONDS = 1;
/** Well over twice the one and a half keep-alives after which either side gives the other up. */
const LONG_MS = 4_000;

function messages(count: number, bytes: number): TestMessage[] {
  return Array.from({ length: count }, (_, index) => ({ topic: 'cad/e1', payload: String(index).padEnd(bytes) }));
}

describe.each([4, 5] as const)('back-pressure, MQTT version %i', (protocolVersion) => {
  it('stops reading when the sink has enough, stays connected, and goes on at resume', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const proxy = await startProxy(broker.port);
    const wire = wireLog();
    proxy.onClientData(wire.hook);
    const urls = [`mqtt://127.0.0.1:${proxy.port}`];
    const observer = startObserver({ urls, protocolVersion, keepaliveSeconds: KEEPALIVE_SECONDS });
    let room = 10;
    observer.wantMore = () => --room > 0;
    await observer.subscribed();
    await publishAll(broker.url, messages(50, 10));
    await observer.received(10);
    await sleep(LONG_MS);
    expect(observer.deliveries).toHaveLength(10);
    expect(wire.count(PACKET.PINGREQ)).toBeGreaterThanOrEqual(4);
    // Acknowledgements need no reading.
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(10);
    await until(() => wire.count(PACKET.PUBACK) === 10, { what: 'the PUBACKs of a held connection' });

    room = 40;
    observer.subscriber.resume();
    await observer.received(50);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(10))).toBe(40);
    expect(observer.texts().map(Number)).toEqual(Array.from({ length: 50 }, (_, index) => index));
    expect(observer.events.map(({ type }) => type)).toEqual(['connected', 'subscribed']);
    await observer.subscriber.close();
  });

  it('survives a backlog in which PINGRESP waits behind megabytes that are drained slowly', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const observer = startObserver({ urls: [broker.url], protocolVersion, keepaliveSeconds: KEEPALIVE_SECONDS });
    observer.wantMore = () => false;
    await observer.subscribed();
    await publishAll(broker.url, messages(200, 64 * 1024));
    const drain = setInterval(() => observer.subscriber.resume(), LONG_MS / 200);
    await observer.received(200);
    clearInterval(drain);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(200);
    expect(observer.events.map(({ type }) => type)).toEqual(['connected', 'subscribed']);
    await observer.subscriber.close();
  });

  it('notices while it is held that the broker died, and starts afresh on the next connection', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const observer = startObserver({ urls: [broker.url], protocolVersion, keepaliveSeconds: KEEPALIVE_SECONDS });
    observer.wantMore = () => false;
    await observer.subscribed();
    await publishAll(broker.url, messages(5, 10));
    await observer.received(1);
    await broker.stop();
    await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the loss of the connection' });
    // Too late for the old connection; the next one is held by its own first delivery.
    observer.subscriber.resume();
    await broker.start();
    await observer.received(2);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    for (let count = 3; count <= 6; count += 1) {
      expect(observer.deliveries).toHaveLength(count - 1);
      observer.subscriber.resume();
      await observer.received(count);
    }
    expect(observer.texts().map(Number)).toEqual([0, 0, 1, 2, 3, 4]);
    await observer.subscriber.close();
  });

  it('keeps the connection for the last acknowledgements after stopIntake', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const observer = startObserver({ urls: [broker.url], protocolVersion, keepaliveSeconds: KEEPALIVE_SECONDS });
    await observer.subscribed();
    await publishAll(broker.url, messages(5, 10));
    await observer.received(5);
    observer.subscriber.stopIntake();
    await publishAll(broker.url, messages(5, 10));
    await sleep(LONG_MS);
    expect(observer.events.map(({ type }) => type)).toEqual(['connected', 'subscribed']);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(5);
    await observer.subscriber.close();
    expect(observer.deliveries).toHaveLength(5);
  });

  it('is not stopped for ever by a sink that resumes from within offer', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const observer = startObserver({ urls: [broker.url], protocolVersion });
    observer.wantMore = () => {
      observer.subscriber.resume();
      return false;
    };
    await observer.subscribed();
    await publishAll(broker.url, messages(5, 10));
    await observer.received(5);
    await observer.subscriber.close();
  });
});
