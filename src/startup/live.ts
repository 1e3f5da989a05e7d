import type { Config } from '../config';
import { createLocalWakeUps } from '../live/local';
import type { WakeUps } from '../live/port';
import { createRedisWakeUps } from '../live/redis';
import type { Cleanup } from '../ops/cleanup';
import { connectRedis, disconnectRedis } from '../window/redis/connect';

export function openLive(config: Config, cleanup: Cleanup): WakeUps {
  const { redisUrl, redisPrefix } = config;
  const wakeUps =
    redisUrl === null
      ? createLocalWakeUps()
      : createRedisWakeUps({
          connect: (name) => connectRedis(redisUrl, { name }),
          disconnect: disconnectRedis,
          keyPrefix: redisPrefix,
        });
  cleanup.add('wake-ups', () => wakeUps.close());
  return wakeUps;
}
