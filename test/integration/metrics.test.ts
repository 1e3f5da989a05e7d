import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { readFeedFacts } from '../../src/ledger/facts';
import { createToken } from '../../src/ops/tokens';
import { consumes, startConsuming, startInstance, type AppSetup } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { FEED, applied, faultContract, faultMessages } from '../support/fault-feed';
import { query } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { b, startPipeline } from '../support/pipeline';
import { opsUrl, scrape } from '../support/metrics';
import { startRedis } from '../support/redis';
import { until } from '../support/wait';

const MESSAGES = faultMessages(2, 1, 10);

/** Scrapes until a series has a value: facts of the database may be some seconds old. */
async function scrapeUntil(url: string, series: string, value: number): Promise<Map<string, number>> {
  let last = new Map<string, number>();
  await until(
    async () => {
      last = await scrape(url);
      return last.get(series) === value;
    },
    { what: `${series} to be ${value}`, everyMs: 100 },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${[...last].map((one) => one.join(' ')).join('\n')}`);
  });
  return last;
}

async function redisCommand(url: string, name: string, ...args: string[]): Promise<void> {
  const client = new Redis(url);
  await client.call(name, ...args);
  client.disconnect();
}

async function setUp(env: Record<string, string> = {}): Promise<AppSetup & { readonly databaseUrl: string }> {
  const { url } = await createMigratedDatabase();
  const broker = await startMosquitto();
  return { databaseUrl: url, mqttUrl: broker.url, contracts: [faultContract()], env };
}

it('C060: shows what was decided, and that originals were found by the ledger after the window forgot them', async () => {
  const redis = await startRedis();
  const setup = { ...(await setUp()), redisUrl: redis.url };
  const first = await startConsuming(setup);
  const firstUrl = await opsUrl(first);
  await publishAll(setup.mqttUrl, MESSAGES);
  await applied(setup.databaseUrl, MESSAGES.length);
  const fresh = await scrapeUntil(firstUrl, `ledger_entries{feed="${FEED}"}`, MESSAGES.length);
  expect(fresh.get(`decisions_total{feed="${FEED}",outcome="APPLIED",tier="NONE"}`)).toBe(MESSAGES.length);
  expect(fresh.get(`messages_received_total{feed="${FEED}"}`)).toBe(MESSAGES.length);
  expect(fresh.get(`deliveries_received_total{feed="${FEED}",qos="1"}`)).toBe(MESSAGES.length);
  expect(fresh.get(`lease_owner{feed="${FEED}"}`)).toBe(1);
  expect(fresh.get(`mqtt_connected{feed="${FEED}"}`)).toBe(1);
  expect(fresh.get(`balanced{feed="${FEED}"}`)).toBe(1);
  expect(fresh.get(`deliveries_in_flight{feed="${FEED}"}`)).toBe(0);
  expect(fresh.get(`window_fallback_hits_total{feed="${FEED}"}`)).toBe(0);
  await first.stop();

  await redisCommand(redis.url, 'FLUSHALL');
  const second = await startConsuming(setup);
  const url = await opsUrl(second);
  await publishAll(setup.mqttUrl, MESSAGES);
  const replayed = await scrapeUntil(url, `window_fallback_hits_total{feed="${FEED}"}`, MESSAGES.length);
  expect(replayed.get(`decisions_total{feed="${FEED}",outcome="DUPLICATE_SUPPRESSED",tier="WINDOW"}`)).toBe(
    MESSAGES.length,
  );
  expect(replayed.get(`replay_lag_seconds_count{feed="${FEED}"}`)).toBe(MESSAGES.length);
  expect(replayed.get(`replay_lag_seconds_sum{feed="${FEED}"}`)).toBeGreaterThan(0);

  // The window is warm again.
  await publishAll(setup.mqttUrl, MESSAGES);
  const warm = await scrapeUntil(url, `window_lookups_total{feed="${FEED}",result="hit"}`, MESSAGES.length);
  expect(warm.get(`window_fallback_hits_total{feed="${FEED}"}`)).toBe(MESSAGES.length);
  await second.stop();
});

it('C066: raises an alarm while Redis takes nothing, and lowers it when it does again', async () => {
  const redis = await startRedis();
  const setup = { ...(await setUp()), redisUrl: redis.url };
  const app = await startConsuming(setup);
  const url = await opsUrl(app);
  const alarm = 'window_unavailable{operation="record"}';
  expect((await scrape(url)).get(alarm)).toBe(0);
  await redisCommand(redis.url, 'CONFIG', 'SET', 'maxmemory', '1');
  await publishAll(setup.mqttUrl, MESSAGES.slice(0, 10));
  await applied(setup.databaseUrl, 10);
  const full = await scrapeUntil(url, alarm, 1);
  expect(full.get('window_unavailable{operation="lookup"}')).toBe(0);
  expect(full.get(`deliveries_in_flight{feed="${FEED}"}`)).toBe(0);
  await redisCommand(redis.url, 'CONFIG', 'SET', 'maxmemory', '0');
  await publishAll(setup.mqttUrl, MESSAGES.slice(10));
  await applied(setup.databaseUrl, MESSAGES.length);
  await scrapeUntil(url, alarm, 0);
  await app.stop();
});

it('counts QoS 0, retries, and what is in flight while the database takes nothing', async () => {
  const setup = await setUp();
  const app = await startConsuming(setup);
  const url = await opsUrl(app);
  await query(
    setup.databaseUrl,
    `CREATE FUNCTION stop_writing() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'serialization_failure'; END $$`,
  );
  await query(
    setup.databaseUrl,
    'CREATE TRIGGER stop_writing BEFORE INSERT ON batch FOR EACH ROW EXECUTE FUNCTION stop_writing()',
  );
  await publishAll(
    setup.mqttUrl,
    MESSAGES.map((message) => ({ ...message, qos: 0 as const })),
  );
  const retries = `batch_retries_total{feed="${FEED}"}`;
  const stopped = await until(
    async () => {
      const shown = await scrape(url);
      return (
        (shown.get(retries) ?? 0) >= 2 &&
        shown.get(`deliveries_received_total{feed="${FEED}",qos="0"}`) === MESSAGES.length &&
        shown
      );
    },
    { what: 'two retries' },
  );
  expect(stopped.get(`deliveries_in_flight{feed="${FEED}"}`)).toBe(MESSAGES.length);
  expect(stopped.get(`deliveries_in_flight_bytes{feed="${FEED}"}`)).toBe(
    MESSAGES.reduce((sum, { topic, payload }) => sum + Buffer.byteLength(topic) + Buffer.byteLength(payload), 0),
  );
  expect(stopped.get(`messages_received_total{feed="${FEED}"}`)).toBe(0);
  await query(setup.databaseUrl, 'DROP TRIGGER stop_writing ON batch');
  await scrapeUntil(url, `messages_received_total{feed="${FEED}"}`, MESSAGES.length);
  expect(
    (await scrapeUntil(url, `deliveries_in_flight{feed="${FEED}"}`, 0)).get(`deliveries_waiting{feed="${FEED}"}`),
  ).toBe(0);
  await app.stop();
});

it('counts a session that the broker lost, and shows which of two instances owns the feed', async () => {
  const setup = await setUp();
  const broker = await startMosquitto({ persistence: false });
  const here = { ...setup, mqttUrl: broker.url };
  const owner = await startConsuming(here);
  const standby = startInstance(here);
  const [ownerUrl, standbyUrl] = [await opsUrl(owner), await opsUrl(standby)];
  const lease = `lease_owner{feed="${FEED}"}`;
  expect([(await scrape(ownerUrl)).get(lease), (await scrape(standbyUrl)).get(lease)]).toEqual([1, 0]);
  await broker.kill9();
  await scrapeUntil(ownerUrl, `mqtt_connected{feed="${FEED}"}`, 0);
  await broker.start();
  const back = await scrapeUntil(ownerUrl, `mqtt_sessions_lost_total{feed="${FEED}"}`, 1);
  expect(back.get(`mqtt_disconnects_total{feed="${FEED}"}`)).toBeGreaterThanOrEqual(1);
  await owner.stop();
  await consumes(standby, FEED);
  expect((await scrape(standbyUrl)).get(lease)).toBe(1);
  await standby.stop();
});

it('answers health, and metrics only to a token of all agencies where there are tokens', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-tokens-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  const holder = { role: 'viewer', agencies: null, expiresAtMs: null } as const;
  const [all, scoped] = [
    createToken({ ...holder, name: 'all' }),
    createToken({ ...holder, name: 'scoped', agencies: ['x'] }),
  ];
  writeFileSync(join(folder, 'tokens'), `${all.line}\n${scoped.line}\n`);
  const app = startInstance(await setUp({ API_TOKENS_FILE: join(folder, 'tokens') }));
  const url = await opsUrl(app);
  const status = async (path: string, token?: string, method = 'GET'): Promise<number> => {
    const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
    return (await fetch(`${url}${path}`, { method, headers })).status;
  };
  expect(await status('/healthz')).toBe(200);
  expect(await status('/readyz')).toBe(200);
  expect(await status('/metrics')).toBe(401);
  expect(await status('/metrics', scoped.token)).toBe(401);
  expect(await status('/metrics', all.token)).toBe(200);
  expect(await status('/metrics', all.token, 'POST')).toBe(405);
  expect(await status('/graphql')).toBe(404);
  await app.stop();
});

it('sees that a ledger does not balance, and which held entries wait', async () => {
  const { url, database, deliver } = await startPipeline();
  await deliver(b(2), b(1), b(2, { status: 'OTHER' }), 'no JSON', b(2));
  const facts = { feed: 'cad-north', size: 5, held: 3, unsent: 0 };
  expect(await readFeedFacts(database.prisma)).toEqual([{ ...facts, balanced: true }]);
  await query(url, `INSERT INTO applied_key (feed_id, key_version, key, position) SELECT id, 1, '\\x00', 0 FROM feed`);
  expect(await readFeedFacts(database.prisma)).toEqual([{ ...facts, balanced: false }]);
  await query(url, `DELETE FROM applied_key WHERE key = '\\x00'`);
  await query(url, 'UPDATE batch SET received = received + 1');
  expect(await readFeedFacts(database.prisma)).toEqual([{ ...facts, balanced: false }]);
});
