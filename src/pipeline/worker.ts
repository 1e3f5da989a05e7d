/**
 * Lands the deliveries of one feed, batch after batch (design section 5).
 *
 * States: running (takes a batch, lands it, acknowledges it) → stopping (`stop`: lands the batch at hand and what
 * waits, takes nothing new) → stopped. `abandon` ends it between two tries: what is not acknowledged comes again.
 *
 * A failure of the database is retried for ever, unacknowledged, so the broker keeps the messages. A value that the
 * database refuses is isolated: the batch is repeated one message at a time, and that message is held.
 *
 * A batch is committed while the window is told of the one before, and that one is acknowledged.
 * While a batch is landed this process waits most of the time, so the next one is decoded then, in slices: whatever
 * comes from a store meanwhile, or is still to be sent there, waits for one slice at most. What a batch is decided from
 * is read later, under the lock, as ever.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../ops/port';
import { LedgerError } from '../ledger/port';
import type { ReceivedDelivery, Subscriber } from '../mqtt/port';
import type { WakeUps } from '../live/port';
import { Backoff } from './backoff';
import type { BackoffLimits } from './backoff';
import type { ActiveContract, ContractSource, FeedRuntime } from './feed';
import type { BatchLimits, Intake } from './intake';
import { chunkLength, deliveriesOf } from './chunk';
import { decodeAll } from './prepare';
import type { Received } from './prepare';
import { ContractChanged, processBatch, recordInWindow } from './process-batch';
import type { BatchPorts, Committed, Step } from './process-batch';

export interface WorkerPorts extends BatchPorts {
  readonly contracts: ContractSource;
  readonly wakeUps: WakeUps;
  readonly log: Logger;
  readonly onCommitted: (feed: string, committed: Committed) => void;
}

export interface WorkerOptions {
  readonly batch: BatchLimits;
  readonly retry: BackoffLimits;
}

/** Deliveries with their messages as one contract reads them. */
interface DecodedBatch {
  readonly deliveries: readonly ReceivedDelivery[];
  readonly contract: ActiveContract;
  readonly received: readonly Received[];
}

/** Deliveries that are decoded without a break: about a millisecond, of ordinary ones. */
const SLICE = 50;

export class FeedWorker {
  private readonly abandoned = new AbortController();
  private readonly batchPorts: BatchPorts;
  private running: Promise<void> | null = null;
  /** What comes after the batch at hand: being waited for, or decoded ahead. While it is set nobody else takes any. */
  private next: Promise<DecodedBatch | null> | null = null;
  /** The window being told of what is committed. */
  private recording: Promise<void> = Promise.resolve();
  /** Steps 8 to 10 of the batch before. */
  private finishing: Promise<void> = Promise.resolve();

  constructor(
    private readonly ports: WorkerPorts,
    private readonly feed: FeedRuntime,
    private readonly intake: Intake,
    private readonly subscriber: Pick<Subscriber, 'acknowledge'>,
    private readonly options: WorkerOptions,
  ) {
    const { ledger, window } = ports;
    this.batchPorts = { ledger, window, onStep: (step, feedName) => this.onStep(step, feedName) };
  }

  start(): void {
    this.running ??= this.run().finally(() => this.finishing);
  }

  /** Resolves when everything taken has been landed and acknowledged. */
  async stop(): Promise<void> {
    this.intake.close(false);
    await this.running;
  }

  /** Gives up what is not committed yet. */
  abandon(): void {
    this.intake.close(true);
    this.next = null;
    this.abandoned.abort();
  }

  private async run(): Promise<void> {
    for (;;) {
      this.next ??= this.takeBatch();
      const batch = await this.next;
      this.next = null;
      if (batch === null || this.abandoned.signal.aborted) return;
      try {
        await this.land(batch);
      } catch (error) {
        if (this.abandoned.signal.aborted) return;
        throw error;
      }
    }
  }

  private async takeBatch(): Promise<DecodedBatch | null> {
    const deliveries = await this.intake.take(this.options.batch);
    return deliveries === null ? null : this.decode(deliveries);
  }

  private async decode(deliveries: readonly ReceivedDelivery[]): Promise<DecodedBatch> {
    const contract = this.feed.active;
    const slices: Received[][] = [];
    for (let from = 0; from < deliveries.length; from += SLICE) {
      await nextTurn();
      slices.push(decodeAll(contract, deliveries.slice(from, from + SLICE)));
    }
    return { deliveries, contract, received: slices.flat() };
  }

  /** At any step, for the queue may have filled up since the last one. */
  private onStep(step: Step, feed: string): void {
    this.ports.onStep(step, feed);
    if (this.next !== null || this.abandoned.signal.aborted) return;
    const deliveries = this.intake.takeFull(this.options.batch);
    if (deliveries !== null) this.next = this.decode(deliveries);
  }

  /** Resolves when the batch is committed, and the one before is done with: the next one may begin. */
  private async land(batch: DecodedBatch): Promise<void> {
    const size = await this.commitAll(batch);
    await this.finishing;
    this.finishing = this.finish(batch, size);
    // Nothing more is taken, so that it is met where this is awaited: at the next batch, or at the end of `run`.
    this.finishing.catch(() => this.intake.close(true));
  }

