import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expireLeases, startConsuming, type AppSetup } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { expectNothingUnacknowledged } from '../support/fault-broker';
import { FEED, applied, countOutcomes, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { readEntries } from '../support/ledger';
import { opsUrl, scrape } from '../support/metrics';
import { startMosquitto } from '../support/mosquitto';
import { PACKET, publishAll, wireLog } from '../support/mqtt-client';
import { startPostgres, type PostgresServer } from '../support/postgres';
import { makeServerFolder } from '../support/server-user';
import { startProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

const OUTAGE_MS = 30_000;
const MAX_IN_FLIGHT = 100;

/** Sequences of four sources. */
const load = (first: number, last: number) => faultMessages(4, first, last);

async function startWorld(env: Readonly<Record<string, string>>) {
  const postgres = await startPostgres({ settings: { fsync: 'on' } });
  const broker = await startMosquitto({ maxInflightMessages: 0 });
  const proxy = await startProxy(broker.port);
  const sent = wireLog();
  const received = wireLog();
  proxy.onClientData(sent.hook);
  proxy.onServerData(received.hook);
  const url = await postgres.createDatabase('ledger');
  const setup: AppSetup = {
    databaseUrl: url,
    mqttUrl: `mqtt://127.0.0.1:${proxy.port}`,
    contracts: [faultContract()],
    env,
  };
  return { postgres, broker, proxy, sent, received, url, setup };
}

/** Entries in the data of a server that is down, read by another one on a copy. */
async function entriesOf(postgres: PostgresServer): Promise<number> {
  const folder = makeServerFolder('copy');
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'data');
  await postgres.copyData(dataDir);
  const copy = await startPostgres({ dataDir });
  const entries = await readEntries(copy.url('ledger'), FEED);
  await copy.stop();
  return entries.length;
}

describe('Postgres is away', () => {
  it('for thirty seconds under load: nothing is lost, nothing acknowledged meanwhile, and no restart is needed', async () => {
    const { postgres, broker, sent, url, setup } = await startWorld({ MAX_IN_FLIGHT: String(MAX_IN_FLIGHT) });
    const app = await startConsuming(setup);
    const before = load(1, 50);
    await publishAll(broker.url, before);
    await applied(url, 100);

    await postgres.stop('fast'); // in the middle of the load
    const downUntil = Date.now() + OUTAGE_MS;
    await sleep(1_000); // what was committed at the last moment is acknowledged
    const acknowledged = sent.acknowledged().length;
    expect(acknowledged).toBeLessThanOrEqual(await entriesOf(postgres));
    let sequence = 50;
    while (Date.now() < downUntil) {
      if (sequence < 450) await publishAll(broker.url, load(sequence + 1, (sequence += 20)));
      await sleep(Math.min(1_000, Math.max(0, downUntil - Date.now())));
    }
    expect(sent.acknowledged()).toHaveLength(acknowledged);
    expect(app.running).toBe(true);
    // Intake stopped at its bound: a batch at hand and what waits for the next one. What else has left the broker lies in
    // the buffers of the connection, which are not ours to bound.
    const inFlight = (await scrape(await opsUrl(app))).get(`deliveries_in_flight{feed="${FEED}"}`);
    expect(inFlight).toBeGreaterThanOrEqual(MAX_IN_FLIGHT);
    expect(inFlight).toBeLessThanOrEqual(2 * MAX_IN_FLIGHT);
    // Keep-alive went on: it is still the first connection.
    expect(sent.count(PACKET.CONNECT)).toBe(1);

    await postgres.start();
    const messages = load(1, sequence + 10);
    await publishAll(broker.url, load(sequence + 1, sequence + 10));
    await applied(url, messages.length, FEED, 60_000);
    expect(await app.stop()).toEqual({ code: 0, signal: null });
    expect(countOutcomes(await expectGroundTruth(url, messages))).toEqual({ APPLIED: messages.length });
    await expectNothingUnacknowledged(broker.url, FEED);
  }, 120_000);

  it('C021 C022: killed, and the connection to the broker lost as well: all is applied and acknowledged afterwards', async () => {
    const { postgres, broker, proxy, sent, received, url, setup } = await startWorld({ BATCH_MAX_DELIVERIES: '10' });
    const app = await startConsuming(setup);
    await publishAll(broker.url, faultMessages(4, 1, 10));
    await applied(url, 10);
    await postgres.kill9(); // in the middle of the load
    await publishAll(broker.url, faultMessages(4, 11, 20));
    await until(() => received.count(PACKET.PUBLISH) === 80, { what: 'everything to be delivered' });
    const acknowledged = sent.acknowledged().length;
    expect(acknowledged).toBeLessThanOrEqual(await entriesOf(postgres));
    proxy.cut();
    await sleep(1_000);
    expect(sent.acknowledged()).toHaveLength(acknowledged);

    await postgres.start();
    await expireLeases(url);
    const messages = faultMessages(4, 1, 20);
    await applied(url, messages.length);
    const due = messages.length - acknowledged;
    await until(() => sent.acknowledged().length - acknowledged === due, { what: 'every acknowledgement' });
    expect(await app.stop()).toEqual({ code: 0, signal: null });
    await expectGroundTruth(url, messages);
    await expectNothingUnacknowledged(broker.url, FEED);
  });
});
