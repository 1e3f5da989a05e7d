/** Statements on the administrative ledger, by name. */
import { Prisma } from '../../generated/prisma/client';
import { micros } from './parts';
import type { Sql } from './parts';

const { sql, empty } = Prisma;

export interface AdminPage {
  readonly feedId: number | null;
  readonly kinds: readonly string[] | null;
  readonly actor: string | null;
  readonly direction: 'forward' | 'backward';
  /** Exclusive, both. */
  readonly after: bigint | null;
  readonly before: bigint | null;
  readonly limit: number;
}

/** Walks the positions: acts of people are few, so conditions need no index. */
export function adminEvents({ feedId, kinds, actor, direction, after, before, limit }: AdminPage): Sql {
  return sql`
    SELECT e.position::text AS position, e.kind, e.feed_id AS "feedId", e.actor, e.detail,
           ${micros(sql`e.recorded_at`)} AS "recordedAt"
    FROM admin_event e
    WHERE true
      ${feedId === null ? empty : sql`AND e.feed_id = ${feedId}`}
      ${kinds === null ? empty : sql`AND e.kind = ANY(${[...kinds]}::text[])`}
      ${actor === null ? empty : sql`AND e.actor = ${actor}`}
      ${after === null ? empty : sql`AND e.position > ${after}`}
      ${before === null ? empty : sql`AND e.position < ${before}`}
    ORDER BY e.position ${direction === 'forward' ? sql`ASC` : sql`DESC`} LIMIT ${limit}`;
}
