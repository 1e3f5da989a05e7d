/**
 * What is true of every ledger now, in numbers (design section 3, the two counts that balance). One statement, so that
 * all of it is of one moment.
 */
import type { PrismaClient } from '../generated/prisma/client';

export interface FeedFacts {
  readonly feed: string;
  /** Entries in the ledger. */
  readonly size: number;
  /** Held entries that are neither released nor dismissed. */
  readonly held: number;
  /** Outbox rows that no broker has acknowledged. */
  readonly unsent: number;
  readonly balanced: boolean;
}

/**
 * Reads an index of every entry, some tenths of a second a million: not for a hot path.
 *
 * Releases and dismissals are in the index of what was not applied; what is left of all entries are the applied ones.
 */
export function readFeedFacts(prisma: Pick<PrismaClient, '$queryRaw'>): Promise<FeedFacts[]> {
  return prisma.$queryRaw<FeedFacts[]>`
    SELECT f.name AS feed, h.size::float8 AS size, held.count::float8 AS held, unsent.count::float8 AS unsent,
      (batches.received = entries.count - other.released - other.dismissed
        AND applied.count = entries.count - other.count + other.released) AS balanced
    FROM feed f
    JOIN feed_head h ON h.feed_id = f.id
    CROSS JOIN LATERAL (SELECT coalesce(sum(received), 0) AS received FROM batch WHERE feed_id = f.id) batches
    CROSS JOIN LATERAL (SELECT count(*) AS count FROM ledger_entry WHERE feed_id = f.id) entries
    CROSS JOIN LATERAL (
      SELECT count(*) AS count, count(*) FILTER (WHERE outcome = 'RELEASED') AS released,
        count(*) FILTER (WHERE outcome = 'DISMISSED') AS dismissed
      FROM ledger_entry WHERE feed_id = f.id AND outcome <> 'APPLIED') other
    CROSS JOIN LATERAL (SELECT count(*) AS count FROM applied_key WHERE feed_id = f.id) applied
    CROSS JOIN LATERAL (
      SELECT count(*) AS count FROM ledger_entry e
      WHERE e.feed_id = f.id AND e.held AND NOT EXISTS (
        SELECT 1 FROM ledger_entry r WHERE r.feed_id = f.id AND r.resolves = e.position)) held
    CROSS JOIN LATERAL (SELECT count(*) AS count FROM outbox WHERE feed_id = f.id AND sent_at IS NULL) unsent
    ORDER BY f.name`;
}
