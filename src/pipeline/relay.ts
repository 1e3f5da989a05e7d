/**
 * Sends the outbox of one feed (design section 7, forwarding): in order of position, marked sent after the PUBACK, as a
 * contiguous prefix. Delivery downstream is at least once: what was published and not marked is published again.
 *
 * States: running (drains what is unsent, then sleeps until woken or the poll is due) ⇄ careful (something failed: waits
 * by a back-off that no wake-up shortens, then sends the first unsent row alone; left when that row is sent) → stopped.
 *
 * A chunk is sent without waiting for each PUBACK. So rows that were on their way beside a refused one may reach the
 * consumer before it, and come again after it; from the refusal on nothing later is sent until that row is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outbox, OutboxRow } from '../ledger/port';
import type { Publisher } from '../mqtt/port';
import type { Logger } from '../ops/port';
import { Backoff } from './backoff';
import type { BackoffLimits } from './backoff';

export interface RelayOptions {
  readonly feed: string;
  readonly feedId: number;
  readonly outbox: Outbox;
  readonly publisher: Publisher;
  readonly log: Logger;
  /** Rows sent without waiting for the PUBACK of the first; default 100. */
  readonly chunk?: number;
  /** Default 1000. */
  readonly pollMs?: number;
  /** Between tries after a failure; default 250 ms to 30 s. */
  readonly retry?: BackoffLimits;
}

const RETRY: BackoffLimits = { minMs: 250, maxMs: 30_000 };

export class Relay {
  private readonly stopped = new AbortController();
  private running: Promise<void> | null = null;
  private nap: AbortController | null = null;
  private woken = false;
  /** There while something failed and no row was sent since. */
  private backoff: Backoff | null = null;

  constructor(private readonly options: RelayOptions) {}

  start(): void {
    this.running ??= this.run();
  }

  /** Something may be unsent. */
  wake(): void {
    this.woken = true;
    this.nap?.abort();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      this.woken = false;
      try {
        const more = await this.drainOnce();
        this.backoff = null;
        if (!more && !this.woken) await this.rest();
      } catch (error) {
        await this.backOff(error);
      }
    }
  }

  /**
   * Answers whether there may be more at once. Rejects with the first failure, after the rows before it are marked.
   */
  private async drainOnce(): Promise<boolean> {
    const { outbox, feedId, chunk = 100 } = this.options;
    const rows = await outbox.unsent(feedId, this.backoff === null ? chunk : 1);
    // All at once on one connection keeps their order; what becomes of them is looked at in that order.
    const results = await Promise.allSettled(rows.map((row) => this.publish(row)));
    const failed = results.findIndex(({ status }) => status === 'rejected');
    const last = rows[(failed === -1 ? rows.length : failed) - 1];
    if (last !== undefined) await outbox.markSent(feedId, last.position);
    const failure = results[failed];
    if (failure?.status === 'rejected') throw failure.reason;
    return rows.length > 0;
  }

  private publish(row: OutboxRow): Promise<void> {
    return this.options.publisher.publish({
      topic: row.topic,
      payload: row.payload,
      properties: {
        'idempotency-key': row.key,
        feed: this.options.feed,
        'ledger-term': String(row.term),
        'ledger-position': String(row.position),
      },
    });
  }

  private async backOff(error: unknown): Promise<void> {
    const { feed, log, retry = RETRY } = this.options;
    if (this.stopped.signal.aborted) return;
    log.warn({ feed, err: error }, 'forwarding is tried again');
    this.backoff ??= new Backoff(retry);
    // An abort is the stop, not an error.
    await this.backoff.wait(this.stopped.signal).catch(() => undefined);
  }

  private async rest(): Promise<void> {
    this.nap = new AbortController();
    const signal = AbortSignal.any([this.nap.signal, this.stopped.signal]);
    // An abort is the wake-up, not an error.
    await sleep(this.options.pollMs ?? 1000, undefined, { signal }).catch(() => undefined);
    this.nap = null;
  }
}
