/**
 * Statements on ledger entries and their payloads, by name.
 *
 * Where a list has several places to start, each place is a LATERAL sub-select with its own ORDER BY and LIMIT: so the
 * planner reads a page from an index at each place, instead of collecting and sorting what may be a whole feed.
 */
import { Prisma } from '../../generated/prisma/client';
import type { EntryFilter } from '../model/filter';
import type { Viewer } from '../viewer';
import { agencyScope, hex, micros } from './parts';
import type { Sql } from './parts';

const { sql, join, empty } = Prisma;

/** Entries of one feed, from `from` (inclusive) to `to` (exclusive). */
export interface Span {
  readonly feedId: number;
  readonly from: bigint;
  readonly to: bigint;
}

export interface EntryQuery {
  readonly spans: readonly Span[];
  readonly filter: EntryFilter;
  readonly viewer: Viewer;
  /** `forward`: oldest first. */
  readonly direction: 'forward' | 'backward';
  readonly limit: number;
}

/** e: the entry. */
const ENTRY_COLUMNS = sql`
  e.feed_id AS "feedId", e.position::text AS position, e.term, e.item_index AS "itemIndex", e.outcome::text AS outcome,
  e.tier::text AS tier, e.reason, e.held, e.late, e.key_version AS "keyVersion", ${hex(sql`e.key`)} AS key,
  ${hex(sql`e.payload_digest`)} AS "payloadDigest", ${hex(sql`e.bytes_digest`)} AS "bytesDigest", e.agency,
  e.source_id AS "sourceId", e.epoch, e.sequence::text AS sequence, e.event_id AS "eventId",
  e.incident_id AS "incidentId", e.original::text AS "originalPosition", e.resolves::text AS "resolvesPosition",
  e.actor, e.note, e.policy_version AS "policyVersion", ${hex(sql`e.contract_digest`)} AS "contractDigest", e.broker,
  e.topic, e.qos::integer AS qos, e.dup, e.retained, ${micros(sql`e.recorded_at`)} AS "recordedAt",
  ${micros(sql`e.occurred_at`)} AS "occurredAt", ${hex(sql`e.leaf_hash`)} AS "leafHash"`;

function spansTable(spans: readonly Span[]): Sql {
  // Positions as text: an array parameter of bigint has no exact JavaScript form in every driver.
  return sql`unnest(${spans.map((s) => s.feedId)}::integer[], ${spans.map((s) => s.from.toString())}::text[]::bigint[],
                    ${spans.map((s) => s.to.toString())}::text[]::bigint[]) AS r(feed_id, lo, hi)`;
}

/** What every way of finding entries has in common. e: the entry. */
function conditions(filter: EntryFilter, viewer: Viewer): Sql {
  const all: Sql[] = [empty];
  const { incidentId, agency, sourceId, key, outcomes, tiers, held, late } = filter;
  if (incidentId !== null) all.push(sql`AND e.incident_id = ${incidentId}`);
  if (agency !== null) all.push(sql`AND e.agency = ${agency}`);
  if (sourceId !== null) all.push(sql`AND e.source_id = ${sourceId}`);
  if (key !== null) all.push(sql`AND e.key = decode(${key}, 'hex')`);
  if (outcomes !== null) all.push(sql`AND e.outcome = ANY(${[...outcomes]}::text[]::outcome[])`);
  if (tiers !== null) all.push(sql`AND e.tier = ANY(${[...tiers]}::text[]::tier[])`);
  // Written out, so that the partial index of held entries fits.
  if (held !== null) all.push(held ? sql`AND e.held` : sql`AND NOT e.held`);
  if (late !== null) all.push(late ? sql`AND e.late` : sql`AND NOT e.late`);
  all.push(agencyScope(viewer, sql`e.agency`));
  return join(all, ' ');
}

/**
 * A page of entries, over the index that the filter is most selective on:
 * key → its source; incident; source; held; outcomes other than APPLIED; else the positions themselves.
 */
export function entries(query: EntryQuery): Sql {
  const { filter, direction, limit } = query;
  const order = direction === 'forward' ? sql`ASC` : sql`DESC`;
  const [places, place] = startingPlaces(query);
  return sql`
    SELECT ${ENTRY_COLUMNS}
    FROM ${places}
    CROSS JOIN LATERAL (
      SELECT * FROM ledger_entry e
      WHERE e.feed_id = r.feed_id AND e.position >= r.lo AND e.position < r.hi ${place}
        ${conditions(filter, query.viewer)}
      ORDER BY e.position ${order} LIMIT ${limit}) e
    ORDER BY e.recorded_at ${order}, e.feed_id ${order}, e.position ${order}
    LIMIT ${limit}`;
}

