/**
 * Watches the heads of all ledgers for those who wait for more: one listener for wake-ups and one poll for the whole
 * service, however many subscriptions there are. Wake-ups save latency; what they miss, the poll finds.
 *
 * States: idle (nobody waits: no timer) → polling (somebody waits) → idle; closed for good by `close`.
 */
import type { PrismaClient } from '../../generated/prisma/client';
import type { WakeUps } from '../../live/port';
import type { ApiLog } from '../log';
import { headSizes } from '../statements/feeds';

/** What is new of a feed; term and policy version are null where a wake-up told it. */
export interface HeadNews {
  readonly feed: string;
  readonly size: bigint;
  readonly term: number | null;
  readonly policyVersion: number | null;
}

interface HeadRow {
  readonly feed: string;
  readonly term: number;
  readonly size: string;
  readonly policyVersion: number;
}

interface Waiter {
  readonly wants: (news: HeadNews) => boolean;
  readonly wake: () => void;
}

export interface HeadWait {
  readonly done: Promise<void>;
  /** Ends the wait at once. Calling it again, or afterwards, does nothing. */
  cancel(): void;
}

export class HeadWatcher {
  private readonly waiters = new Set<Waiter>();
  private readonly latest = new Map<string, { readonly news: HeadNews; readonly at: number }>();
  private readonly unsubscribe: () => void;
  private timer: NodeJS.Timeout | null = null;
  private looking = false;
  private newsCount = 0;
  private failing = false;
  private closed = false;

  constructor(
    private readonly prisma: PrismaClient,
    wakeUps: WakeUps,
    private readonly pollMs: number,
    private readonly log: ApiLog,
  ) {
    this.unsubscribe = wakeUps.subscribe((feed, size) =>
      this.tell({ feed, size: BigInt(size), term: null, policyVersion: null }),
    );
  }

  /** Take it before reading the ledger, and give it to `wait`: what came in between is not missed. */
  get moment(): number {
    return this.newsCount;
  }

  get waiting(): number {
    return this.waiters.size;
  }

  /** Until there is news, later than `since`, that the caller wants. */
  wait(since: number, wants: (news: HeadNews) => boolean): HeadWait {
    if (this.closed) return { done: Promise.resolve(), cancel: () => undefined };
    for (const { news, at } of this.latest.values()) {
      if (at > since && wants(news)) return { done: Promise.resolve(), cancel: () => undefined };
    }
    let cancel = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      const waiter: Waiter = { wants, wake: () => cancel() };
      cancel = () => {
        this.waiters.delete(waiter);
        if (this.waiters.size === 0) this.stopPolling();
        resolve();
      };
      this.waiters.add(waiter);
    });
    this.poll();
    return { done, cancel: () => cancel() };
  }

  /** Wakes everybody and forgets them. */
  close(): void {
    this.closed = true;
    this.unsubscribe();
    for (const waiter of [...this.waiters]) waiter.wake();
    this.stopPolling();
  }

  private tell(news: HeadNews): void {
    this.newsCount++;
    this.latest.set(news.feed, { news, at: this.newsCount });
    for (const waiter of [...this.waiters]) if (waiter.wants(news)) waiter.wake();
  }

  private poll(): void {
    if (this.timer !== null || this.looking || this.closed) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.looking = true;
      void this.look().finally(() => {
        this.looking = false;
        if (this.waiters.size > 0) this.poll();
      });
    }, this.pollMs);
  }

  private stopPolling(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private async look(): Promise<void> {
    try {
      const rows = await this.prisma.$queryRaw<HeadRow[]>(headSizes());
      this.failing = false;
      for (const { feed, term, size: text, policyVersion } of rows) {
        const size = BigInt(text);
        const known = this.latest.get(feed)?.news;
        const same = known?.term === term && known.size === size && known.policyVersion === policyVersion;
        if (!same) this.tell({ feed, term, size, policyVersion });
      }
    } catch (error) {
      // Once an outage: streams that read notice by themselves, those that wait go on waiting.
      if (!this.failing) this.log.warn({ err: error }, 'cannot read the heads of the ledgers; trying again');
      this.failing = true;
    }
  }
}
