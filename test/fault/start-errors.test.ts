import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { appEnvironment, consumes, contractsFolder, type AppSetup } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { FEED, applied, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { freePort } from '../support/free-port';
import { query } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { startProduct, type TestProcess } from '../support/process';

const SECRET = 'correct-horse-battery';

async function setUp(env: Readonly<Record<string, string>> = {}): Promise<AppSetup> {
  const { url } = await createMigratedDatabase();
  const mqttUrl = `mqtt://127.0.0.1:${await freePort()}`;
  return { databaseUrl: url, mqttUrl, contracts: [faultContract()], env };
}

function serve(setup: AppSetup, ...args: string[]): TestProcess {
  return startProduct(['serve', ...args], {
    env: appEnvironment({ ...setup, env: { LOG_LEVEL: 'info', ...setup.env } }),
  });
}

/** The message of a product that did not start: what it says beside its log. */
async function refusal(product: TestProcess): Promise<string> {
  expect(await product.exit).toEqual({ code: 1, signal: null });
  expect(product.stdout).toBe('');
  const lines = product.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
  const message = lines.join('\n');
  expect(message).toMatch(/^replay-ledger: /);
  expect(message).not.toMatch(/^\s+at /m);
  expect(product.stderr).not.toContain(SECRET);
  expect(product.stderr).not.toMatch(/"stack"|node_modules/);
  return message.replace('replay-ledger: ', '');
}

/** Takes a port until the end of the test file. */
async function occupiedPort(): Promise<number> {
  const port = await freePort();
  const server = await new Promise<Server>((resolve, reject) => {
    const listening: Server = createServer((socket) => socket.destroy());
    listening.once('error', reject);
    listening.listen(port, '127.0.0.1', () => resolve(listening));
  });
  onCleanup(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return port;
}

describe('what cannot start says why, once, and ends with code 1', () => {
  it('bad configuration: all of it at once, without the secrets in it', async () => {
    const product = startProduct(['serve'], {
      env: {
        DATABASE_URL: `mysql://user:${SECRET}@127.0.0.1/db`,
        REDIS_URL: `${SECRET}`,
        PORT: 'many',
        HOST: '0.0.0.0',
        LEASE_TTL_SECONDS: '1',
        MQTT_VERSION: '4',
        MQTT_PASSWORD: SECRET,
        MQTT_PASSWORD_FILE: '/nowhere',
        LOG_LEVEL: 'loud',
      },
    });
    const lines = (await refusal(product)).split('\n').map((line) => line.trim());
    expect(lines[0]).toBe('the configuration is wrong:');
    const names = lines
      .slice(1)
      .map((line) => line.split(':')[0])
      .sort();
    expect(names).toEqual([
      'DATABASE_URL',
      'HOST',
      'LEASE_TTL_SECONDS',
      'LOG_LEVEL',
      'MQTT_PASSWORD',
      'MQTT_VERSION',
      'PORT',
      'REDIS_URL',
    ]);
  });

  it('bad contracts: every error of every file, with file, line and column', async () => {
    const setup = await setUp();
    const broken = faultContract().replace('sequence: {', 'seqence: {');
    const other = faultContract({ feed: 'other' }).replace('windowSeconds: 600', 'windowSeconds: 60');
    const lines = (await refusal(serve({ ...setup, contracts: [broken, other] }))).split('\n');
    expect(lines.some((line) => /0\.yaml:7:\d+/.test(line) && line.includes('seqence'))).toBe(true);
    expect(lines.some((line) => /1\.yaml:\d+:\d+/.test(line) && line.includes('420'))).toBe(true);
  });

  it('a contracts folder that is not there', async () => {
    const setup = await setUp({ CONTRACTS_DIR: join(contractsFolder([]), 'missing') });
    expect(await refusal(serve(setup))).toContain('missing');
  });

  it('the port of the API is in use', async () => {
    const port = await occupiedPort();
    const message = await refusal(serve(await setUp({ PORT: String(port) })));
    expect(message).toBe(`port ${port} is in use; choose another (PORT, MQTT_PORT; 0 takes a free one)`);
  });

  it('the port of the embedded broker is in use', async () => {
    const port = await occupiedPort();
    const { databaseUrl, contracts } = await setUp();
    const env = { ...appEnvironment({ databaseUrl, mqttUrl: '', contracts }), MQTT_PORT: String(port) };
    const product = startProduct(['serve'], { env });
    expect(await refusal(product)).toBe(`port ${port} is in use; choose another (PORT, MQTT_PORT; 0 takes a free one)`);
  });

  it('Postgres cannot be reached', async () => {
    const port = await freePort();
    const databaseUrl = `postgresql://ledger:${SECRET}@127.0.0.1:${port}/ledger`;
    const message = await refusal(serve({ ...(await setUp()), databaseUrl }));
    expect(message.split('\n')).toHaveLength(1);
    expect(message).toContain(`127.0.0.1:${port}`);
    expect(message).toContain('ECONNREFUSED');
  });

  it('there is no such database', async () => {
    const setup = await setUp();
    const url = new URL(setup.databaseUrl);
    url.pathname = '/absent';
    const message = await refusal(serve({ ...setup, databaseUrl: url.href }));
    expect(message.split('\n')).toHaveLength(1);
    expect(message).toContain('absent');
  });

  it('the database is newer than the program', async () => {
    const setup = await setUp();
    await query(
      setup.databaseUrl,
      `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count)
       VALUES ('future', 'c', now(), '9999_of_tomorrow', 1)`,
    );
    const message = await refusal(serve(setup));
    expect(message.split('\n')).toHaveLength(1);
    expect(message).toContain('9999_of_tomorrow');
    expect(message).toContain('newer than this program');
  });

  it('a contract whose identity changed while its feed has entries', async () => {
    const setup = await setUp();
    const broker = await startMosquitto();
    const first = serve({ ...setup, mqttUrl: broker.url, env: { LOG_LEVEL: 'debug' } }, '--role', 'consumer');
    await first.waitForLine(/"connected to the broker"/);
    const messages = faultMessages(1, 1, 3);
    await publishAll(broker.url, messages);
    await applied(setup.databaseUrl, 3).finally(() => first.stop());
    const changed = faultContract({
      identity: '{ agency: { const: state }, source: { topicLevel: 1 }, sequence: { pointer: /seq } }',
    });
    const message = await refusal(serve({ ...setup, contracts: [changed] }));
    expect(message).toContain('0.yaml');
    expect(message).toContain('identity.version');
  });
});

describe('what is only a hint, or comes back by itself, does not stop the start', () => {
  it('Redis cannot be reached: it decides without', async () => {
    const broker = await startMosquitto();
    const redisUrl = `redis://:${SECRET}@127.0.0.1:${await freePort()}`;
    const setup: AppSetup = { ...(await setUp()), mqttUrl: broker.url, redisUrl, env: { LOG_LEVEL: 'debug' } };
    const product = serve(setup, '--role', 'consumer');
    await consumes(product, FEED);
    const messages = faultMessages(2, 1, 5);
    await publishAll(broker.url, messages);
    await applied(setup.databaseUrl, messages.length);
    expect(await product.stop()).toEqual({ code: 0, signal: null });
    await expectGroundTruth(setup.databaseUrl, messages);
    expect(product.stderr).toMatch(/"level":40.*the window is not available/);
    expect(product.stderr).not.toContain(SECRET);
  });

  it('the broker cannot be reached: it keeps trying, and consumes when it comes', async () => {
    const port = await freePort();
    const setup: AppSetup = { ...(await setUp()), mqttUrl: `mqtt://ledger:${SECRET}@127.0.0.1:${port}` };
    const product = serve(setup, '--role', 'consumer');
    await product.waitForLine(/ECONNREFUSED.*"not connected to the broker"/);
    const broker = await startMosquitto({ port });
    await product.waitForLine(/"feed":"[^"]*".*"connected to the broker"/);
    expect(await product.stop()).toEqual({ code: 0, signal: null });
    expect(product.stderr).toContain(FEED);
    expect(product.stderr).not.toContain(SECRET);
    expect(broker.running).toBe(true);
  });
});
