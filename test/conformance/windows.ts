import { randomUUID } from 'node:crypto';
import { createLocalWindow } from '../../src/window/local';
import { createRedisWindow } from '../../src/window/redis/window';
import type { Window } from '../../src/window/window';
import { sharedRedisUrl } from '../support/shared-servers';

/** Every implementation of the window port, each new and empty. */
export const windows: ReadonlyArray<readonly [string, () => Promise<Window>]> = [
  ['in this process', async () => createLocalWindow()],
  [
    'in Redis',
    async () => {
      const window = createRedisWindow({
        url: sharedRedisUrl(),
        keyPrefix: `test:${randomUUID()}`,
        // Long, because the suites ask whether the answers are right, on machines that may be busy.
        commandTimeoutMs: 5000,
        onProblem: (error) => {
          throw error;
        },
        onRecovered: () => undefined,
      });
      await window.checkRedis(20_000);
      return window;
    },
  ],
];
