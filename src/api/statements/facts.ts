/** Statements on incidents and sources, by name. */
import { Prisma } from '../../generated/prisma/client';
import type { Viewer } from '../viewer';
import { agencyScope } from './parts';
import type { Sql } from './parts';

const { sql, empty } = Prisma;

/** Whether an incident is known, and to this reader: by an entry of the agencies that it may see. */
export function incident(viewer: Viewer, id: string, feedIds: readonly number[]): Sql {
  const hasEntry = sql`EXISTS (
    SELECT 1 FROM unnest(${[...feedIds]}::integer[]) AS w(feed_id)
    CROSS JOIN LATERAL (
      SELECT 1 FROM ledger_entry e
      WHERE e.feed_id = w.feed_id AND e.incident_id = ${id} ${agencyScope(viewer, sql`e.agency`)}
      ORDER BY e.position LIMIT 1) found)`;
  const hasRow = sql`EXISTS (SELECT 1 FROM incident i WHERE i.id = ${id})`;
  return viewer.agencies === null ? sql`SELECT ${hasRow} OR ${hasEntry} AS known` : sql`SELECT ${hasEntry} AS known`;
}

export function incidentFields(id: string): Sql {
  return sql`
    SELECT f.field AS path, f.value, f.feed_id AS "feedId", f.position::text AS position, f.agency,
           f.source_id AS "sourceId"
    FROM incident_field f WHERE f.incident_id = ${id} ORDER BY f.field`;
}

/** Bytes of all fields and members of an incident. */
export function incidentBytes(id: string): Sql {
  return sql`
    SELECT ((SELECT coalesce(sum(octet_length(f.field) + coalesce(octet_length(f.value), 0)), 0)
             FROM incident_field f WHERE f.incident_id = ${id})
          + (SELECT coalesce(sum(octet_length(m.value)), 0)
             FROM incident_member m WHERE m.incident_id = ${id}))::text AS bytes`;
}

export function incidentMembers(id: string): Sql {
  return sql`SELECT m.field AS path, m.value FROM incident_member m WHERE m.incident_id = ${id}`;
}

/** Entries of an incident, counted by source and outcome. */
export function incidentGroups(viewer: Viewer, id: string, feedIds: readonly number[]): Sql {
  return sql`
    SELECT e.feed_id AS "feedId", e.agency, e.source_id AS "sourceId", e.outcome::text AS outcome,
           count(*)::text AS count, min(e.position)::text AS "firstPosition", max(e.position)::text AS "lastPosition"
    FROM unnest(${[...feedIds]}::integer[]) AS w(feed_id)
    CROSS JOIN LATERAL (
      SELECT e.feed_id, e.agency, e.source_id, e.outcome, e.position FROM ledger_entry e
      WHERE e.feed_id = w.feed_id AND e.incident_id = ${id} ${agencyScope(viewer, sql`e.agency`)} OFFSET 0) e
    GROUP BY e.feed_id, e.agency, e.source_id, e.outcome
    ORDER BY e.feed_id, e.agency, e.source_id, e.outcome`;
}

export interface SourceAddress {
  readonly feedId: number;
  readonly agency: string;
  readonly sourceId: string;
}

function sourcesTable(addresses: readonly SourceAddress[]): Sql {
  return sql`unnest(${addresses.map((a) => a.feedId)}::integer[], ${addresses.map((a) => a.agency)}::text[],
                    ${addresses.map((a) => a.sourceId)}::text[]) AS w(feed_id, agency, source_id)`;
}

/** Entries of sources, counted by outcome. A source without entries has no row. */
export function sourceGroups(addresses: readonly SourceAddress[]): Sql {
  return sql`
    SELECT w.feed_id AS "feedId", w.agency, w.source_id AS "sourceId", e.outcome::text AS outcome,
           count(*)::text AS count, min(e.position)::text AS "firstPosition", max(e.position)::text AS "lastPosition"
    FROM ${sourcesTable(addresses)}
    CROSS JOIN LATERAL (
      SELECT e.outcome, e.position FROM ledger_entry e
      WHERE e.feed_id = w.feed_id AND e.agency = w.agency AND e.source_id = w.source_id OFFSET 0) e
    GROUP BY w.feed_id, w.agency, w.source_id, e.outcome
    ORDER BY w.feed_id, w.agency, w.source_id, e.outcome`;
}

