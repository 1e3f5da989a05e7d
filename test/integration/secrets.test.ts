import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { contractsFolder } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { applied, faultContract, faultMessages } from '../support/fault-feed';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { startProduct, type TestProcess } from '../support/process';
import { startRedis } from '../support/redis';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

/** One word for all of them: whichever way it comes out, as it is or percent-encoded, it is found. */
const SECRET = 'Pssst-0815-secret';
const NOWHERE = '127.0.0.1:1';

function secretFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-secrets-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'secret'), text);
  return join(folder, 'secret');
}

function expectSilence(process: TestProcess): void {
  const output = `${process.stdout}${process.stderr}`;
  expect(output).not.toBe('');
  expect(output.toLowerCase()).not.toContain(SECRET.toLowerCase());
  expect(output).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 20));
}

const BASE = { CONTRACTS_DIR: contractsFolder([faultContract()]), PORT: '0', MQTT_PORT: '0', LOG_LEVEL: 'trace' };

describe('a start that fails says why, and no secret', () => {
  it.each([
    ['an unreachable database', { DATABASE_URL: `postgres://u:${SECRET}@${NOWHERE}/d` }],
    [
      'an unreachable database for migrations',
      { MIGRATE_DATABASE_URL: `postgres://u:${SECRET}@${NOWHERE}/d`, DATABASE_URL: 'postgres://u@127.0.0.1:1/d' },
    ],
    ['a database URL that is none', { DATABASE_URL: `postgres://u:${SECRET}@host:port/d` }],
    ['a database URL of another scheme', { DATABASE_URL: `mysql://u:${SECRET}@host/d` }],
    ['a secret with a wrong parameter', { DATABASE_URL: `postgres://u:${SECRET}@${NOWHERE}/d?sslmode=${SECRET}` }],
    ['a Redis URL that is none', { REDIS_URL: `redis:${SECRET}` }],
    ['a broker URL that is none', { MQTT_URL: `mqtt://u:${SECRET}@host:port,${SECRET}` }],
    ['a secret that is set twice', { MQTT_PASSWORD: SECRET, MQTT_PASSWORD_FILE: '/nowhere' }],
    ['a token in the place of its hash', { API_TOKENS_FILE: secretFile(`rl_${SECRET}\n`) }],
    [
      'a key that is none',
      {
        MQTT_URL: 'mqtts://b',
        MQTT_CERT_FILE: secretFile(SECRET),
        MQTT_KEY_FILE: secretFile(`-----BEGIN PRIVATE KEY-----\n${SECRET}`),
      },
    ],
  ])('%s', async (_what, secrets) => {
    const env = { ...BASE, DATA_DIR: join(secretFile(''), '..', 'data'), ...secrets };
    const product = startProduct(['serve'], { env });
    expect((await product.exit).code).toBe(1);
    expect(product.stderr).toMatch(/replay-ledger: /);
    expect(product.stderr).not.toMatch(/\n {4}at /);
    expectSilence(product);
    if (!('DATABASE_URL' in secrets)) return;
    const migrate = startProduct(['migrate'], { env });
    expect((await migrate.exit).code).toBe(1);
    expectSilence(migrate);
  });
});

it('a service whose every store fails says so, and no secret', async () => {
  const { url } = await createMigratedDatabase();
  const [broker, redis] = [await startMosquitto(), await startRedis({ args: ['--requirepass', 'another'] })];
  const database = new URL(url);
  const [databaseProxy, brokerProxy] = [await startProxy(Number(database.port)), await startProxy(broker.port)];
  database.port = String(databaseProxy.port);
  // The server lets everybody in, whatever they say.
  database.password = SECRET;
  const redisUrl = new URL(redis.url);
  redisUrl.password = SECRET;
  const app = startProduct(['serve'], {
    env: {
      ...BASE,
      DATABASE_URL_FILE: secretFile(`${database.href}\n`),
      REDIS_URL: redisUrl.href,
      MQTT_URL: `mqtt://u:${SECRET}@127.0.0.1:${brokerProxy.port}`,
      MQTT_USERNAME_FILE: secretFile(`${SECRET}-user`),
      MQTT_PASSWORD_FILE: secretFile(SECRET),
      LEASE_TTL_SECONDS: '2',
    },
  });
  await app.waitForLine(/"msg":"subscribed"/);
  const [, api] = await app.waitForLine(/"url":"(http:[^"]+\/graphql)"/);
  await publishAll(broker.url, faultMessages(1, 1, 2));
  await applied(url, 2);
  await askWithSecrets(api ?? '');

  await databaseProxy.refuse(true);
  databaseProxy.cut();
  await publishAll(broker.url, faultMessages(1, 3, 4));
  await app.waitForLine(/"msg":"the batch is tried again"/);
  await askWithSecrets(api ?? '');
  brokerProxy.cut();
  await app.waitForLine(/"msg":"not connected to the broker"/);
  await databaseProxy.refuse(false);
  await applied(url, 4);
  expect((await app.stop()).code).toBe(0);
  expect(app.stderr).toMatch(/the window is not available/);
  expectSilence(app);
});

/** As clients do that hold a token: in a header, a parameter, a variable, and at the start of a socket. */
async function askWithSecrets(api: string): Promise<void> {
  const headers = {
    authorization: `Bearer ${SECRET}`,
    cookie: `session=${SECRET}`,
    'content-type': 'application/json',
  };
  const bodies = [
    JSON.stringify({ query: '{ feeds { name } }' }),
    JSON.stringify({
      query: 'query ($key: String) { decisions(filter: { key: $key }) { edges { cursor } } }',
      variables: { key: SECRET },
    }),
    `{ "query": "${SECRET}`,
  ];
  for (const body of bodies) await fetch(`${api}?token=${SECRET}`, { method: 'POST', headers, body });
  await fetch(`${api.replace('/graphql', '/metrics')}?token=${SECRET}`, { headers });
  const client = createClient({
    url: api.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${SECRET}` },
    retryAttempts: 0,
  });
  const iterator = client.iterate({
    query: 'subscription ($after: String) { decisions(after: $after) { cursor } }',
    variables: { after: SECRET },
  });
  const { value } = (await iterator.next()) as { value: { errors?: object[] } };
  expect(value.errors).toHaveLength(1);
  await client.dispose();
}

it('tail keeps its token to itself', async () => {
  const tail = startProduct(['tail', '--url', `http://${NOWHERE}/graphql`, '--token-file', secretFile(SECRET)]);
  await until(() => tail.stderr.includes('not connected'), { what: 'a failed attempt' });
  expect((await tail.stop()).code).toBe(0);
  expectSilence(tail);
});

it('a search like this one finds a secret that is told', () => {
  const told = { stdout: '', stderr: `connecting to postgres://u:${SECRET.toUpperCase()}@host` } as TestProcess;
  expect(() => expectSilence(told)).toThrow();
});
