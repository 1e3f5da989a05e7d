/**
 * Keeps one connection up: asks for permission, connects, waits for the end, backs off, and again.
 *
 * States: idle → (asking → connecting or up → pausing)* → stopped. `stop` ends a pause at once, and keeps an answer that
 * is still awaited from becoming a connect; a connection that is up is the caller's to end. What the loop remembers is
 * the number of failures since the last stable connection, and whose turn it is among the URLs.
 */
import type { Connection } from './connection';
import { shortReason } from './errors';

export interface BackOff {
  readonly minMs: number;
  readonly maxMs: number;
}

export interface ConnectorOptions {
  /** At least one. */
  readonly urls: readonly string[];
  readonly backOff: BackOff;
  /** Asked before every connect. A rejection counts as no. */
  readonly mayConnect?: () => Promise<boolean>;
  /** May throw: that is a failed attempt. */
  readonly open: (url: string) => Connection;
  /** The end of every attempt that was permitted, and every question that failed. Must not throw. */
  readonly disconnected: (reason: string) => void;
}

/**
 * Full jitter: uniform between 0 and the exponential back-off, so that a thousand consumers that lost the same broker
 * do not come back in the same second (design section 9).
 *
 * @param failures attempts since the last stable connection, from 0
 * @returns milliseconds, 0 ≤ result < min(maxMs, minMs · 2^failures)
 */
export function reconnectDelayMs(failures: number, backOff: BackOff, random: () => number = Math.random): number {
  return random() * Math.min(backOff.maxMs, backOff.minMs * 2 ** failures);
}

export class Connector {
  /** The connection that is up or coming up. */
  current: Connection | null = null;
  private started = false;
  private stopped = false;
  private urlIndex = 0;
  private failures = 0;
  private endPause: (() => void) | null = null;

  constructor(private readonly options: ConnectorOptions) {
    if (options.urls.length === 0) throw new RangeError('at least one broker URL is needed');
  }

  /** Idempotent. */
  start(): void {
    if (this.started) return;
    this.started = true;
    void this.run();
  }

  /** No connect begins from now on; the current connection is left alone. */
  stop(): void {
    this.stopped = true;
    this.endPause?.();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      await this.attempt();
      if (this.stopped) return;
      await this.pause(reconnectDelayMs(this.failures, this.options.backOff));
      this.failures += 1;
    }
  }

  private async attempt(): Promise<void> {
    if (!(await this.permitted()) || this.stopped) return;
    let reason: string;
    try {
      // The index is kept below the length, which is not 0.
      this.current = this.options.open(this.options.urls[this.urlIndex]!);
      reason = await this.current.closed;
      this.settle(this.current);
    } catch (error) {
      reason = shortReason(error);
      this.nextUrl();
    }
    this.current = null;
    this.options.disconnected(reason);
  }

  /**
   * A broker that had accepted us is tried again first: it holds the session. Only a connection that lasted as long as
   * the longest back-off resets it: a broker that accepts and drops at once, or two owners of one client id that evict
   * each other in turn, must not become a tight loop.
   */
  private settle(connection: Connection): void {
    if (!connection.everAccepted) this.nextUrl();
    if (connection.acceptedForMs >= this.options.backOff.maxMs) this.failures = 0;
  }

  private nextUrl(): void {
    this.urlIndex = (this.urlIndex + 1) % this.options.urls.length;
  }

  private async permitted(): Promise<boolean> {
    if (!this.options.mayConnect) return true;
    try {
      return await this.options.mayConnect();
    } catch (error) {
      this.options.disconnected(`not permitted to connect: ${shortReason(error)}`);
      return false;
    }
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.endPause = null;
  }
}
