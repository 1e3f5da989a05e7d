/**
 * Walking the ledgers of one or all feeds (design section 8): within a feed by position, across feeds merged by
 * `recordedAt`, with cursors that hold a place per feed.
 */
import type { PrismaClient } from '../../generated/prisma/client';
import { ApiError } from '../errors';
import { decodeEntryCursor, encodeEntryCursor, refused, termChanged } from '../model/cursor';
import type { EntryCursor, FeedPlace } from '../model/cursor';
import { filterDigest } from '../model/filter';
import type { EntryFilter } from '../model/filter';
import { cutPage } from '../model/page';
import type { Page, PageRequest } from '../model/page';
import type { DecisionRecord, FeedRecord } from '../model/records';
import { entries } from '../statements/entries';
import type { Span } from '../statements/entries';
import { feedHeads } from '../statements/feeds';
import type { Viewer } from '../viewer';
import { bigintOrNull, decisionRecord, feedRecord } from './rows';
import type { EntryRow, HeadRow } from './rows';

/** A feed of a walk, with the positions that the filter's time span leaves. */
export interface FeedInScope {
  readonly feed: FeedRecord;
  readonly from: bigint;
  readonly to: bigint;
}

/**
 * The feeds that a filter is about and the viewer may see, as of now.
 * @throws ApiError NOT_FOUND when the filter names a feed and there is none
 */
export async function feedsInScope(prisma: PrismaClient, viewer: Viewer, filter: EntryFilter): Promise<FeedInScope[]> {
  const { feed: name, from, to } = filter;
  const which = { name: name ?? undefined, from: from ?? undefined, to: to ?? undefined };
  const rows = await prisma.$queryRaw<HeadRow[]>(feedHeads(viewer, which));
  if (name !== null && rows.length === 0) throw new ApiError('NOT_FOUND', `there is no feed ${name}`);
  return rows.map((row) => {
    const feed = feedRecord(row);
    // No batch at or after a time: everything lies before it.
    const firstAt = (time: bigint | null, text: string | null) =>
      time === null ? null : (bigintOrNull(text) ?? feed.size);
    return { feed, from: firstAt(from, row.fromPosition) ?? 0n, to: firstAt(to, row.toPosition) ?? feed.size };
  });
}

/** @throws ApiError BAD_USER_INPUT, NOT_FOUND, LEDGER_TERM_CHANGED */
export async function decisionPage(
  prisma: PrismaClient,
  viewer: Viewer,
  filter: EntryFilter,
  request: PageRequest,
): Promise<Page<DecisionRecord>> {
  const digest = filterDigest(filter);
  // Before any query: a bad cursor is refused the same way whether or not the feed exists.
  const after = request.after === null ? null : listCursor('after', request.after, digest);
  const before = request.before === null ? null : listCursor('before', request.before, digest);
  const scope = await feedsInScope(prisma, viewer, filter);
  const spans = scope.map(({ feed, from, to }): Span => {
    const low = after === null ? 0n : placeAfter(after, feed);
    const high = before === null ? feed.size : placeBefore(before, feed);
    return { feedId: feed.id, from: low > from ? low : from, to: high < to ? high : to };
  });
  const found = await readSpans(prisma, viewer, filter, scope, spans, request.direction, request.size + 1);
  const { rows, hasNextPage, hasPreviousPage } = cutPage(found, request);
  const cursors = cursorsOf(rows, {
    digest,
    allFeeds: filter.feed === null,
    scope,
    spans,
    direction: request.direction,
  });
  const edges = rows.map((node, index) => ({ node, cursor: cursors[index] ?? '' }));
  return { edges, hasNextPage, hasPreviousPage };
}

/** Entries of the spans in list order (`backward`: from the end), at most `limit`. */
export async function readSpans(
  prisma: PrismaClient,
  viewer: Viewer,
  filter: EntryFilter,
  scope: readonly FeedInScope[],
  spans: readonly Span[],
  direction: 'forward' | 'backward',
  limit: number,
): Promise<DecisionRecord[]> {
  const filled = spans.filter((span) => span.from < span.to);
  if (filled.length === 0) return [];
  const rows = await prisma.$queryRaw<EntryRow[]>(entries({ spans: filled, filter, viewer, direction, limit }));
  const feeds = new Map(scope.map(({ feed }) => [feed.id, feed]));
  return rows.map((row) => {
    const feed = feeds.get(row.feedId);
    if (feed === undefined) throw new Error(`an entry of feed ${row.feedId}, which was not asked for`);
    return decisionRecord(row, feed);
  });
}

interface CursorFrame {
  readonly digest: string;
  readonly allFeeds: boolean;
  readonly scope: readonly FeedInScope[];
  readonly spans: readonly Span[];
  readonly direction: 'forward' | 'backward';
}

/**
 * One cursor an entry. Forward, what comes before an entry in the other feeds is what was walked so far; backward, it
 * is what was not walked yet.
 */
export function cursorsOf(rows: readonly DecisionRecord[], frame: CursorFrame): string[] {
  const { digest, allFeeds, scope, spans, direction } = frame;
  const forward = direction === 'forward';
  const places = new Map<number, FeedPlace>(
    scope.map(({ feed }, index) => {
      const span = spans[index];
      const start = (forward ? span?.from : span?.to) ?? 0n;
      // A span of time may lie beyond the end of the ledger; a cursor must not.
      return [feed.id, { term: feed.term, position: start < feed.size ? start : feed.size }];
    }),
  );
  const cursors = new Array<string>(rows.length);
  for (let step = 0; step < rows.length; step++) {
    const index = forward ? step : rows.length - 1 - step;
    const row = rows[index];
    if (row === undefined) continue;
    const { id: feedId, term } = row.feed;
    places.set(feedId, { term, position: row.position });
    cursors[index] = encodeEntryCursor({ digest, allFeeds, feedId, places });
    if (forward) places.set(feedId, { term, position: row.position + 1n });
  }
  return cursors;
}

function listCursor(name: string, text: string, digest: string): EntryCursor {
  const cursor = decodeEntryCursor(name, text);
  if (cursor.digest !== digest) throw refused(name);
  return cursor;
}

/** First position after the cursor; 0 in a feed that is newer than the cursor. @throws ApiError LEDGER_TERM_CHANGED */
export function placeAfter(cursor: EntryCursor, feed: FeedRecord): bigint {
  const position = placeBefore(cursor, feed);
  return cursor.feedId === feed.id ? position + 1n : position;
}

function placeBefore(cursor: EntryCursor, feed: FeedRecord): bigint {
  const place = cursor.places.get(feed.id);
  if (place === undefined) return 0n;
  // Shorter than it was: the head went back, and no writer has opened the new term yet.
  const needed = cursor.feedId === feed.id ? place.position + 1n : place.position;
  if (place.term !== feed.term || feed.size < needed) throw termChanged(feed.name);
  return place.position;
}
