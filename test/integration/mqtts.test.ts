import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connectAsync } from 'mqtt';
import { readConfig } from '../../src/config';
import type { Environment } from '../../src/config-reader';
import { createPublisher } from '../../src/mqtt/publisher';
import type { TlsMaterial } from '../../src/mqtt/port';
import { contractsFolder } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { applied, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { freePort } from '../support/free-port';
import { startMosquitto } from '../support/mosquitto';
import { startNaiveConsumer, startObserver } from '../support/mqtt-client';
import { startProduct } from '../support/process';
import { ensureServerFolder, giveToServers } from '../support/server-user';
import { until } from '../support/wait';

const FIXTURES = resolve(__dirname, '../fixtures/tls');
const file = (name: string): string => join(FIXTURES, name);
const text = (name: string): string => readFileSync(file(name), 'utf8');

const CLIENT: TlsMaterial = { ca: text('ca.pem'), cert: text('client.pem'), key: text('client.key') };
const USER = { name: 'ledger-user', password: 'pässword with spaces' };

interface TlsBroker {
  /** `mqtts://`, name and certificate agree. */
  readonly url: string;
  /** The same broker without TLS, from inside. */
  readonly plainUrl: string;
}

/** A broker that asks for a client certificate, on a port beside its plain one. */
async function startTlsBroker(options: { certificate?: string; withPassword?: boolean } = {}): Promise<TlsBroker> {
  const { certificate = 'server', withPassword = false } = options;
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-tls-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  ensureServerFolder(folder);
  for (const name of ['ca.pem', `${certificate}.pem`, `${certificate}.key`]) {
    copyFileSync(file(name), join(folder, name));
    giveToServers(join(folder, name));
  }
  writeFileSync(join(folder, 'passwords'), passwordLine(USER.name, USER.password));
  giveToServers(join(folder, 'passwords'));
  const port = await freePort();
  const broker = await startMosquitto({
    extraConfig: [
      ...(withPassword ? [`password_file ${join(folder, 'passwords')}`] : []),
      `listener ${port} 127.0.0.1`,
      `cafile ${join(folder, 'ca.pem')}`,
      `certfile ${join(folder, `${certificate}.pem`)}`,
      `keyfile ${join(folder, `${certificate}.key`)}`,
      'require_certificate true',
    ].join('\n'),
  });
  return { url: `mqtts://localhost:${port}`, plainUrl: broker.url };
}

/** A line of a mosquitto password file: PBKDF2 with SHA-512, as mosquitto_passwd writes it. */
function passwordLine(user: string, password: string): string {
  const salt = randomBytes(12);
  const hash = pbkdf2Sync(password, salt, 101, 64, 'sha512');
  return `${user}:$7$101$${salt.toString('base64')}$${hash.toString('base64')}\n`;
}

describe.each([4, 5] as const)('mqtts, MQTT version %i', (protocolVersion) => {
  it('consumes and acknowledges with an authority and a client certificate of our own', async () => {
    const broker = await startTlsBroker();
    const observer = startObserver({ urls: [broker.url], protocolVersion, tls: CLIENT });
    await observer.subscribed();
    const producer = await connectAsync(broker.plainUrl, { reconnectPeriod: 0 });
    await producer.publishAsync('cad/1', 'over TLS', { qos: 1 });
    await producer.endAsync();
    await observer.received(1);
    expect(observer.texts()).toEqual(['over TLS']);
    expect(observer.subscriber.acknowledge(observer.deliveries)).toBe(1);
    await observer.subscriber.close();
  });

  it('publishes the same way', async () => {
    const broker = await startTlsBroker();
    const consumer = await startNaiveConsumer(broker.plainUrl, ['cop/#']);
    const publisher = createPublisher({ urls: [broker.url], clientId: 'relay', protocolVersion, tls: CLIENT });
    onCleanup(() => publisher.close());
    await publisher.publish({ topic: 'cop/1', payload: Buffer.from('{}'), properties: {} });
    await until(() => consumer.received.length === 1, { what: 'the message' });
    await publisher.close();
  });

  it.each([
    {
      who: 'a broker of an authority that we do not know',
      tls: { ...CLIENT, ca: text('stranger-ca.pem') },
      reason: /^UNABLE_TO_|^SELF_SIGNED/,
    },
    {
      who: 'a broker of an authority that we know, by the authorities of Node alone',
      tls: {},
      reason: /^UNABLE_TO_|^SELF_SIGNED/,
    },
    {
      who: 'a broker whose certificate is of another host',
      tls: CLIENT,
      certificate: 'elsewhere',
      reason: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    },
    // Under TLS 1.3 the broker judges us after we think that the connection stands.
    {
      who: 'us, without a certificate,',
      tls: { ca: CLIENT.ca },
      reason: /^ERR_SSL_|^ECONNRESET$|^EPIPE$|connection lost/,
    },
  ])('ends with a short reason where $who is refused', async ({ tls, certificate, reason }) => {
    const broker = await startTlsBroker({ certificate });
    const observer = startObserver({ urls: [broker.url], protocolVersion, tls });
    await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the refusal' });
    expect(observer.eventsOf('disconnected')[0]?.reason).toMatch(reason);
    expect(observer.eventsOf('connected')).toEqual([]);
    await observer.subscriber.close();
  });
});

it('serves over mqtts, with authority, certificate, key, user and password from files', async () => {
  const broker = await startTlsBroker({ withPassword: true });
  const { url } = await createMigratedDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-secrets-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'user'), `${USER.name}\n`);
  writeFileSync(join(folder, 'password'), `${USER.password}\n`);
  writeFileSync(join(folder, 'wrong'), 'wrong\n');
  const env = {
    DATABASE_URL: url,
    MQTT_URL: broker.url,
    MQTT_CA_FILE: file('ca.pem'),
    MQTT_CERT_FILE: file('client.pem'),
    MQTT_KEY_FILE: file('client.key'),
    MQTT_USERNAME_FILE: join(folder, 'user'),
    CONTRACTS_DIR: contractsFolder([faultContract()]),
    PORT: '0',
    LOG_LEVEL: 'debug',
  };

  const refused = startProduct(['serve', '--role', 'consumer'], {
    env: { ...env, MQTT_PASSWORD_FILE: join(folder, 'wrong') },
  });
  await refused.waitForLine(/"msg":"not connected to the broker"/);
  expect((await refused.stop()).code).toBe(0);
  expect(refused.stderr).toMatch(/not authori[sz]ed/i);

  const app = startProduct(['serve', '--role', 'all'], {
    env: { ...env, MQTT_PASSWORD_FILE: join(folder, 'password') },
  });
  await app.waitForLine(/"msg":"subscribed"/);
  const messages = faultMessages(2, 1, 5);
  const producer = await connectAsync(broker.plainUrl, { reconnectPeriod: 0 });
  await Promise.all(messages.map(({ topic, payload }) => producer.publishAsync(topic, payload, { qos: 1 })));
  await producer.endAsync();
  await applied(url, messages.length);
  expect((await app.stop()).code).toBe(0);
  await expectGroundTruth(url, messages);
  expect(app.stderr).not.toContain(USER.password);
});

