/**
 * The decisions of a subscription, read from the ledger by position. Nothing is remembered but the next position of
 * each feed.
 */
import type { ApiServices } from '../context';
import { refused, termChanged } from '../model/cursor';
import type { EntryCursor } from '../model/cursor';
import { filterDigest } from '../model/filter';
import type { EntryFilter } from '../model/filter';
import type { DecisionRecord, FeedRecord } from '../model/records';
import { cursorsOf, feedsInScope, placeAfter, readSpans } from '../read/walk';
import type { FeedInScope } from '../read/walk';
import type { Viewer } from '../viewer';
import type { HeadNews } from './heads';
import { PullStream } from './pull-stream';
import type { StreamFailure } from './pull-stream';

export interface DeliveredDecision {
  readonly position: bigint;
  readonly cursor: string;
  readonly decision: DecisionRecord;
}

export type StreamEvent = DeliveredDecision | StreamFailure;

/** Entries read at a time: bounds what is held for one subscription. */
const PAGE_SIZE = 100;
/** Positions that one statement may pass over without a hit: bounds its time under a filter that fits little. */
const MAX_STRIDE = 20_000n;

interface Place {
  readonly term: number;
  /** Next position to read. */
  readonly next: bigint;
}

export class DecisionStream extends PullStream<DeliveredDecision> {
  private readonly digest: string;
  private readonly places = new Map<string, Place>();

  private constructor(
    services: ApiServices,
    private readonly viewer: Viewer,
    private readonly filter: EntryFilter,
  ) {
    super(services);
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

  protected wants({ feed, size, term }: HeadNews): boolean {
    if (this.filter.feed !== null && this.filter.feed !== feed) return false;
    const place = this.places.get(feed);
    if (place === undefined) return size > 0n;
    return size > place.next || (term !== null && (term !== place.term || size < place.next));
  }

  /** Fills the buffer. Answers whether the end of the ledgers was reached. */
  protected async read(): Promise<boolean> {
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
