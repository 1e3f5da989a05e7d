/**
 * Which MQTT sessions we had (design section 9): a broker that no longer knows one may have lost messages with it.
 */
import type { PrismaClient } from '../generated/prisma/client';

export type SessionState = 'first' | 'resumed' | 'lost';

/** What was noted of a session before its CONNACK; taken before the first try, so that a try can tell its own traces. */
export interface SessionBefore {
  /** When it was last known to be new, microseconds since 1970, by the database; null: there was none. */
  readonly establishedAt: string | null;
}

/** @param name client id: one session of one broker */
export async function readSession(prisma: PrismaClient, name: string): Promise<SessionBefore> {
  const rows = await prisma.$queryRaw<{ at: string }[]>`
    SELECT to_micros(established_at)::text AS at FROM mqtt_session WHERE name = ${name}`;
  return { establishedAt: rows[0]?.at ?? null };
}

/**
 * Notes a CONNACK. A session that we had and the broker does not is an administrative event, in the same transaction.
 * May be repeated with the same `before` until it succeeds: a try whose answer was lost is not noted twice. Without
 * `before`, what is noted now.
 */
export async function noteSession(
  prisma: PrismaClient,
  feedId: number,
  name: string,
  sessionPresent: boolean,
  before?: SessionBefore,
): Promise<SessionState> {
  const { establishedAt } = before ?? (await readSession(prisma, name));
  if (sessionPresent || establishedAt === null) {
    await prisma.$executeRaw`
      INSERT INTO mqtt_session (name, established_at) VALUES (${name}, clock_timestamp()) ON CONFLICT (name) DO NOTHING`;
    return sessionPresent ? 'resumed' : 'first';
  }
  await prisma.$transaction(async (tx) => {
    const noted = await tx.$executeRaw`
      UPDATE mqtt_session SET established_at = clock_timestamp()
      WHERE name = ${name} AND to_micros(established_at) = ${establishedAt}::bigint`;
    if (noted === 0) return;
    const detail = JSON.stringify({ session: name });
    await tx.$queryRaw`SELECT append_admin_event('SESSION_LOST', ${feedId}, 'replay-ledger', ${detail})`;
  });
  return 'lost';
}
