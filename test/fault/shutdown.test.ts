import { consumes, startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { expectNothingUnacknowledged } from '../support/fault-broker';
import { FEED, applied, countOutcomes, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { query, readBalance } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { PACKET, publishAll, wireLog } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';

describe('SIGTERM under load', () => {
  it('finishes and acknowledges what was taken, gives the leases back, and another instance goes on at once', async () => {
    const { url } = await createMigratedDatabase();
    const broker = await startMosquitto({ maxInflightMessages: 0 });
    const proxy = await startProxy(broker.port);
    const wire = wireLog();
    proxy.onClientData(wire.hook);
    const setup: AppSetup = {
      databaseUrl: url,
      mqttUrl: `mqtt://127.0.0.1:${proxy.port}`,
      contracts: [faultContract()],
      // A dead owner would keep its feed longer than this test may last.
      env: { BATCH_MAX_DELIVERIES: '20', MAX_IN_FLIGHT: '200', LEASE_TTL_SECONDS: '300' },
    };
    const first = await startConsuming(setup);
    const messages = faultMessages(4, 1, 500);
    const published = publishAll(broker.url, messages);
    await applied(url, 100);
    expect(await first.stop()).toEqual({ code: 0, signal: null });

    const { size } = await readBalance(url, FEED);
    expect(size).toBeLessThan(messages.length); // it was stopped in the middle
    // Whatever it wrote it acknowledged, and it said goodbye: nothing comes twice.
    expect(wire.acknowledged()).toHaveLength(size);
    expect(wire.count(PACKET.DISCONNECT)).toBe(1);
    expect(await query(url, 'SELECT name FROM lease')).toEqual([]);
    expect(first.stderr).not.toMatch(/"level":(50|60)/);

    const second = startInstance(setup);
    await consumes(second, FEED, 10_000);
    await published;
    await applied(url, messages.length);
    expect(await second.stop()).toEqual({ code: 0, signal: null });
    expect(countOutcomes(await expectGroundTruth(url, messages))).toEqual({ APPLIED: messages.length });
    await expectNothingUnacknowledged(broker.url, FEED);
  });

  it('with nothing to do: ends at once', async () => {
    const { url } = await createMigratedDatabase();
    const broker = await startMosquitto();
    const app = await startConsuming({ databaseUrl: url, mqttUrl: broker.url, contracts: [faultContract()] });
    expect(await app.stop()).toEqual({ code: 0, signal: null });
    expect(await query(url, 'SELECT name FROM lease')).toEqual([]);
  });
});
