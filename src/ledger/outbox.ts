/**
 * The outbox (design section 7, forwarding): written in the transaction of the entry, sent afterwards in order.
 */
import type { PrismaClient } from '../generated/prisma/client';
import type { Outbox } from './port';

export function createOutbox(prisma: PrismaClient): Outbox {
  return {
    async unsent(feedId, limit) {
      const rows = await prisma.outbox.findMany({
        where: { feedId, sentAt: null },
        orderBy: { position: 'asc' },
        take: limit,
      });
      return rows.map((row) => ({
        position: Number(row.position),
        term: row.term,
        topic: row.topic,
        key: Buffer.from(row.key).toString('hex'),
        payload: row.payload,
      }));
    },
    async markSent(feedId, position) {
      await prisma.$executeRaw`
        UPDATE outbox SET sent_at = clock_timestamp()
        WHERE feed_id = ${feedId} AND position <= ${BigInt(position)} AND sent_at IS NULL`;
    },
  };
}
