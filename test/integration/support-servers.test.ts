import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectMqtt, type MqttClient } from 'mqtt';
import { onCleanup } from '../support/cleanup';
import { createTestDatabase } from '../support/database';
import { startMosquitto, startStandby } from '../support/mosquitto';
import { startPostgres, withClient } from '../support/postgres';
import { startRedis } from '../support/redis';
import { sharedRedisUrl } from '../support/shared-servers';
import { until } from '../support/wait';

const count = async (url: string): Promise<number> =>
  withClient(url, async (client) => {
    const result = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM t');
    return result.rows[0]?.n ?? -1;
  });

describe('Postgres', () => {
  test('a database of the shared server is empty and its own', async () => {
    const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    await withClient(one.url, (client) => client.query('CREATE TABLE t (a int)'));
    await expect(count(one.url)).resolves.toBe(0);
    await expect(count(other.url)).rejects.toMatchObject({ code: '42P01' });
    await one.drop();
    await expect(count(one.url)).rejects.toMatchObject({ code: '3D000' });
  });

  test('stopped, crashed and killed, it comes back on its port with what was committed', async () => {
    const postgres = await startPostgres();
    const url = await postgres.createDatabase('kept');
    await withClient(url, (client) => client.query('CREATE TABLE t AS SELECT 1 AS a'));
    for (const end of [() => postgres.stop(), () => postgres.stop('immediate'), () => postgres.kill9()]) {
      await end();
      await expect(count(url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      await postgres.start();
      await expect(count(url)).resolves.toBe(1);
    }
    await postgres.stop();
  });

  test('a copy of the running server is what was committed, not what came later', async () => {
    const postgres = await startPostgres();
    const url = await postgres.createDatabase('copied');
    await withClient(url, (client) => client.query('CREATE TABLE t AS SELECT 1 AS a'));
    const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-copy-'));
    onCleanup(() => rmSync(folder, { recursive: true, force: true }));
    const copy = join(folder, 'data');
    await postgres.copyData(copy);
    await withClient(url, (client) => client.query('INSERT INTO t VALUES (2)'));
    await postgres.stop('immediate');

    const restored = await startPostgres({ dataDir: copy, port: postgres.port });
    await expect(count(url)).resolves.toBe(1);
    await restored.stop();
    await postgres.start();
    await expect(count(url)).resolves.toBe(2);
    await postgres.stop();
  });
});

const say = (port: number, command: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(`${command}\r\n`));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString());
    });
    socket.once('error', reject);
  });

describe('Redis', () => {
  test('the shared one answers', async () => {
    await expect(say(Number(new URL(sharedRedisUrl()).port), 'PING')).resolves.toBe('+PONG\r\n');
  });

  test('it forgets everything when it is killed, and has the bounds it was given', async () => {
    const redis = await startRedis({ maxmemory: '3mb', policy: 'allkeys-lru' });
    await say(redis.port, 'SET a b');
    await expect(say(redis.port, 'GET a')).resolves.toBe('$1\r\nb\r\n');
    await expect(say(redis.port, 'CONFIG GET maxmemory-policy')).resolves.toContain('allkeys-lru');
    await expect(say(redis.port, 'CONFIG GET maxmemory')).resolves.toContain('3145728');
    await redis.kill9();
    await redis.start();
    await expect(say(redis.port, 'GET a')).resolves.toBe('$-1\r\n');
    await redis.stop();
  });
});

/** A client with a persistent session that counts what it gets and acknowledges nothing until it is told to. */
function subscriber(
  url: string,
  protocolVersion: 4 | 5,
): { client: MqttClient; received: string[]; acknowledge(on: boolean): void } {
  const client = connectMqtt(url, {
    clientId: 'support-test',
    clean: false,
    protocolVersion,
    reconnectPeriod: 50,
    ...(protocolVersion === 5 ? { properties: { sessionExpiryInterval: 300 } } : {}),
  });
  const received: string[] = [];
  let acknowledging = false;
  client.on('error', () => undefined); // refused while no broker is there
  client.handleMessage = (packet, done) => {
    received.push(packet.payload.toString());
    done(acknowledging ? undefined : new Error('not acknowledged'));
  };
  onCleanup(() => client.endAsync(true));
  return { client, received, acknowledge: (on) => (acknowledging = on) };
}

describe.each([4, 5] as const)('mosquitto, MQTT protocol version %i', (version) => {
  test('a standby on a snapshot delivers again what the dead primary saw acknowledged later', async () => {
    const primary = await startMosquitto();
    const { client, received, acknowledge } = subscriber(primary.url, version);
    await until(() => client.connected, { what: 'the client to connect' });
    await client.subscribeAsync('a', { qos: 1 });
    for (const text of ['1', '2', '3']) await client.publishAsync('a', text, { qos: 1 });
    await until(() => received.length === 3, { what: 'three messages' });
    const snapshot = join(primary.dir, '../snapshot');
    await primary.snapshotTo(snapshot);

    // A second connection of the session makes the primary deliver again, and now everything is acknowledged.
    acknowledge(true);
    client.reconnect();
    await until(() => received.length === 6, { what: 'the redelivery by the primary' });
    await client.publishAsync('a', '4', { qos: 1 });
    await until(() => received.length === 7, { what: 'the fourth message' });
    await primary.kill9();
    expect(primary.running).toBe(false);

    const standby = await startStandby(primary, snapshot);
    expect(standby.url).toBe(primary.url);
    await until(() => received.length === 10, { what: 'the redelivery by the standby' });
    await client.publishAsync('a', '5', { qos: 1 });
    await until(() => received.length === 11, { what: 'the fifth message' });
    expect(received).toEqual(['1', '2', '3', '1', '2', '3', '4', '1', '2', '3', '5']);
  });
});

test('a standby is refused while the primary holds the port', async () => {
  const primary = await startMosquitto();
  await primary.snapshotTo(join(primary.dir, '../snapshot'));
  await expect(startStandby(primary, join(primary.dir, '../snapshot'))).rejects.toThrow('still holds the port');
});

test('a server that cannot start says why, in its own words', async () => {
  await expect(startRedis({ args: ['--no-such-setting', '1'] })).rejects.toThrow(
    /redis ended while starting[^]*no-such-setting/,
  );
});