function startingPlaces({ spans, filter }: EntryQuery): readonly [places: Sql, place: Sql] {
  const table = spansTable(spans);
  if (filter.key !== null) {
    return [sql`${table} CROSS JOIN LATERAL (${sourcesOfKey(filter.key)}) k`, OF_THE_KEYS_SOURCE];
  }
  const single = filter.incidentId !== null || (filter.agency !== null && filter.sourceId !== null);
  if (single || filter.held === true || filter.outcomes === null || filter.outcomes.includes('APPLIED')) {
    return [table, empty];
  }
  // One ordered walk an outcome: several outcomes at once are not in order of position in the index.
  return [
    sql`${table} CROSS JOIN unnest(${[...filter.outcomes]}::text[]::outcome[]) AS o(outcome)`,
    sql`AND e.outcome = o.outcome AND e.outcome <> 'APPLIED'`,
  ];
}

/** All entries of a key are of one source, and none of them is older than the key's first claim. */
const OF_THE_KEYS_SOURCE = sql`AND e.agency = k.agency AND e.source_id = k.source_id AND e.position >= k.first`;

/** The key versions are walked one by one: the index of claims begins with feed and key version. */
function sourcesOfKey(key: string): Sql {
  return sql`
    WITH RECURSIVE version(v) AS (
      SELECT min(s.key_version) FROM source_head s WHERE s.feed_id = r.feed_id
      UNION ALL
      SELECT (SELECT min(s.key_version) FROM source_head s WHERE s.feed_id = r.feed_id AND s.key_version > version.v)
      FROM version WHERE version.v IS NOT NULL
    )
    SELECT c.agency, c.source_id, min(c.position) AS first
    FROM version
    CROSS JOIN LATERAL (
      SELECT c.agency, c.source_id, c.position FROM ledger_entry c
      WHERE c.feed_id = r.feed_id AND c.key_version = version.v AND c.key = decode(${key}, 'hex')
        AND c.claim_digest IS NOT NULL) c
    GROUP BY c.agency, c.source_id`;
}

export interface EntryAddress {
  readonly feedId: number;
  readonly position: bigint;
}

function wanted(addresses: readonly EntryAddress[]): Sql {
  return sql`unnest(${addresses.map((a) => a.feedId)}::integer[],
                    ${addresses.map((a) => a.position.toString())}::text[]::bigint[]) AS w(feed_id, position)`;
}

/** Entries by position. LIMIT 1 keeps each look-up a probe of the primary key. */
export function entriesAt(viewer: Viewer, addresses: readonly EntryAddress[]): Sql {
  return sql`
    SELECT ${ENTRY_COLUMNS}
    FROM ${wanted(addresses)}
    CROSS JOIN LATERAL (
      SELECT * FROM ledger_entry e
      WHERE e.feed_id = w.feed_id AND e.position = w.position ${agencyScope(viewer, sql`e.agency`)} LIMIT 1) e`;
}

/** The entries that resolve these held ones. */
export function resolutionsOf(viewer: Viewer, addresses: readonly EntryAddress[]): Sql {
  return sql`
    SELECT ${ENTRY_COLUMNS}
    FROM ${wanted(addresses)}
    CROSS JOIN LATERAL (
      SELECT * FROM ledger_entry e
      WHERE e.feed_id = w.feed_id AND e.resolves = w.position ${agencyScope(viewer, sql`e.agency`)} LIMIT 1) e`;
}

export interface PayloadAddress {
  readonly feedId: number;
  readonly bytesDigest: string;
}

/** Stored payloads; `tooLarge` instead of the bytes of those that would take the answer over `maxBytes`. */
export function payloads(addresses: readonly PayloadAddress[], maxBytes: number): Sql {
  return sql`
    SELECT s."feedId", s."bytesDigest", s."sizeBytes", s."purgedAt", s.bytes IS NOT NULL AND s.total > ${maxBytes} AS "tooLarge",
           CASE WHEN s.total <= ${maxBytes} THEN s.bytes END AS bytes
    FROM (
      SELECT p.feed_id AS "feedId", ${hex(sql`p.bytes_digest`)} AS "bytesDigest", p.size_bytes AS "sizeBytes",
             ${micros(sql`p.purged_at`)} AS "purgedAt", p.bytes,
             sum(CASE WHEN p.bytes IS NULL THEN 0 ELSE p.size_bytes END)
               OVER (ORDER BY w.ordinal ROWS UNBOUNDED PRECEDING) AS total
      FROM unnest(${addresses.map((a) => a.feedId)}::integer[], ${addresses.map((a) => a.bytesDigest)}::text[])
        WITH ORDINALITY AS w(feed_id, digest, ordinal)
      CROSS JOIN LATERAL (
        SELECT * FROM payload p
        WHERE p.feed_id = w.feed_id AND p.bytes_digest = decode(w.digest, 'hex') LIMIT 1) p) s`;
}
