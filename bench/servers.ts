/** The real servers that every part runs against: the same ones for all, as a default installation has them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startMosquitto } from '../test/support/mosquitto';
import { serverPrograms } from '../test/support/packages';
import { type PostgresServer, startPostgres } from '../test/support/postgres';
import { startRedis } from '../test/support/redis';
import { REPOSITORY } from './product';

export interface Servers {
  readonly mqttUrl: string;
  readonly redisUrl: string;
  readonly postgres: PostgresServer;
}

/** Ended by `cleanup()` of the test support. */
export async function startServers(): Promise<Servers> {
  const [mosquitto, redis, postgres] = await Promise.all([
    // Its state on disk plays no part in a drain, and would only be written at the end.
    startMosquitto({ persistence: false }),
    startRedis(),
    // The tests run without fsync and with some settings of their own; durability is what is measured here.
    startPostgres({ settings: { fsync: 'on', jit: 'on' } }),
  ]);
  return { mqttUrl: mosquitto.url, redisUrl: redis.url, postgres };
}

export async function versions(): Promise<Record<string, string>> {
  const { postgres, redis, mosquitto } = await serverPrograms();
  return {
    product: packageVersion(REPOSITORY),
    node: process.versions.node,
    mqtt: packageVersion(join(REPOSITORY, 'node_modules/mqtt')),
    prisma: packageVersion(join(REPOSITORY, 'node_modules/@prisma/client')),
    postgres: postgres.version,
    redis: redis.version,
    mosquitto: mosquitto.version,
  };
}

function packageVersion(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }).version;
}
