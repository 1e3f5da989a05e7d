import { Listeners } from './listeners';
import type { WakeUps } from './port';

/** Wake-ups within one process. */
export function createLocalWakeUps(): WakeUps {
  const listeners = new Listeners();
  let isClosed = false;
  return {
    notify: (feed, size) => listeners.call(feed, size),
    subscribe: (listener) => (isClosed ? () => undefined : listeners.add(listener)),
    close() {
      isClosed = true;
      listeners.clear();
      return Promise.resolve();
    },
  };
}
