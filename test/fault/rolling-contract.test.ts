/** Two instances are replaced one after the other, by ones with another contract, while messages come. */
import { startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { applied, expectEachAppliedOnce, FEED, faultContract, faultMessages } from '../support/fault-feed';
import { query } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';

/** Entries that were decided under another contract, or policy, than the one in force at their position. */
function decidedUnderAnother(url: string): Promise<unknown[]> {
  return query(
    url,
    `SELECT e.position FROM ledger_entry e
     CROSS JOIN LATERAL (
       SELECT c.digest FROM feed_contract c WHERE c.feed_id = e.feed_id AND c.first_position <= e.position
       ORDER BY c.first_position DESC, c.version DESC LIMIT 1) contract
     CROSS JOIN LATERAL (
       SELECT p.version FROM policy_version p WHERE p.feed_id = e.feed_id AND p.first_position <= e.position
       ORDER BY p.first_position DESC, p.version DESC LIMIT 1) policy
     WHERE e.contract_digest <> contract.digest OR e.policy_version <> policy.version`,
  );
}

it('no entry is decided under the contract that is not in force, and an old file does not come back', async () => {
  const { url } = await createMigratedDatabase();
  const broker = await startMosquitto();
  const setup = (windowSeconds: number): AppSetup => ({
    databaseUrl: url,
    mqttUrl: broker.url,
    contracts: [faultContract({ windowSeconds })],
    env: { BATCH_MAX_DELIVERIES: '5' },
  });
  const [before, after] = [setup(600), setup(900)];
  const one = await startConsuming(before);
  const two = startInstance(before);
  await two.waitForLine(/^started/);

  const messages = faultMessages(3, 1, 400);
  const publish = async (from: number, to: number) => {
    for (let next = from; next < to; next += 30)
      await publishAll(broker.url, messages.slice(next, Math.min(next + 30, to)));
  };
  const untilChange = publish(0, 250);
  await applied(url, 60);
  expect(await two.stop()).toEqual({ code: 0, signal: null });
  const newTwo = startInstance(after); // in force from here, while the old one still consumes
  await newTwo.waitForLine(/^started/);
  // However fast the first ones were decided, these are not before the change.
  const load = untilChange.then(() => publish(250, messages.length));
  expect(await one.stop()).toEqual({ code: 0, signal: null });
  const old = startInstance(before); // as an orchestrator restarts one that was not replaced yet
  await old.waitForLine(/^started/);
  await load;
  await applied(url, messages.length);

  expect(await query(url, 'SELECT contract_version, policy_version FROM feed_head')).toEqual([
    { contract_version: 2, policy_version: 2 },
  ]);
  const counts = await query<{ contract: number; n: number }>(
    url,
    `SELECT c.version AS contract, count(*)::int AS n FROM ledger_entry e
     JOIN feed_contract c ON c.feed_id = e.feed_id AND c.digest = e.contract_digest GROUP BY 1 ORDER BY 1`,
  );
  expect(counts.map(({ contract }) => contract)).toEqual([1, 2]);
  expect(await decidedUnderAnother(url)).toEqual([]);
  for (const instance of [newTwo, old]) expect(await instance.stop()).toEqual({ code: 0, signal: null });
  await expectEachAppliedOnce(url, messages, FEED);
});
