/**
 * Leases: who consumes a feed (design section 9). They only avoid double work: two owners at once would still decide
 * everything correctly, because the ledger's head is locked a batch.
 *
 * Times are the database's, so clocks of instances do not matter.
 */
import type { PrismaClient } from '../generated/prisma/client';
import type { LeaseRow, Leases } from './port';

export function createLeases(prisma: PrismaClient, owner: string, ttlMs: number): Leases {
  return {
    async acquire(name) {
      const rows = await prisma.$queryRaw<unknown[]>`
        INSERT INTO lease AS l (name, owner, expires_at)
        VALUES (${name}, ${owner}, clock_timestamp() + ${ttlMs}::integer * interval '1 millisecond')
        ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
        WHERE l.owner = excluded.owner OR l.expires_at < clock_timestamp()
        RETURNING 1 AS held`;
      return rows.length > 0;
    },
    async renew(name) {
      const extended = await prisma.$executeRaw`
        UPDATE lease SET expires_at = clock_timestamp() + ${ttlMs}::integer * interval '1 millisecond'
        WHERE name = ${name} AND owner = ${owner}`;
      return extended > 0;
    },
    async release(name) {
      await prisma.$executeRaw`DELETE FROM lease WHERE name = ${name} AND owner = ${owner}`;
    },
    async held() {
      return prisma.$queryRaw<
        LeaseRow[]
      >`SELECT name, owner FROM lease WHERE expires_at >= clock_timestamp() ORDER BY name`;
    },
  };
}
