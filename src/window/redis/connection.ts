import type { Redis } from 'ioredis';
import { connectRedis, disconnectRedis } from './connect';
import { RedisError, toRedisError } from './error';
import type { Outage } from './outage';
import type { Script } from './script';

/** How long to stay on a server that takes no writes before looking again where the name leads. */
const READ_ONLY_RETRY_MS = 10_000;

export interface ConnectionOptions {
  readonly url: string;
  /** A command that takes longer counts as failed, and its connection as lost. */
  readonly commandTimeoutMs: number;
  readonly outage: Outage;
}

/**
 * One connection to Redis that never lets a caller wait for a server known to be away.
 *
 * | state      | entered                                              | `run`            | left                   |
 * | ---------- | ---------------------------------------------------- | ---------------- | ---------------------- |
 * | `starting` | at creation                                          | refused at once  | probe → up, loss → down|
 * | `up`       | a PING was answered, after every (re)connect         | sent             | loss → down            |
 * | `down`     | connect failed, connection closed or given up        | refused at once  | probe → up             |
 * | `closed`   | `close()`                                            | refused at once  | never                  |
 *
 * A connection whose answer is overdue is dropped and opened anew, because commands would queue up behind it; the PING
 * keeps a server that is frozen, still loading, or refuses us out of `up` although it accepts connections.
 */
export class RedisConnection {
  private state: 'starting' | 'up' | 'down' | 'closed' = 'starting';
  private readonly redis: Redis;
  private readonly waiting = new Set<() => void>();
  private triedOnReadOnlyMs = -Infinity;

  /** @throws RedisUrlError */
  constructor(private readonly options: ConnectionOptions) {
    const silenceMs = Math.max(2500, 4 * options.commandTimeoutMs);
    this.redis = connectRedis(options.url, { name: 'replay-ledger-window', silenceMs });
    this.redis.on('ready', () => void this.probe());
    this.redis.on('error', (error: Error) => this.lost(toRedisError(error)));
    this.redis.on('close', () => this.lost(new RedisError('unreachable', 'the connection to Redis ended')));
  }

  /** @throws RedisError, within the command timeout; at once while not `up`. */
  async run(script: Script, keys: readonly string[], args: ReadonlyArray<string | Buffer>): Promise<unknown> {
    return this.command(() => script.run(this.redis, keys, args));
  }

  /** An INFO or CONFIG GET; rejects as `run` does. */
  async ask(command: string, args: string[]): Promise<unknown> {
    return this.command(() => this.redis.call(command, args));
  }

  /** Whether it is up, by then at the latest. */
  async whenUp(timeoutMs: number): Promise<boolean> {
    if (this.state !== 'up' && this.state !== 'closed') {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          this.waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        this.waiting.add(done);
      });
    }
    return this.state === 'up';
  }

  /** A server that takes no writes may have been demoted: connect again, the name may lead to another by now. */
  reconnectOnReadOnly(): void {
    const nowMs = performance.now();
    if (this.state === 'up' && nowMs - this.triedOnReadOnlyMs > READ_ONLY_RETRY_MS) {
      this.triedOnReadOnlyMs = nowMs;
      this.state = 'down';
      this.redis.disconnect(true);
    }
  }

  async close(): Promise<void> {
    this.state = 'closed';
    this.wake();
    await disconnectRedis(this.redis);
  }

  private async command(send: () => Promise<unknown>): Promise<unknown> {
    if (this.state !== 'up') {
      throw new RedisError('unreachable', 'there is no connection to Redis');
    }
    try {
      return await withDeadline(send(), this.options.commandTimeoutMs);
    } catch (cause) {
      const error = toRedisError(cause);
      if (error.code === 'timeout') {
        this.drop(error);
      }
      throw error;
    }
  }

  private async probe(): Promise<void> {
    try {
      await withDeadline(this.redis.ping(), this.options.commandTimeoutMs);
    } catch (cause) {
      this.drop(toRedisError(cause));
      return;
    }
    // The answer may be read in the same turn in which the connection ended.
    if (this.state !== 'closed' && this.redis.status === 'ready') {
      this.state = 'up';
      this.options.outage.worked('connection');
      this.wake();
    }
  }

  private drop(error: RedisError): void {
    this.lost(error);
    if (this.state !== 'closed' && this.redis.status === 'ready') {
      this.redis.disconnect(true);
    }
  }

  private lost(error: RedisError): void {
    if (this.state !== 'closed') {
      this.state = 'down';
      this.options.outage.failed('connection', error);
    }
  }

  private wake(): void {
    for (const done of [...this.waiting]) {
      done();
    }
  }
}

/** @throws RedisError `timeout` */
function withDeadline<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const overdue = (): void => reject(new RedisError('timeout', `Redis did not answer within ${timeoutMs} ms`));
    // After a long turn of our own, due timers run before sockets are read: give an answer that is there one chance.
    const timer = setTimeout(() => setImmediate(overdue), timeoutMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
