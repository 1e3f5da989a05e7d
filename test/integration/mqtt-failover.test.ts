import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMosquitto, startStandby } from '../support/mosquitto';
import { publishAll, startObserver, wireLog } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

describe.each([4, 5] as const)('failover to a standby with a stale snapshot, MQTT version %i', (protocolVersion) => {
  const snapshots = mkdtempSync(join(tmpdir(), 'replay-ledger-snapshot-'));
  afterAll(() => rmSync(snapshots, { recursive: true, force: true }));

  it('delivers again, on reused packet ids, everything that was acknowledged after the snapshot', async () => {
    const primary = await startMosquitto({ maxInflightMessages: 20 });
    const proxy = await startProxy(primary.port);
    const wire = wireLog();
    proxy.onClientData(wire.hook);
    // Under MQTT 5 mosquitto goes by the client's limit, not by its own.
    const urls = [`mqtt://127.0.0.1:${proxy.port}`];
    const observer = startObserver({ urls, protocolVersion, receiveMaximum: 20 });
    await observer.subscribed();
    const before = Array.from({ length: 30 }, (_, index) => ({ topic: 'cad/e1', payload: `before ${index}` }));
    await publishAll(primary.url, before);
    await observer.received(20);
    const snapshot = join(snapshots, `v${protocolVersion}`);
    await primary.snapshotTo(snapshot);

    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(20);
    await observer.received(30);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(20))).toBe(10);
    await until(() => wire.acknowledged().length === 30, { what: 'all PUBACKs' });
    // More than one turn of the broker's loop: it has acted on them.
    await publishAll(primary.url, [{ topic: 'barrier', payload: '' }]);
    await primary.kill9();
    const standby = await startStandby(primary, snapshot);

    await observer.received(50);
    // In flight at the snapshot: DUP; queued then: none. So the flag proves nothing in either direction.
    expect(observer.deliveries.slice(30, 50).map(({ dup }) => dup)).toEqual(Array<boolean>(20).fill(true));
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(0, 30))).toBe(0);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(30))).toBe(20);
    await observer.received(60);
    expect(observer.deliveries.slice(50).map(({ dup }) => dup)).toEqual(Array<boolean>(10).fill(false));
    const texts = before.map(({ payload }) => payload);
    expect(observer.texts()).toEqual([...texts, ...texts]);
    expect(observer.eventsOf('connected')).toEqual([
      { type: 'connected', sessionPresent: false },
      { type: 'connected', sessionPresent: true },
    ]);
    expect(observer.subscriber.acknowledge(observer.deliveries.slice(50))).toBe(10);
    await observer.subscriber.close();
    await standby.kill9();
  });
});
