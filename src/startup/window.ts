import type { Config } from '../config';
import type { Cleanup } from '../ops/cleanup';
import type { Logger } from '../ops/port';
import { createLocalWindow } from '../window/local';
import { createRedisWindow } from '../window/redis/window';
import type { Window } from '../window/window';

/** A Redis that is away or set up badly is a warning: the window is a hint. */
export async function openWindow(config: Config, log: Logger, cleanup: Cleanup): Promise<Window> {
  if (config.redisUrl === null) {
    const window = createLocalWindow();
    cleanup.add('window', () => window.close());
    return window;
  }
  const window = createRedisWindow({
    url: config.redisUrl,
    keyPrefix: config.redisPrefix,
    onProblem: (error) => log.warn({ err: error }, 'the window is not available; the ledger decides alone'),
    onRecovered: () => log.info({}, 'the window is available again'),
  });
  cleanup.add('window', () => window.close());
  const check = await window.checkRedis();
  for (const warning of check.warnings) log.warn({}, warning);
  return window;
}
