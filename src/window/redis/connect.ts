import { Redis } from 'ioredis';
import { parseRedisUrl } from './url';

/** Full jitter over an exponential back-off between these two. */
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 2000;

export interface ConnectOptions {
  /** Shown in CLIENT LIST; no spaces. */
  readonly name: string;
  /** A socket that owes an answer for this long is given up. Default 2500. */
  readonly silenceMs?: number;
}

/**
 * A client that starts connecting, and goes on until it is disconnected. Nothing waits in it: a command fails at once
 * while there is no connection, and is never sent twice. An 'error' listener is in place. Subscriptions are not
 * restored: the library would do it without catching a failure.
 *
 * The ready check of the library is off, because it prints warnings where INFO is forbidden. Attempts are counted here,
 * because the library starts from zero as soon as TCP connects, and would storm a server that accepts and then refuses.
 *
 * @throws RedisUrlError
 */
export function connectRedis(url: string, options: ConnectOptions): Redis {
  const { name, silenceMs = 2500 } = options;
  let attempts = 0;
  let connectedAtMs = Infinity;
  const redis = new Redis({
    ...parseRedisUrl(url),
    connectionName: name,
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: silenceMs,
    socketTimeout: silenceMs,
    disconnectTimeout: 100,
    retryStrategy: () => {
      attempts = performance.now() - connectedAtMs > RECONNECT_MAX_MS ? 0 : attempts + 1;
      connectedAtMs = Infinity;
      const ceilingMs = Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * 2 ** Math.min(attempts, 16));
      return RECONNECT_MIN_MS + Math.random() * (ceilingMs - RECONNECT_MIN_MS);
    },
  });
  redis.on('error', ignore);
  redis.on('ready', () => {
    connectedAtMs = performance.now();
  });
  return redis;
}

// Without a listener the library prints each error; those who want to know add their own.
function ignore(): void {}

/** Ends a connection, whatever its state, and resolves when its socket is closed. */
export async function disconnectRedis(redis: Redis): Promise<void> {
  if (redis.status === 'end') {
    return;
  }
  const hasSocket = ['connecting', 'connect', 'ready'].includes(redis.status);
  const ended = new Promise<void>((resolve) => {
    redis.once('end', resolve);
  });
  redis.disconnect();
  if (hasSocket) {
    await ended;
  }
}
