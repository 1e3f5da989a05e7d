import { connectAsync } from 'mqtt';
import { reconnectDelayMs } from '../../src/mqtt/connector';
import { freePort } from '../support/free-port';
import { startMosquitto } from '../support/mosquitto';
import { PACKET, publishAll, startObserver, wireLog } from '../support/mqtt-client';
import { startProcess } from '../support/process';
import { startProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

describe('the back-off', () => {
  const backOff = { minMs: 250, maxMs: 30_000 };

  it('doubles up to the longest, and full jitter takes any part of it', () => {
    const highest = [0, 1, 2, 6, 7, 5_000].map((failures) => reconnectDelayMs(failures, backOff, () => 1));
    expect(highest).toEqual([250, 500, 1_000, 16_000, 30_000, 30_000]);
    expect(reconnectDelayMs(3, backOff, () => 0)).toBe(0);
    expect(reconnectDelayMs(3, backOff, () => 0.5)).toBe(1_000);
  });
});

describe.each([4, 5] as const)('connections of one session, MQTT version %i', (protocolVersion) => {
  it('subscribes at every CONNACK, also where the session is present, and reports both', async () => {
    const broker = await startMosquitto();
    const proxy = await startProxy(broker.port);
    const wire = wireLog();
    proxy.onClientData(wire.hook);
    const filters = ['cad/#', 'fire/+/alerts'];
    const observer = startObserver({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion, filters });
    for (let connection = 1; connection <= 3; connection += 1) {
      await observer.subscribed(connection);
      expect(wire.count(PACKET.SUBSCRIBE)).toBe(connection);
      proxy.cut();
    }
    await observer.subscribed(4);
    expect(observer.eventsOf('connected').map(({ sessionPresent }) => sessionPresent)).toEqual([
      false,
      true,
      true,
      true,
    ]);
    expect(observer.eventsOf('subscribed').at(-1)?.filters).toEqual(filters);
    expect(observer.eventsOf('disconnected').map(({ reason }) => reason)).toEqual(Array(3).fill('connection lost'));
    await observer.subscriber.close();
  });

  it('delivers what the session kept, although it comes before the subscription is renewed', async () => {
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const first = startObserver({ urls: [broker.url], protocolVersion });
    await first.subscribed();
    await first.subscriber.close();
    await publishAll(
      broker.url,
      Array.from({ length: 100 }, (_, index) => ({ topic: 'cad/e1', payload: String(index) })),
    );
    const second = startObserver({ urls: [broker.url], protocolVersion });
    const eventsAtFirstDelivery: string[][] = [];
    second.wantMore = () => {
      eventsAtFirstDelivery.push(second.events.map(({ type }) => type));
      return true;
    };
    await second.received(100);
    expect(eventsAtFirstDelivery[0]).toEqual(['connected']);
    expect(second.texts().map(Number)).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(second.subscriber.acknowledge(second.deliveries)).toBe(100);
    await second.subscriber.close();
  });

  it('reports a CONNACK without the session where the broker has lost it', async () => {
    const broker = await startMosquitto({ persistence: false });
    const observer = startObserver({ urls: [broker.url], protocolVersion });
    await observer.subscribed();
    await broker.kill9();
    await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the loss of the broker' });
    await broker.start();
    await observer.subscribed(2);
    expect(observer.eventsOf('connected').map(({ sessionPresent }) => sessionPresent)).toEqual([false, false]);
    await publishAll(broker.url, [{ topic: 'cad/e1', payload: 'after' }]);
    await observer.received(1);
    await observer.subscriber.close();
  });

  it('asks before every connect, and does not connect on no', async () => {
    const broker = await startMosquitto();
    const proxy = await startProxy(broker.port);
    const wire = wireLog();
    proxy.onClientData(wire.hook);
    const answers: Array<boolean | Error> = [false, new Error('lease unreadable'), true];
    let asked = 0;
    const mayConnect = async (): Promise<boolean> => {
      const answer = answers[asked++] ?? false;
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const observer = startObserver({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion, mayConnect });
    await observer.subscribed();
    expect(asked).toBe(3);
    expect(observer.eventsOf('disconnected')).toEqual([
      { type: 'disconnected', reason: 'not permitted to connect: lease unreadable' },
    ]);
    proxy.cut();
    await until(() => asked > 5, { what: 'more questions' });
    expect(wire.count(PACKET.CONNECT)).toBe(1);
    await observer.subscriber.close();
    const askedAtClose = asked;
    await sleep(500);
    expect(asked).toBe(askedAtClose);
  });

  it('tries several brokers in turn, and comes back to one that is there again', async () => {
    const dead = `mqtt://127.0.0.1:${await freePort()}`;
    const first = await startMosquitto();
    const second = await startMosquitto();
    const observer = startObserver({ urls: [dead, first.url, second.url], protocolVersion });
    await observer.subscribed();
    expect(observer.eventsOf('disconnected')).toEqual([{ type: 'disconnected', reason: 'ECONNREFUSED' }]);
    await publishAll(first.url, [{ topic: 'cad/e1', payload: 'first' }]);
    await observer.received(1);
    await first.kill9();
    await observer.subscribed(2);
    await publishAll(second.url, [{ topic: 'cad/e1', payload: 'second' }]);
    await observer.received(2);
    // The receipt of the first broker's message must not reach the second.
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    await second.kill9();
    await first.start();
    await observer.subscribed(3);
    await publishAll(first.url, [{ topic: 'cad/e1', payload: 'third' }]);
    await until(() => observer.texts().includes('third'), { what: 'the first broker again' });
    await observer.subscriber.close();
  });

  it('gives a broker up that takes the connection and says nothing', async () => {
    const broker = await startMosquitto();
    const proxy = await startProxy(broker.port);
    proxy.pauseDownstream();
    const urls = [`mqtt://127.0.0.1:${proxy.port}`];
    const observer = startObserver({ urls, protocolVersion, connectTimeoutMs: 200 });
    await until(() => observer.events.length >= 2, { what: 'two attempts' });
    expect(observer.events[0]).toEqual({ type: 'disconnected', reason: 'connack timeout' });
    proxy.resume();
    await observer.subscribed();
    await observer.subscriber.close();
  });

  it('closes at any time: before the start, while connecting, twice', async () => {
    const broker = await startMosquitto();
    const proxy = await startProxy(broker.port);
    proxy.pauseDownstream();
    const urls = [`mqtt://127.0.0.1:${proxy.port}`];
    const observer = startObserver({ urls, protocolVersion, mayConnect: async () => true });
    await until(() => proxy.open > 0, { what: 'the connection' });
    await Promise.all([observer.subscriber.close(), observer.subscriber.close()]);
    expect(observer.events).toEqual([{ type: 'disconnected', reason: 'closed' }]);

    const other = startObserver({ urls, protocolVersion, mayConnect: async () => true });
    await other.subscriber.close(); // the question has not been answered yet
    other.subscriber.start();
    await sleep(300);
    expect(other.events).toEqual([]);
  });

  it('does not wait for ever for a broker that does not answer the DISCONNECT', async () => {
    const broker = await startMosquitto();
    const proxy = await startProxy(broker.port);
    const observer = startObserver({ urls: [`mqtt://127.0.0.1:${proxy.port}`], protocolVersion });
    await observer.subscribed();
    proxy.pauseUpstream();
    await observer.subscriber.close();
    expect(observer.events.at(-1)).toEqual({ type: 'disconnected', reason: 'closed' });
  });

  it('reports credentials that the broker refuses', async () => {
    const broker = await startMosquitto({ extraConfig: 'allow_anonymous false' });
    const observer = startObserver({ urls: [broker.url], protocolVersion, username: 'u', password: 'p' });
    await until(() => observer.events.length >= 2, { what: 'two attempts' });
    expect(observer.events[0]).toEqual({ type: 'disconnected', reason: expect.stringMatching(/not authori[sz]ed/i) });
    await observer.subscriber.close();
  });
});

it('takes the client id of the options, whatever the URL says', async () => {
  const broker = await startMosquitto();
  const observer = startObserver({ urls: [`${broker.url}?clientId=other`], clientId: 'ours' });
  await observer.subscribed();
  // A second client of the same id evicts the first.
  const usurper = await connectAsync(broker.url, { clientId: 'ours', reconnectPeriod: 0 });
  await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the eviction' });
  await usurper.endAsync(true);
  await observer.subscriber.close();
});

it('passes on why an MQTT 5 broker disconnected us', async () => {
  const broker = await startMosquitto();
  // mosquitto takes a control character in a filter for a malformed packet.
  const observer = startObserver({ urls: [broker.url], protocolVersion: 5, filters: ['cad/\u0001'] });
  await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the DISCONNECT' });
  expect(observer.eventsOf('disconnected')[0]?.reason).toBe('broker disconnected, reason code 0x81');
  await observer.subscriber.close();
});

it('carries MQTT 5 user properties: repeated names, and names that objects inherit', async () => {
  const broker = await startMosquitto();
  const observer = startObserver({ urls: [broker.url], protocolVersion: 5 });
  await observer.subscribed();
  const properties = JSON.parse('{"source":["e1","e2"],"__proto__":"p","constructor":"c"}') as Record<string, string>;
  await publishAll(broker.url, [{ topic: 'cad/e1', payload: 'x', userProperties: properties }], 5);
  await publishAll(broker.url, [{ topic: 'cad/e1', payload: 'y' }], 5);
  await observer.received(2);
  const [first, second] = observer.deliveries;
  expect(Object.entries(first?.userProperties ?? {}).sort()).toEqual([
    ['__proto__', 'p'],
    ['constructor', 'c'],
    ['source', ['e1', 'e2']],
  ]);
  expect(second?.userProperties.constructor).toBeUndefined();
  await observer.subscriber.close();
});

describe('a broker that refuses a filter', () => {
  const BROKER = `
    import('aedes').then(async ({ Aedes }) => {
      const broker = await Aedes.createBroker({
        authorizeSubscribe: (_client, subscription, done) => done(null, subscription.topic === 'no/#' ? null : subscription),
      });
      const server = require('node:net').createServer(broker.handle);
      server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port));
    });`;

  it('is reported for that filter; what the others bring is delivered, again without DUP', async () => {
    const child = startProcess(process.execPath, ['-e', BROKER]);
    const [, port = ''] = await child.waitForLine(/^port (\d+)$/);
    const proxy = await startProxy(Number(port));
    const urls = [`mqtt://127.0.0.1:${proxy.port}`];
    const observer = startObserver({ urls, filters: ['cad/#', 'no/#'] });
    await observer.subscribed();
    expect(observer.events.slice(1)).toEqual([
      { type: 'subscribed', filters: ['cad/#'] },
      { type: 'refused', filters: ['no/#'], reason: 'reason code 0x80' },
    ]);
    // C001, the other half: this broker delivers again with DUP still 0.
    await publishAll(`mqtt://127.0.0.1:${port}`, [{ topic: 'cad/e1', payload: 'x' }]);
    await observer.received(1);
    proxy.cut();
    await observer.received(2);
    expect(observer.deliveries.map(({ dup }) => dup)).toEqual([false, false]);
    expect(observer.texts()).toEqual(['x', 'x']);
    await observer.subscriber.close();
  });

  it('is refused for a filter that cannot be sent at all', async () => {
    const broker = await startMosquitto();
    const observer = startObserver({ urls: [broker.url], filters: ['cad/#/x'] });
    await until(() => observer.eventsOf('refused').length > 0, { what: 'the refusal' });
    expect(observer.eventsOf('refused')[0]?.reason).toBe('Invalid topic cad/#/x');
    await observer.subscriber.close();
  });
});
