/**
 * Which MQTT sessions we had (design section 9): a broker that no longer knows one may have lost messages with it.
 */
import type { PrismaClient } from '../generated/prisma/client';

export type SessionState = 'first' | 'resumed' | 'lost';

/**
 * Notes a CONNACK. A session that we had and the broker does not is an administrative event, in the same transaction.
 *
 * @param name client id and broker
 */
export async function noteSession(
  prisma: PrismaClient,
  feedId: number,
  name: string,
  sessionPresent: boolean,
): Promise<SessionState> {
  return prisma.$transaction(async (tx) => {
    const rows = await tx.$queryRaw<{ existed: boolean }[]>`
      INSERT INTO mqtt_session AS s (name, established_at) VALUES (${name}, clock_timestamp())
      ON CONFLICT (name) DO UPDATE
        SET established_at = CASE WHEN ${sessionPresent} THEN s.established_at ELSE clock_timestamp() END
      RETURNING (xmax <> 0) AS existed`;
    if (sessionPresent) return 'resumed';
    if (rows[0]?.existed !== true) return 'first';
    const detail = JSON.stringify({ session: name });
    await tx.$queryRaw`SELECT append_admin_event('SESSION_LOST', ${feedId}, 'replay-ledger', ${detail})`;
    return 'lost';
  });
}
