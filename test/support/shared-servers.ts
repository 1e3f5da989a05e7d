import { handOnServerPrograms, serverPrograms } from './packages';
import { handOnPostgresTemplate, startPostgres } from './postgres';
import { startRedis } from './redis';

const POSTGRES = 'TEST_POSTGRES_ADMIN_URL';
const REDIS = 'TEST_REDIS_URL';

/** Starts the servers that all test files share, and names them in the environment that Jest's workers inherit. */
export async function startSharedServers(): Promise<void> {
  handOnServerPrograms(await serverPrograms());
  await handOnPostgresTemplate();
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  process.env[POSTGRES] = postgres.adminUrl;
  process.env[REDIS] = redis.url;
}

/** The shared Postgres, database `postgres`, as superuser. Take a database of your own by `createTestDatabase`. */
export function sharedPostgresUrl(): string {
  return handed(POSTGRES);
}

/** The shared Redis. Other test files use it at the same time: keep to a key prefix of your own, never flush it. */
export function sharedRedisUrl(): string {
  return handed(REDIS);
}

function handed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set: run the tests by Jest with the global setup`);
  return value;
}
