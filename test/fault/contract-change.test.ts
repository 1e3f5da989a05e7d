import { openDatabase } from '../../src/ledger/client';
import { consumes, startConsuming, startInstance, type AppSetup } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { applied, countOutcomes } from '../support/fault-feed';
import { expectSoundLedger, query } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { activate, b, caseContract, parseContract } from '../support/pipeline';
import { until } from '../support/wait';

const FEED = 'cad-north';
const contract = (topics: string, feed = FEED) => caseContract({ feed, topics });

async function setUp() {
  const { url } = await createMigratedDatabase();
  const broker = await startMosquitto();
  const setup: AppSetup = { databaseUrl: url, mqttUrl: broker.url, contracts: [contract('["north/+", "old/+"]')] };
  const database = await openDatabase({ url, poolSize: 2, applicationName: 'test' });
  onCleanup(() => database.close());
  /** As a newer instance does when it starts. */
  const deploy = (text: string) => activate(database, parseContract(text));
  const send = (...messages: (readonly [topic: string, sequence: number])[]) =>
    publishAll(
      broker.url,
      messages.map(([topic, sequence]) => ({ topic, payload: b(sequence) })),
    );
  return { url, setup, deploy, send };
}

const subscribedAnew = (topics: string) => new RegExp(`"filters":\\[${topics}\\].*"msg":"subscribed"`);

describe('a contract changes while instances run', () => {
  it('they subscribe to what it adds, and unsubscribe what it has no more', async () => {
    const { url, setup, deploy, send } = await setUp();
    const app = await startConsuming(setup);
    await send(['north/1', 1], ['old/1', 2]);
    await applied(url, 2, FEED);
    await deploy(contract('["north/+", "new/+"]'));
    await app.waitForLine(subscribedAnew('"north/\\+","new/\\+"'));
    await send(['old/1', 3], ['new/1', 4], ['north/1', 5]);
    await applied(url, 4, FEED);
    expect(await app.stop()).toEqual({ code: 0, signal: null });
    expect(countOutcomes(await expectSoundLedger(url, FEED))).toEqual({ APPLIED: 4 });
  });

  it('also where a batch has met the new contract before they looked', async () => {
    const { url, setup, deploy, send } = await setUp();
    const app = await startConsuming({ ...setup, env: { LEASE_TTL_SECONDS: '9' } });
    await deploy(contract('["north/+", "new/+"]'));
    await send(['north/1', 1]);
    await applied(url, 1, FEED);
    await app.waitForLine(subscribedAnew('"north/\\+","new/\\+"'), 20_000);
    await send(['new/1', 2]);
    await applied(url, 2, FEED);
    expect(await app.stop()).toEqual({ code: 0, signal: null });
  });

  it('a standby that takes over subscribes to what is in force, not to what it started with', async () => {
    const { url, setup, deploy, send } = await setUp();
    const owner = await startConsuming(setup);
    const standby = startInstance(setup);
    await standby.waitForLine(/^started/);
    await deploy(contract('["new/+"]'));
    await owner.kill9();
    await standby.waitForLine(subscribedAnew('"new/\\+"'), 20_000);
    await send(['new/1', 1]);
    await applied(url, 1, FEED);
    expect(await standby.stop()).toEqual({ code: 0, signal: null });
  });

  it('they consume a feed that another instance brings', async () => {
    const { url, setup, deploy, send } = await setUp();
    const app = await startConsuming(setup);
    await deploy(contract('["south/+"]', 'cad-south'));
    await consumes(app, 'cad-south', 20_000);
    await send(['south/1', 1]);
    await applied(url, 1, 'cad-south');
    expect(await app.stop()).toEqual({ code: 0, signal: null });
  });

  it('an instance that cannot read it leaves the feed to one that can, and keeps the others', async () => {
    const { url, setup, deploy, send } = await setUp();
    const app = await startConsuming(setup);
    await deploy(contract('["south/+"]', 'cad-south'));
    await consumes(app, 'cad-south', 20_000);
    // As a program would write it that knows more than this one.
    await query(
      url,
      `WITH head AS (UPDATE feed_head SET contract_version = 2 WHERE feed_id = (SELECT id FROM feed WHERE name = $1)
                     RETURNING feed_id)
       INSERT INTO feed_contract (feed_id, version, digest, file, source_text, first_position, actor, recorded_at)
       SELECT feed_id, 2, sha256('new'), 'new.yaml', 'apiVersion: replay-ledger/v9', 0, 'test', now() FROM head`,
      [FEED],
    );
    await app.waitForLine(/"msg":"a newer program changed the contract/, 20_000);
    await until(
      async () => (await query(url, "SELECT 1 FROM lease WHERE name = 'feed/cad-north/default'")).length === 0,
      { what: 'the lease to be given back' },
    );
    await send(['south/1', 1]);
    await applied(url, 1, 'cad-south');
    expect(await app.stop()).toEqual({ code: 0, signal: null });
  });
});
