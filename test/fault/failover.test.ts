import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startConsuming } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { expectNothingUnacknowledged } from '../support/fault-broker';
import { FEED, applied, countOutcomes, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { query, readBalance } from '../support/ledger';
import { startMosquitto, startStandby } from '../support/mosquitto';
import { PACKET, publishAll, wireLog } from '../support/mqtt-client';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

const BEFORE = faultMessages(4, 1, 75);
const AFTER = faultMessages(4, 76, 100);

describe.each([
  { name: '3.1.1', mqttVersion: 4 },
  { name: '5', mqttVersion: 5 },
] as const)(
  'a broker dies, and a standby that knows no acknowledgement delivers again, MQTT $name',
  ({ mqttVersion }) => {
    const snapshots = mkdtempSync(join(tmpdir(), 'replay-ledger-snapshot-'));
    afterAll(() => rmSync(snapshots, { recursive: true, force: true }));

    it('C001: every redelivery is one entry that names its original, and the incidents are the ground truth', async () => {
      const { url } = await createMigratedDatabase();
      // No limit in flight: the snapshot is taken with every message on its way, and none acknowledged.
      const primary = await startMosquitto({ maxInflightMessages: 0 });
      const proxy = await startProxy(primary.port);
      const wire = wireLog();
      const setup = {
        databaseUrl: url,
        mqttUrl: `mqtt://127.0.0.1:${proxy.port}`,
        contracts: [faultContract()],
        mqttVersion,
        env: { BATCH_MAX_DELIVERIES: '50' },
      };
      const app = await startConsuming(setup);

      // While its acknowledgements are kept from the broker, the consumer applies everything.
      proxy.onClientData(wire.hook);
      proxy.pauseUpstream();
      await publishAll(primary.url, BEFORE);
      await applied(url, BEFORE.length);
      await primary.snapshotTo(snapshots);
      proxy.resume();
      await until(() => wire.acknowledged().length === BEFORE.length, { what: 'every acknowledgement' });
      await publishAll(primary.url, [{ topic: 'barrier', payload: '' }]); // another turn of the broker: it has acted on them
      await primary.kill9();
      const standby = await startStandby(primary, snapshots);

      await until(async () => (await readBalance(url, FEED)).size >= 2 * BEFORE.length, { what: 'every redelivery' });
      await publishAll(standby.url, AFTER);
      await applied(url, BEFORE.length + AFTER.length);
      expect(await app.stop()).toEqual({ code: 0, signal: null });

      const entries = await expectGroundTruth(url, [...BEFORE, ...AFTER]);
      expect(countOutcomes(entries)).toEqual({
        APPLIED: BEFORE.length + AFTER.length,
        DUPLICATE_SUPPRESSED: BEFORE.length,
      });
      const replays = entries.filter(({ outcome }) => outcome === 'DUPLICATE_SUPPRESSED');
      expect(replays.map(({ original }) => original)).toEqual(BEFORE.map((_, index) => index));
      expect(new Set(replays.map(({ tier, dup }) => `${tier} ${dup}`))).toEqual(new Set(['WINDOW true']));
      // The session was there, so nothing is said to be lost.
      expect(await query(url, "SELECT kind FROM admin_event WHERE kind <> 'CONTRACT_ACTIVATED'")).toEqual([]);
      expect(wire.count(PACKET.CONNECT)).toBeGreaterThan(0);
      await expectNothingUnacknowledged(standby.url, FEED, mqttVersion);
    });
  },
);
