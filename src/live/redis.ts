import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { Listeners } from './listeners';
import type { WakeUpListener, WakeUps } from './port';

export interface RedisWakeUpsOptions {
  /**
   * `connectRedis`, for a name: a client that connects again by itself, has an 'error' listener, and refuses commands
   * at once while it has no connection. Called twice, because a connection that subscribes can do nothing else.
   */
  readonly connect: (name: string) => Redis;
  /** `disconnectRedis`. */
  readonly disconnect: (redis: Redis) => Promise<void>;
  /** The channel is `<keyPrefix>:heads`. */
  readonly keyPrefix: string;
}

/** How often a lost subscription is asked for again. */
const RESUBSCRIBE_MS = 1000;

/**
 * Wake-ups between processes, by Redis pub/sub. Listeners of this process are called directly, whatever Redis does; what
 * it sends back to us is recognised by its sender and dropped.
 */
export function createRedisWakeUps(options: RedisWakeUpsOptions): WakeUps {
  return new RedisWakeUps(options);
}

class RedisWakeUps implements WakeUps {
  private readonly self = randomUUID();
  private readonly channel: string;
  private readonly listeners = new Listeners();
  private readonly publisher: Redis;
  private readonly subscriber: Redis;
  /** Feeds with a publish on its way → the newest size that waits behind it, or null. */
  private readonly publishing = new Map<string, number | null>();
  private retry: NodeJS.Timeout | null = null;
  private isClosed = false;

  constructor(private readonly options: RedisWakeUpsOptions) {
    this.channel = `${options.keyPrefix}:heads`;
    this.publisher = options.connect('replay-ledger-publisher');
    this.subscriber = options.connect('replay-ledger-subscriber');
    this.subscriber.on('ready', () => this.listen());
    this.subscriber.on('message', (channel: string, text: string) => {
      if (channel === this.channel) {
        this.receive(text);
      }
    });
  }

  notify(feed: string, size: number): void {
    if (this.isClosed) {
      return;
    }
    this.listeners.call(feed, size);
    if (this.publishing.has(feed)) {
      // One on its way a feed: a server that is slow costs memory for the feeds, not for the batches.
      this.publishing.set(feed, size);
    } else {
      void this.publish(feed, size);
    }
  }

  subscribe(listener: WakeUpListener): () => void {
    return this.isClosed ? () => undefined : this.listeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.isClosed) {
      return;
    }
    this.isClosed = true;
    this.listeners.clear();
    if (this.retry !== null) {
      clearTimeout(this.retry);
    }
    await Promise.all([this.options.disconnect(this.publisher), this.options.disconnect(this.subscriber)]);
  }

  /** Publishes, and then what came meanwhile. Never rejects. */
  private async publish(feed: string, size: number): Promise<void> {
    let next: number | null = size;
    while (next !== null && this.publisher.status === 'ready') {
      this.publishing.set(feed, null);
      try {
        await this.publisher.publish(this.channel, JSON.stringify([this.self, feed, next]));
      } catch {
        // Lost: the others poll.
      }
      next = this.publishing.get(feed) ?? null;
    }
    this.publishing.delete(feed);
  }

  /** At every (re)connect, and until it succeeds: a subscription that the server refuses may be allowed later. */
  private listen(): void {
    this.subscriber.subscribe(this.channel).catch(() => {
      if (!this.isClosed && this.retry === null) {
        this.retry = setTimeout(() => {
          this.retry = null;
          if (this.subscriber.status === 'ready') {
            this.listen();
          }
        }, RESUBSCRIBE_MS);
      }
    });
  }

  /** The channel is open to others: what does not read as ours is ignored. */
  private receive(text: string): void {
    const [sender, feed, size] = parseArray(text);
    const isOurs = typeof feed === 'string' && typeof size === 'number' && Number.isSafeInteger(size) && size >= 0;
    if (isOurs && typeof sender === 'string' && sender !== this.self) {
      this.listeners.call(feed, size);
    }
  }
}

function parseArray(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
