/**
 * The decisions of a subscription, read from the ledger by position at the pace of the client: nothing is read before
 * the client took what was read before, and nothing is remembered but the next position of each feed.
 *
 * An iterator written by hand, not a generator: `return` of a generator waits for the `await` that it stands at, which
 * may be a wait for a message that never comes. Here `return` ends a pending `next` at once, at any moment.
 *
 * States: open → ended, by `return`, by an error (given as a last event) or by the end of the service.
 */
import type { ApiServices } from '../context';
import { ApiError } from '../errors';
import { refused, termChanged } from '../model/cursor';
import type { EntryCursor } from '../model/cursor';
import { filterDigest } from '../model/filter';
import type { EntryFilter } from '../model/filter';
import type { DecisionRecord, FeedRecord } from '../model/records';
import { cursorsOf, feedsInScope, placeAfter, readSpans } from '../read/walk';
import type { FeedInScope } from '../read/walk';
import type { Viewer } from '../viewer';
import type { HeadNews, HeadWait } from './heads';

/** `failure`: why the subscription ends; an error thrown by an iterator would end the socket instead. */
export type StreamEvent =
  | { readonly position: bigint; readonly cursor: string; readonly decision: DecisionRecord }
  | { readonly failure: unknown };

/** Entries read at a time: bounds what is held for one subscription. */
const PAGE_SIZE = 100;
/** Positions that one statement may pass over without a hit: bounds its time under a filter that fits little. */
const MAX_STRIDE = 20_000n;
const RETRY_PAUSE_MS = 500;

interface Place {
  readonly term: number;
  /** Next position to read. */
  readonly next: bigint;
}

type Result = IteratorResult<StreamEvent, undefined>;
const END: Result = { done: true, value: undefined };

export class DecisionStream implements AsyncGenerator<StreamEvent, undefined, undefined> {
  private readonly digest: string;
  private readonly places = new Map<string, Place>();
  private buffer: StreamEvent[] = [];
  private ended = false;
  private pending: ((result: Result) => void) | null = null;
  private wait: HeadWait | null = null;
  private failingSince: number | null = null;

  private constructor(
    private readonly services: ApiServices,
    private readonly viewer: Viewer,
    private readonly filter: EntryFilter,
  ) {
    this.digest = filterDigest(filter);
  }

  /**
   * Stands behind `after`, or at the present end of the ledgers.
   * @throws ApiError BAD_USER_INPUT, NOT_FOUND, LEDGER_TERM_CHANGED
   */
  static async open(
    services: ApiServices,
    viewer: Viewer,
    filter: EntryFilter,
    after: EntryCursor | null,
  ): Promise<DecisionStream> {
    const stream = new DecisionStream(services, viewer, filter);
    for (const { feed } of await feedsInScope(services.prisma, viewer, filter)) {
      // Positions mean the same under any filter, so a cursor only has to cover the feeds.
      if (after !== null && !after.allFeeds && after.feedId !== feed.id) throw refused('after');
      stream.places.set(feed.name, { term: feed.term, next: after === null ? feed.size : placeAfter(after, feed) });
    }
    return stream;
  }

  /** One at a time, as `for await` calls it. */
  next(): Promise<Result> {
    if (this.ended) return Promise.resolve(END);
    return new Promise((resolve) => {
      this.pending = resolve;
      void this.pull();
    });
  }

  return(): Promise<Result> {
    this.end();
    return Promise.resolve(END);
  }

  throw(): Promise<Result> {
    return this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  private end(): void {
    this.ended = true;
    this.buffer = [];
    this.wait?.cancel();
    this.settle(END);
  }

  private settle(result: Result): void {
    const { pending } = this;
    this.pending = null;
    pending?.(result);
  }

  /** Never rejects. Ends when the pending `next` is settled. */
  private async pull(): Promise<void> {
    while (!this.ended && this.buffer.length === 0) {
      const moment = this.services.heads.moment;
      try {
        const caughtUp = await this.services.streamReads.run(() => (this.ended ? Promise.resolve(true) : this.read()));
        this.failingSince = null;
        if (caughtUp && this.buffer.length === 0 && !this.ended) await this.pause(moment);
      } catch (error) {
        await this.recover(error);
      }
    }
    const event = this.buffer.shift();
    if (event === undefined) return;
    this.settle({ done: false, value: event });
    if ('failure' in event) this.end();
  }

  private async pause(moment: number): Promise<void> {
    this.wait = this.services.heads.wait(moment, (news) => this.wants(news));
    await this.wait.done;
    this.wait = null;
  }

  private wants({ feed, size, term }: HeadNews): boolean {
    if (this.filter.feed !== null && this.filter.feed !== feed) return false;
    const place = this.places.get(feed);
    if (place === undefined) return size > 0n;
    return size > place.next || (term !== null && (term !== place.term || size < place.next));
  }

  /** A database that is away for a moment is no reason to end; what the client did, or a new term, is. */
  private async recover(error: unknown): Promise<void> {
    this.failingSince ??= Date.now();
    if (error instanceof ApiError || Date.now() - this.failingSince >= this.services.limits.streamRetryMs) {
      this.buffer = [{ failure: error }];
      return;
    }
    let cancel = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, RETRY_PAUSE_MS);
      cancel = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wait = { done, cancel };
    await done;
    this.wait = null;
  }

  /** Fills the buffer. Answers whether the end of the ledgers was reached. */
  private async read(): Promise<boolean> {
    const { prisma } = this.services;
    const scope = await feedsInScope(prisma, this.viewer, this.filter);
    const spans = scope.map(({ feed }) => {
      const { next } = this.placeOf(feed);
      return { feedId: feed.id, from: next, to: feed.size - next > MAX_STRIDE ? next + MAX_STRIDE : feed.size };
    });
    const rows = await readSpans(prisma, this.viewer, this.filter, scope, spans, 'forward', PAGE_SIZE);
    if (this.ended) return true;
    const frame = {
      digest: this.digest,
      allFeeds: this.filter.feed === null,
      scope,
      spans,
      direction: 'forward',
    } as const;
    const cursors = cursorsOf(rows, frame);
    this.buffer = rows.map((decision, index) => ({
      decision,
      position: decision.position,
      cursor: cursors[index] ?? '',
    }));
    if (rows.length === PAGE_SIZE) {
      for (const { feed, position } of rows) this.places.set(feed.name, { term: feed.term, next: position + 1n });
      return false;
    }
    scope.forEach(({ feed }, index) => {
      this.places.set(feed.name, { term: feed.term, next: spans[index]?.to ?? feed.size });
    });
    return caughtUp(scope, spans);
  }

  private placeOf(feed: FeedRecord): Place {
    // A feed that came into being since: all of it is news.
    const place = this.places.get(feed.name) ?? { term: feed.term, next: 0n };
    if (place.term !== feed.term || feed.size < place.next) throw termChanged(feed.name);
    return place;
  }
}

function caughtUp(scope: readonly FeedInScope[], spans: readonly { readonly to: bigint }[]): boolean {
  return scope.every(({ feed }, index) => spans[index]?.to === feed.size);
}
