/** Statements of policy previews and window advice, by name: what replays there were since a position. */
import { Prisma } from '../../generated/prisma/client';
import { hex, micros } from './parts';
import type { Sql } from './parts';

const { sql } = Prisma;

export interface Since {
  readonly feedId: number;
  /** Entries from here on. */
  readonly from: bigint;
}

export interface WindowSize {
  readonly windowSeconds: number;
  readonly maxEntries: number;
}

/** r: the replay, o: its original. By the index of outcomes, then by the primary key. */
const replays = ({ feedId, from }: Since): Sql => sql`
  FROM ledger_entry r
  CROSS JOIN LATERAL (
    SELECT n.position, n.recorded_at FROM ledger_entry n
    WHERE n.feed_id = r.feed_id AND n.position = r.original OFFSET 0) o
  WHERE r.feed_id = ${feedId} AND r.outcome = 'DUPLICATE_SUPPRESSED' AND r.position >= ${from}`;

/** As `tierOf` of dedup/decide.ts has it: seconds and entries, both inclusive. */
const within = ({ windowSeconds, maxEntries }: WindowSize): Sql => sql`
  (r.recorded_at - o.recorded_at <= make_interval(secs => ${windowSeconds}) AND r.position - o.position <= ${maxEntries})`;

/** How many replays two windows would have caught. */
export function replayCounts(since: Since, inForce: WindowSize, previewed: WindowSize): Sql {
  return sql`
    SELECT count(*)::text AS replays, count(*) FILTER (WHERE ${within(inForce)})::text AS "inForce",
           count(*) FILTER (WHERE ${within(previewed)})::text AS previewed
    ${replays(since)}`;
}

/** The latest replays that a window would have caught, or would not. */
export function replaySamples(since: Since, size: WindowSize, caught: boolean, limit: number): Sql {
  return sql`
    SELECT r.position::text AS position ${replays(since)} AND ${within(size)} = ${caught}
    ORDER BY r.position DESC LIMIT ${limit}`;
}

/** Keys that were decided first since a position. */
export function claimsSince({ feedId, from }: Since): Sql {
  return sql`
    SELECT count(*)::text AS claims FROM ledger_entry e
    WHERE e.feed_id = ${feedId} AND e.position >= ${from} AND e.claim_digest IS NOT NULL`;
}

/** Entries of lines 5 to 7 of design section 3, and releases, in order. */
export function decidedByPolicy({ feedId, from }: Since): Sql {
  return sql`
    SELECT e.position::integer AS position, ${micros(sql`e.recorded_at`)} AS "recordedAt", e.outcome::text AS outcome,
           e.reason, e.key_version AS "keyVersion", ${hex(sql`e.key`)} AS key, ${hex(sql`e.claim_digest`)} AS "claimDigest",
           e.agency, e.source_id AS "sourceId", e.epoch, e.sequence::text AS sequence
    FROM ledger_entry e
    WHERE e.feed_id = ${feedId} AND e.position >= ${from}
      AND e.outcome IN ('APPLIED', 'STALE_OUT_OF_ORDER', 'EFFECT_FAILED', 'RELEASED') AND e.key IS NOT NULL
    ORDER BY e.position`;
}

/**
 * Heads that the sources of these entries had before them: the mark is the highest that was applied, epochs are ranked by
 * their first applied message. The table of heads has them as they are now.
 */
export function headsBefore({ feedId, from }: Since): Sql {
  return sql`
    WITH s AS MATERIALIZED (
      SELECT DISTINCT e.key_version, e.agency, e.source_id FROM ledger_entry e
      WHERE e.feed_id = ${feedId} AND e.position >= ${from} AND e.sequence IS NOT NULL)
    SELECT s.key_version AS "keyVersion", s.agency, s.source_id AS "sourceId", h.epoch, h.mark::text AS mark,
           row_number() OVER (PARTITION BY s.key_version, s.agency, s.source_id ORDER BY h.first)::text AS rank
    FROM s CROSS JOIN LATERAL (
      SELECT coalesce(e.epoch, '') AS epoch, max(e.sequence) AS mark, min(e.position) AS first
      FROM ledger_entry e
      WHERE e.feed_id = ${feedId} AND e.agency = s.agency AND e.source_id = s.source_id AND e.position < ${from}
        AND e.key_version = s.key_version AND e.outcome IN ('APPLIED', 'RELEASED')
      GROUP BY 1) h`;
}

/** How late replays came, in seconds; nulls where there are none. */
export function replayLags(since: Since): Sql {
  const lag = sql`extract(epoch FROM r.recorded_at - o.recorded_at)::float8`;
  return sql`
    SELECT count(*)::text AS replays, percentile_disc(0.5) WITHIN GROUP (ORDER BY ${lag}) AS p50,
           percentile_disc(0.99) WITHIN GROUP (ORDER BY ${lag}) AS p99, max(${lag}) AS max
    ${replays(since)}`;
}

/** Replays that came in time, and found their original pushed out by the entries since. */
export function pushedOut(since: Since, { windowSeconds, maxEntries }: WindowSize): Sql {
  return sql`
    SELECT count(*)::text AS count ${replays(since)}
      AND r.recorded_at - o.recorded_at <= make_interval(secs => ${windowSeconds})
      AND r.position - o.position > ${maxEntries}`;
}

/** Entries since a position, and the most of them within any so many seconds: batches share their time. */
export function peakEntries({ feedId, from }: Since, seconds: number): Sql {
  return sql`
    SELECT coalesce(sum(s.entries), 0)::text AS entries, coalesce(max(s.within), 0)::text AS peak
    FROM (
      SELECT b.entries, sum(b.entries) OVER (
        ORDER BY b.recorded_at RANGE BETWEEN make_interval(secs => ${seconds}) PRECEDING AND CURRENT ROW) AS within
      FROM batch b
      WHERE b.feed_id = ${feedId} AND b.first_position >= ${from}
        AND b.recorded_at >= (SELECT e.recorded_at FROM ledger_entry e WHERE e.feed_id = ${feedId} AND e.position = ${from})
    ) s`;
}