/** Epochs of sources; the latest key version and rank first. */
export function sourceEpochs(addresses: readonly SourceAddress[]): Sql {
  return sql`
    SELECT w.feed_id AS "feedId", w.agency, w.source_id AS "sourceId", h.key_version AS "keyVersion", h.epoch,
           h.rank::text AS rank, h.mark::text AS mark, h.highest::text AS highest
    FROM ${sourcesTable(addresses)}
    CROSS JOIN LATERAL (
      SELECT DISTINCT s.key_version FROM source_head s WHERE s.feed_id = w.feed_id) v
    CROSS JOIN LATERAL (
      SELECT * FROM source_head s
      WHERE s.feed_id = w.feed_id AND s.key_version = v.key_version AND s.agency = w.agency
        AND s.source_id = w.source_id OFFSET 0) h
    ORDER BY h.key_version DESC, h.rank DESC NULLS LAST, h.epoch`;
}

/** Whether a source has an entry. */
export function sourceExists(viewer: Viewer, { feedId, agency, sourceId }: SourceAddress): Sql {
  return sql`
    SELECT EXISTS (
      SELECT 1 FROM ledger_entry e
      WHERE e.feed_id = ${feedId} AND e.agency = ${agency} AND e.source_id = ${sourceId}
        ${agencyScope(viewer, sql`e.agency`)}
      ORDER BY e.position LIMIT 1) AS known`;
}

export interface SourcePage {
  readonly feedId: number;
  readonly viewer: Viewer;
  readonly direction: 'forward' | 'backward';
  /** Exclusive, both. */
  readonly after: { readonly agency: string; readonly sourceId: string } | null;
  readonly before: { readonly agency: string; readonly sourceId: string } | null;
  readonly limit: number;
}

/**
 * The sources of a feed in order of agency and id. From one to the next by a probe of the source index each: DISTINCT
 * would read every entry of the feed.
 */
export function sourcePage(page: SourcePage): Sql {
  const forward = page.direction === 'forward';
  const beyond = forward
    ? sql`(e.agency, e.source_id) > (s.agency, s.source_id)`
    : sql`(e.agency, e.source_id) < (s.agency, s.source_id)`;
  return sql`
    WITH RECURSIVE s(agency, source_id, n) AS (
      SELECT first.agency, first.source_id, 1 FROM (${nextSource(page, sql`true`)}) first
      UNION ALL
      SELECT next.agency, next.source_id, s.n + 1
      FROM s CROSS JOIN LATERAL (${nextSource(page, beyond)}) next
      WHERE s.n < ${page.limit}
    )
    SELECT s.agency, s.source_id AS "sourceId" FROM s ORDER BY s.n`;
}

/** The nearest source of the page that fits. Agency by agency for a reader of some: a list of them has no order. */
function nextSource({ feedId, viewer, direction, after, before }: SourcePage, beyond: Sql): Sql {
  const order = direction === 'forward' ? sql`ASC` : sql`DESC`;
  const nearest = (agency: Sql): Sql => sql`
    SELECT e.agency, e.source_id FROM ledger_entry e
    WHERE e.feed_id = ${feedId} AND ${agency} AND ${beyond}
      ${after === null ? empty : sql`AND (e.agency, e.source_id) > (${after.agency}, ${after.sourceId})`}
      ${before === null ? empty : sql`AND (e.agency, e.source_id) < (${before.agency}, ${before.sourceId})`}
    ORDER BY e.agency ${order}, e.source_id ${order} LIMIT 1`;
  if (viewer.agencies === null) return nearest(sql`e.agency IS NOT NULL`);
  return sql`
    SELECT e.agency, e.source_id
    FROM unnest(${[...viewer.agencies]}::text[]) AS a(agency)
    CROSS JOIN LATERAL (${nearest(sql`e.agency = a.agency`)}) e
    ORDER BY e.agency ${order}, e.source_id ${order} LIMIT 1`;
}
