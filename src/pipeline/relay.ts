/**
 * Sends the outbox of one feed (design section 7, forwarding): in order of position, marked sent after the PUBACK, as a
 * contiguous prefix. Delivery downstream is at least once: what was published and not marked is published again.
 *
 * States: running (drains what is unsent, then sleeps until woken or the poll is due) → stopped.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Outbox, OutboxRow } from '../ledger/port';
import type { Publisher } from '../mqtt/port';
import type { Logger } from '../ops/port';

export interface RelayOptions {
  readonly feed: string;
  readonly feedId: number;
  readonly outbox: Outbox;
  readonly publisher: Publisher;
  readonly log: Logger;
  readonly chunk?: number;
  readonly pollMs?: number;
}

export class Relay {
  private readonly stopped = new AbortController();
  private running: Promise<void> | null = null;
  private nap: AbortController | null = null;
  private woken = false;

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
      const more = await this.drainOnce().catch((error: unknown) => {
        const { feed, log } = this.options;
        if (!this.stopped.signal.aborted) log.warn({ feed, err: error }, 'forwarding is tried again');
        return false;
      });
      if (!more && !this.woken) await this.rest();
    }
  }

  /** Answers whether there may be more at once. */
  private async drainOnce(): Promise<boolean> {
    const { outbox, feedId, chunk = 100 } = this.options;
    const rows = await outbox.unsent(feedId, chunk);
    if (rows.length === 0) return false;
    // All at once on one connection keeps their order; the PUBACKs are awaited in that order.
    const sends = rows.map((row) => this.publish(row));
    const last = await lastOfPrefix(rows, sends);
    if (last !== null) await outbox.markSent(feedId, last);
    await Promise.all(sends);
    return true;
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

  private async rest(): Promise<void> {
    this.nap = new AbortController();
    const signal = AbortSignal.any([this.nap.signal, this.stopped.signal]);
    // An abort is the wake-up, not an error.
    await sleep(this.options.pollMs ?? 1000, undefined, { signal }).catch(() => undefined);
    this.nap = null;
  }
}

/** Position of the last row of the leading rows that were all acknowledged, or null. */
async function lastOfPrefix(rows: readonly OutboxRow[], sends: readonly Promise<void>[]): Promise<number | null> {
  const results = await Promise.allSettled(sends);
  let last: number | null = null;
  for (const [index, result] of results.entries()) {
    if (result.status === 'rejected') break;
    last = rows[index]?.position ?? last;
  }
  return last;
}
