/** The contracts that a feed was decided under (design section 7). Reads only. */
import type { PrismaClient } from '../generated/prisma/client';
import type { StoredContract } from './feeds';

/**
 * Contracts under which entries were decided, in the order in which they first came into force. One that was replaced
 * before anything came is left out: its identity may have been a mistake, and nothing stands under its keys.
 *
 * A contract decided something if it decided the entry at its first position; one that was restored later has been
 * activated more than once, and counts as well.
 */
export async function contractsThatDecided(prisma: PrismaClient, feedId: number): Promise<StoredContract[]> {
  return prisma.$queryRaw<StoredContract[]>`
    SELECT f.id AS "feedId", f.name AS feed, encode(c.digest, 'hex') AS digest, c.file, c.source_text AS "sourceText"
    FROM feed_contract c JOIN feed f ON f.id = c.feed_id
    WHERE c.feed_id = ${feedId} AND (
      EXISTS (SELECT 1 FROM ledger_entry e
              WHERE e.feed_id = c.feed_id AND e.position = c.first_position AND e.contract_digest = c.digest)
      OR (SELECT count(*) FROM admin_event a
          WHERE a.feed_id = c.feed_id AND a.kind = 'CONTRACT_ACTIVATED'
            AND position(encode(c.digest, 'hex') IN a.detail) > 0) > 1)
    ORDER BY c.version`;
}

/** Every contract that a feed ever had, also those that decided nothing, in the order in which they first came. */
export async function contractsOf(prisma: PrismaClient, feedId: number): Promise<StoredContract[]> {
  return prisma.$queryRaw<StoredContract[]>`
    SELECT f.id AS "feedId", f.name AS feed, encode(c.digest, 'hex') AS digest, c.file, c.source_text AS "sourceText"
    FROM feed_contract c JOIN feed f ON f.id = c.feed_id
    WHERE c.feed_id = ${feedId}
    ORDER BY c.version`;
}