describe('the configuration of mqtts', () => {
  const problemsOf = (env: Environment): string => {
    try {
      readConfig({ MQTT_URL: 'mqtts://broker.example', ...env }, (path) => readFileSync(path, 'utf8'));
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const pair = { MQTT_CERT_FILE: file('client.pem'), MQTT_KEY_FILE: file('client.key') };

  it('takes PEM files', () => {
    const env = { MQTT_URL: 'mqtts://a.example,wss://b.example', MQTT_CA_FILE: file('ca.pem'), ...pair };
    expect(problemsOf(env)).toBe('');
    expect(readConfig(env, (path) => readFileSync(path, 'utf8')).mqttTls).toEqual(CLIENT);
  });

  it.each([
    [{ MQTT_CA_FILE: '/nowhere/ca.pem' }, 'MQTT_CA_FILE: /nowhere/ca.pem cannot be read (ENOENT)'],
    [{ MQTT_CA_FILE: file('client.key') }, `MQTT_CA_FILE: ${file('client.key')} does not hold a certificate (PEM)`],
    [{ ...pair, MQTT_KEY_FILE: file('ca.pem') }, 'does not hold an unencrypted private key (PEM)'],
    [{ ...pair, MQTT_KEY_FILE: undefined }, 'MQTT_CERT_FILE: is set together with MQTT_KEY_FILE, or neither is'],
    [{ ...pair, MQTT_CERT_FILE: '' }, 'MQTT_CERT_FILE: is set together with MQTT_KEY_FILE, or neither is'],
    [
      { ...pair, MQTT_KEY_FILE: file('server.key') },
      'MQTT_KEY_FILE: is not the key of the certificate in MQTT_CERT_FILE',
    ],
    [{ ...pair, MQTT_URL: 'mqtts://a.example,mqtt://b.example' }, 'MQTT_CERT_FILE: is used only if every URL'],
    [{ MQTT_CA_FILE: file('ca.pem'), MQTT_URL: 'mqtt://a.example' }, 'MQTT_CA_FILE: is used only if every URL'],
    [{ MQTT_CA_FILE: file('ca.pem'), MQTT_URL: undefined }, 'MQTT_CA_FILE: is used only if every URL'],
    [
      { MQTT_USERNAME: 'a', MQTT_USERNAME_FILE: file('make.sh') },
      'MQTT_USERNAME: is set together with MQTT_USERNAME_FILE',
    ],
  ])('refuses %j', (env, problem) => {
    expect(problemsOf(env)).toContain(problem);
    expect(problemsOf(env)).not.toContain('-----');
  });
});
