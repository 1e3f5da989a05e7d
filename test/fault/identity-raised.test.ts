/** The identity of a feed is changed by a restart, while the broker delivers again what was not acknowledged before. */
import { expireLeases, startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { expectNothingUnacknowledged } from '../support/fault-broker';
import { FEED, applied, countOutcomes, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';

const BATCH = 10;
const MESSAGES = faultMessages(3, 1, 30);

function contract(version: number, agency: string): string {
  return faultContract({
    identity: `{ version: ${version}, agency: { const: ${agency} }, source: { topicLevel: 1 }, sequence: { pointer: /seq } }`,
  });
}

it('applies everything once, though consumers of both versions are killed before they acknowledge', async () => {
  const { url } = await createMigratedDatabase();
  const broker = await startMosquitto();
  const former: AppSetup = {
    databaseUrl: url,
    mqttUrl: broker.url,
    contracts: [contract(1, 'county')],
    env: { BATCH_MAX_DELIVERIES: String(BATCH) },
  };
  const raised: AppSetup = { ...former, contracts: [contract(2, 'state')] };

  const before = await startConsuming(former, { step: 'committed', time: 3 });
  await publishAll(broker.url, MESSAGES);
  expect(await before.exit).toEqual({ code: null, signal: 'SIGKILL' });
  await expireLeases(url);
  const after = startInstance(raised, { step: 'committed', time: 3 });
  expect(await after.exit).toEqual({ code: null, signal: 'SIGKILL' });
  await expireLeases(url);
  // Of two files the older: it is drift, and what is in force stays.
  const clean = startInstance(former);
  await applied(url, MESSAGES.length);
  expect(await clean.stop()).toEqual({ code: 0, signal: null });

  const entries = await expectGroundTruth(url, MESSAGES);
  const { DUPLICATE_SUPPRESSED = 0, ...others } = countOutcomes(entries);
  expect(others).toEqual({ APPLIED: MESSAGES.length });
  expect(DUPLICATE_SUPPRESSED).toBeGreaterThan(0);
  expect(entries.some(({ reason }) => reason === 'same_former_key_and_digest')).toBe(true);
  const versions = entries.map(({ keyVersion, agency }) => `${keyVersion} ${agency}`);
  expect(versions).toEqual([...versions].sort());
  expect(new Set(versions)).toEqual(new Set(['1 county', '2 state']));
  await expectNothingUnacknowledged(broker.url, FEED);
});
