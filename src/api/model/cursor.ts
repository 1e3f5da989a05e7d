/**
 * Cursors: opaque to clients, base64url of JSON. A cursor stands at one entry and holds, for every feed of its list,
 * how many entries of that feed come before it in the walk; so a walk goes on at the right place in each feed, whatever
 * was committed since, and never passes over an entry that committed later.
 *
 * A cursor is refused where it does not belong: made by another list, under another filter, in another term. Only
 * canonical text is accepted, so that no two texts are the same cursor.
 */
import { createHash } from 'node:crypto';
import { ApiError, badInput } from '../errors';

export interface FeedPlace {
  readonly term: number;
  /** Entries of the feed that come before the cursor. For the feed of its own entry: the entry's position. */
  readonly position: bigint;
}

export interface EntryCursor {
  /** Of the filter. */
  readonly digest: string;
  /** Whether the list is over all feeds; a feed that the cursor does not name is newer than it. */
  readonly allFeeds: boolean;
  /** Feed of the entry that the cursor stands at. */
  readonly feedId: number;
  readonly places: ReadonlyMap<number, FeedPlace>;
}

export interface SourceCursor {
  readonly feedId: number;
  readonly agency: string;
  readonly sourceId: string;
}

const MAX_CURSOR_LENGTH = 64 * 1024;
const ENTRIES = 'e1';
const SOURCES = 's1';
const ADMIN = 'a1';

type EntryTuple = readonly [
  kind: typeof ENTRIES,
  digest: string,
  all: 0 | 1,
  feed: number,
  places: readonly PlaceTuple[],
];
type PlaceTuple = readonly [feed: number, term: number, position: number];

export function encodeEntryCursor({ digest, allFeeds, feedId, places }: EntryCursor): string {
  const list = [...places].map(([feed, { term, position }]): PlaceTuple => [feed, term, Number(position)]);
  const tuple: EntryTuple = [ENTRIES, digest, allFeeds ? 1 : 0, feedId, list];
  return encode(tuple);
}

export function encodeSourceCursor({ feedId, agency, sourceId }: SourceCursor): string {
  return encode([SOURCES, feedId, agency, sourceId]);
}

/** @param filter of the list, as text */
export function encodeAdminCursor(position: bigint, filter: string): string {
  return encode([ADMIN, digestOf(filter), Number(position)]);
}

/** @param name of the argument, for the message. @throws ApiError BAD_USER_INPUT */
export function decodeEntryCursor(name: string, text: string): EntryCursor {
  const tuple = decode(name, text);
  if (!isEntryTuple(tuple)) throw refused(name);
  const [, digest, all, feedId, list] = tuple;
  const places = new Map(list.map(([feed, term, position]) => [feed, { term, position: BigInt(position) }]));
  if (places.size !== list.length || !places.has(feedId) || (all === 0 && places.size !== 1)) throw refused(name);
  return { digest, allFeeds: all === 1, feedId, places };
}

/** @throws ApiError BAD_USER_INPUT */
export function decodeSourceCursor(name: string, text: string, feedId: number): SourceCursor {
  const tuple = decode(name, text);
  const [kind, feed, agency, sourceId] = tuple;
  if (tuple.length !== 4 || kind !== SOURCES || typeof agency !== 'string' || typeof sourceId !== 'string') {
    throw refused(name);
  }
  if (feed !== feedId || agency.includes('\0') || sourceId.includes('\0')) throw refused(name);
  return { feedId, agency, sourceId };
}

/** @throws ApiError BAD_USER_INPUT */
export function decodeAdminCursor(name: string, text: string, filter: string): bigint {
  const [kind, digest, position, ...rest] = decode(name, text);
  if (kind !== ADMIN || digest !== digestOf(filter) || !isCount(position) || rest.length > 0) throw refused(name);
  return BigInt(position);
}

export function refused(name: string): ApiError {
  return badInput(`${name} is no cursor of this list`);
}

export function termChanged(feed: string): ApiError {
  return new ApiError(
    'LEDGER_TERM_CHANGED',
    `the ledger of feed ${feed} went back in time since this cursor was made; begin again without it`,
    { feed },
  );
}

function encode(tuple: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(tuple)).toString('base64url');
}

function decode(name: string, text: string): readonly unknown[] {
  if (text.length > MAX_CURSOR_LENGTH) throw refused(name);
  let tuple: unknown;
  try {
    tuple = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    throw refused(name);
  }
  if (!Array.isArray(tuple) || encode(tuple) !== text) throw refused(name);
  return tuple;
}

function isEntryTuple(tuple: readonly unknown[]): tuple is EntryTuple {
  const [kind, digest, all, feed, places] = tuple;
  return (
    tuple.length === 5 &&
    kind === ENTRIES &&
    typeof digest === 'string' &&
    /^[0-9a-f]{16}$/.test(digest) &&
    (all === 0 || all === 1) &&
    isId(feed) &&
    Array.isArray(places) &&
    places.every(
      (place) => Array.isArray(place) && place.length === 3 && isId(place[0]) && isId(place[1]) && isCount(place[2]),
    )
  );
}

/** As Postgres has them: a positive 32-bit integer. */
function isId(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function digestOf(filter: string): string {
  return createHash('sha256').update(filter).digest('hex').slice(0, 16);
}