  private async finish({ deliveries }: DecodedBatch, size: number): Promise<void> {
    await this.recording;
    // 9. Acknowledge every delivery, in receive order. Never earlier.
    this.subscriber.acknowledge(deliveries);
    this.ports.onStep('acknowledged', this.feed.name);
    // 10. Wake the subscribers.
    this.ports.wakeUps.notify(this.feed.name, size);
    this.ports.onStep('woken', this.feed.name);
  }

  /**
   * Answers the size of the ledger once every message of the deliveries has its entry. Messages are independent, so
   * they may be committed in several transactions; the deliveries are acknowledged after the last one.
   */
  private async commitAll({ deliveries, contract, received }: DecodedBatch): Promise<number> {
    let rest = contract === this.feed.active ? received : decodeAll(this.feed.active, deliveries);
    let alone = 0; // of the next messages, how many go one by one
    let most = Infinity; // in one transaction
    let size = 0;
    while (rest.length > 0) {
      const chunk = rest.slice(0, alone > 0 ? 1 : Math.min(most, chunkLength(rest)));
      try {
        size = await (alone > 0 ? this.commitOne(chunk[0] as Received) : this.tryUntilDecided(chunk));
        rest = rest.slice(chunk.length);
        alone = Math.max(0, alone - 1);
      } catch (error) {
        if (error instanceof ContractChanged) {
          this.feed.active = await this.loadContract(error.digest);
          rest = decodeAll(this.feed.active, deliveriesOf(rest));
        } else if (isDataError(error)) {
          this.ports.log.warn({ feed: this.feed.name, sqlState: error.sqlState }, 'a value was refused; isolating it');
          alone = chunk.length;
        } else if (isTimeout(error)) {
          most = Math.ceil(chunk.length / 2);
          this.ports.log.warn({ feed: this.feed.name, most }, 'a batch took too long; it is tried in halves');
        } else throw error;
      }
    }
    return size;
  }

  /** A message alone: what the database refuses of it is given up step by step, and it is held. */
  private async commitOne(one: Received): Promise<number> {
    let attempt = one;
    for (const reduce of [withoutEffects, withoutIncident]) {
      try {
        return await this.tryUntilDecided([attempt]);
      } catch (error) {
        if (!isDataError(error)) throw error;
        attempt = reduce(attempt, error);
      }
    }
    return this.tryUntilDecided([attempt], { evenRefused: true });
  }

  /**
   * Tries until the database takes the batch.
   * @throws LedgerError with code DATA, unless `evenRefused`; with code TIMEOUT where a smaller batch is possible
   * @throws ContractChanged
   */
  private async tryUntilDecided(
    received: readonly Received[],
    { evenRefused = false }: { evenRefused?: boolean } = {},
  ): Promise<number> {
    const committed = await this.retrying(
      () => processBatch(this.batchPorts, this.feed, received, (feedId, id) => this.settle(feedId, id)),
      (error) =>
        !(error instanceof ContractChanged) &&
        (evenRefused || !isDataError(error)) &&
        !(isTimeout(error) && received.length > 1),
    );
    this.recording = this.recordAfter(this.recording, committed);
    try {
      this.ports.onCommitted(this.feed.name, committed);
    } catch (error) {
      // What is committed must not be tried again because somebody who was told of it failed.
      this.ports.log.error({ feed: this.feed.name, err: error }, 'a committed batch could not be observed');
    }
    return committed.memory.size;
  }

  /** At once, and done with when the one before is. */
  private async recordAfter(before: Promise<void>, committed: Committed): Promise<void> {
    await Promise.all([before, recordInWindow(this.batchPorts, this.feed.name, committed)]);
  }

  private settle(feedId: number, batchId: string): Promise<boolean> {
    return this.retrying(
      () => this.ports.ledger.committed(feedId, batchId),
      () => true,
    );
  }

  private loadContract(digest: string) {
    return this.retrying(
      () => this.ports.contracts.load(this.feed.feedId, digest),
      () => true,
    );
  }

  private async retrying<T>(work: () => Promise<T>, mayRetry: (error: unknown) => boolean): Promise<T> {
    const backoff = new Backoff(this.options.retry);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!mayRetry(error)) throw error;
        this.ports.log.warn({ feed: this.feed.name, err: error }, 'the batch is tried again');
        await backoff.wait(this.abandoned.signal);
      }
    }
  }
}

function isDataError(error: unknown): error is LedgerError {
  return error instanceof LedgerError && error.code === 'DATA';
}

function isTimeout(error: unknown): boolean {
  return error instanceof LedgerError && error.code === 'TIMEOUT';
}

function withoutEffects(one: Received, error: LedgerError): Received {
  if (one.message.kind !== 'keyed') return one;
  const detail = `the database refused its effects (SQLSTATE ${error.sqlState ?? 'unknown'})`;
  return { ...one, message: { ...one.message, plan: { ok: false, reason: 'refused_by_database', detail } } };
}

function withoutIncident(one: Received): Received {
  return one.message.kind === 'keyed' ? { ...one, message: { ...one.message, incidentId: null } } : one;
}
