/** Statements on feeds, their heads, contracts, policies and sums, by name. */
import { Prisma } from '../../generated/prisma/client';
import type { Viewer } from '../viewer';
import { hex, micros } from './parts';
import type { Sql } from './parts';

const { sql, empty } = Prisma;

const FEED_COLUMNS = sql`
  f.id, f.name, ${micros(sql`f.created_at`)} AS "createdAt", ${micros(sql`f.retired_at`)} AS "retiredAt",
  h.term, h.size::text AS size, ${micros(sql`h.recorded_at`)} AS "recordedAt",
  h.contract_version AS "contractVersion", h.policy_version AS "policyVersion"`;

/**
 * A reader of some agencies sees the feeds that have an entry of one: a probe of the source index for each. The order
 * keeps the planner from scanning for "any row"; a scalar sub-select it does not turn into a join.
 */
function feedScope(viewer: Viewer): Sql {
  if (viewer.agencies === null) return empty;
  return sql`AND (
    SELECT true FROM unnest(${[...viewer.agencies]}::text[]) AS a(agency)
    CROSS JOIN LATERAL (
      SELECT 1 FROM ledger_entry s WHERE s.feed_id = f.id AND s.agency = a.agency
      ORDER BY s.source_id, s.position LIMIT 1) found
    LIMIT 1)`;
}

/**
 * Feeds with their heads, and the positions that a span of time begins and ends at. All entries of a batch share its
 * time, which never decreases within a feed, so the first batch at or after a time gives the first position.
 */
export function feedHeads(
  viewer: Viewer,
  which: { readonly name?: string; readonly ids?: readonly number[]; readonly from?: bigint; readonly to?: bigint },
): Sql {
  const firstAt = (at: bigint | undefined): Sql =>
    at === undefined
      ? sql`NULL::text`
      : sql`(SELECT b.first_position FROM batch b
             WHERE b.feed_id = f.id AND b.recorded_at >= from_micros(${at.toString()}::bigint)
             ORDER BY b.recorded_at, b.first_position LIMIT 1)::text`;
  return sql`
    SELECT ${FEED_COLUMNS}, ${firstAt(which.from)} AS "fromPosition", ${firstAt(which.to)} AS "toPosition"
    FROM feed f JOIN feed_head h ON h.feed_id = f.id
    WHERE true
      ${which.name === undefined ? empty : sql`AND f.name = ${which.name}`}
      ${which.ids === undefined ? empty : sql`AND f.id = ANY(${[...which.ids]}::integer[])`}
      ${feedScope(viewer)}
    ORDER BY f.name`;
}

/** Heads alone, for subscriptions. */
export function headSizes(): Sql {
  return sql`
    SELECT f.name AS feed, h.term, h.size::text AS size, h.policy_version AS "policyVersion"
    FROM feed_head h JOIN feed f ON f.id = h.feed_id`;
}

/** A version of one kind of history of a feed. */
export interface VersionAddress {
  readonly feedId: number;
  readonly version: number;
}

function versions(addresses: readonly VersionAddress[]): Sql {
  return sql`unnest(${addresses.map((a) => a.feedId)}::integer[],
                    ${addresses.map((a) => a.version)}::integer[]) AS w(feed_id, version)`;
}

const CONTRACT_COLUMNS = sql`
  c.feed_id AS "feedId", c.version, ${hex(sql`c.digest`)} AS digest, c.file, c.source_text AS text, c.commit,
  c.first_position::text AS "firstPosition", c.actor, ${micros(sql`c.recorded_at`)} AS "recordedAt"`;

export function contracts(addresses: readonly VersionAddress[]): Sql {
  return sql`
    SELECT ${CONTRACT_COLUMNS} FROM ${versions(addresses)}
    JOIN feed_contract c ON c.feed_id = w.feed_id AND c.version = w.version`;
}

export interface DigestAddress {
  readonly feedId: number;
  readonly digest: string;
}

export function contractsByDigest(addresses: readonly DigestAddress[]): Sql {
  return sql`
    SELECT ${CONTRACT_COLUMNS}
    FROM unnest(${addresses.map((a) => a.feedId)}::integer[], ${addresses.map((a) => a.digest)}::text[]) AS w(feed_id, digest)
    JOIN feed_contract c ON c.feed_id = w.feed_id AND c.digest = decode(w.digest, 'hex')`;
}

const POLICY_COLUMNS = sql`
  p.feed_id AS "feedId", p.version, p.first_position::text AS "firstPosition", p.window_seconds AS "windowSeconds",
  p.max_entries AS "maxEntries", p.ordering, p.contiguous, p.max_sequence_jump::text AS "maxSequenceJump",
  p.origin::text AS origin, ${hex(sql`p.contract_digest`)} AS "contractDigest", p.commit, p.actor, p.reason,
  ${micros(sql`p.recorded_at`)} AS "recordedAt"`;

export function policies(addresses: readonly VersionAddress[]): Sql {
  return sql`
    SELECT ${POLICY_COLUMNS} FROM ${versions(addresses)}
    JOIN policy_version p ON p.feed_id = w.feed_id AND p.version = w.version`;
}

/** Latest first. */
export function policyHistories(feedIds: readonly number[]): Sql {
  return sql`
    SELECT ${POLICY_COLUMNS} FROM policy_version p
    WHERE p.feed_id = ANY(${[...feedIds]}::integer[]) ORDER BY p.feed_id, p.version DESC`;
}

/** Versions of each feed that came after one, in order. */
export function policiesSince(places: readonly VersionAddress[], limit: number): Sql {
  return sql`
    SELECT ${POLICY_COLUMNS} FROM ${versions(places)}
    JOIN policy_version p ON p.feed_id = w.feed_id AND p.version > w.version
    ORDER BY p.recorded_at, p.feed_id, p.version LIMIT ${limit}`;
}

/**
 * The two counts of design section 3, each side counted by itself: nothing is derived from the head. Entries by their
 * primary key, those other than APPLIED by their own index, so the rows themselves are not read.
 */
export function balances(feedIds: readonly number[]): Sql {
  return sql`
    SELECT w.feed_id AS "feedId",
      (SELECT coalesce(sum(b.received), 0) FROM batch b WHERE b.feed_id = w.feed_id)::text AS received,
      (SELECT count(*) FROM ledger_entry e WHERE e.feed_id = w.feed_id)::text AS "allEntries",
      others.all::text AS "notApplied", others.released::text AS released, others.dismissed::text AS dismissed,
      (SELECT count(*) FROM applied_key k WHERE k.feed_id = w.feed_id)::text AS "appliedKeys"
    FROM unnest(${[...feedIds]}::integer[]) AS w(feed_id)
    CROSS JOIN LATERAL (
      SELECT count(*) AS all, count(*) FILTER (WHERE e.outcome = 'RELEASED') AS released,
             count(*) FILTER (WHERE e.outcome = 'DISMISSED') AS dismissed
      FROM ledger_entry e WHERE e.feed_id = w.feed_id AND e.outcome <> 'APPLIED') others`;
}

/**
 * First position within the policy's seconds, counted back from now; null where nothing is that recent. `now()` and not
 * `clock_timestamp()`, which may change within a statement and so cannot be looked up in an index.
 */
export function windowStarts(feedIds: readonly number[]): Sql {
  return sql`
    SELECT h.feed_id AS "feedId", h.size::text AS size,
      (SELECT b.first_position FROM batch b
       WHERE b.feed_id = h.feed_id AND b.recorded_at >= now() - make_interval(secs => p.window_seconds)
       ORDER BY b.recorded_at, b.first_position LIMIT 1)::text AS "firstPosition"
    FROM feed_head h JOIN policy_version p ON p.feed_id = h.feed_id AND p.version = h.policy_version
    WHERE h.feed_id = ANY(${[...feedIds]}::integer[])`;
}
