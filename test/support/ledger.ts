/**
 * Reads a ledger back over a connection of its own, with nothing of the product's but the leaf encoding, and checks
 * what must hold of every ledger at any time (design section 3): the oracle of the fault tests.
 */
import { Client } from 'pg';
import type { LedgerEntry } from '../../src/ledger/entry';
import { leafHash } from '../../src/ledger/leaf';

export type StoredEntry = LedgerEntry & { readonly leafHash: string };

const ENTRIES = `
  SELECT f.name AS feed, e.position::int, e.term, e.encoding_version AS "encodingVersion", e.batch_id AS "batchId",
    e.item_index AS "itemIndex", e.outcome::text, e.tier::text, e.reason, e.held, e.late, e.key_version AS "keyVersion",
    encode(e.key, 'hex') AS key, encode(e.claim_digest, 'hex') AS "claimDigest",
    encode(e.payload_digest, 'hex') AS "payloadDigest", encode(e.bytes_digest, 'hex') AS "bytesDigest", e.agency,
    e.source_id AS "sourceId", e.epoch, e.sequence::text, e.event_id AS "eventId", e.incident_id AS "incidentId",
    e.original::int, e.resolves::int, e.actor, e.note, e.policy_version AS "policyVersion",
    encode(e.contract_digest, 'hex') AS "contractDigest", e.broker, e.topic, e.qos, e.dup, e.retained,
    to_char(e.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "recordedAt",
    to_char(e.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "occurredAt",
    encode(e.leaf_hash, 'hex') AS "leafHash"
  FROM ledger_entry e JOIN feed f ON f.id = e.feed_id
  WHERE f.name = $1 ORDER BY e.position`;

export async function query<T extends object>(url: string, sql: string, values: unknown[] = []): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

export function readEntries(url: string, feed: string): Promise<StoredEntry[]> {
  return query<StoredEntry>(url, ENTRIES, [feed]);
}

interface Balance {
  readonly received: number;
  readonly entries: number;
  readonly appliedKeys: number;
  readonly applied: number;
  readonly size: number;
}

export async function readBalance(url: string, feed: string): Promise<Balance> {
  const rows = await query<Balance>(
    url,
    `SELECT
       (SELECT coalesce(sum(received), 0)::int FROM batch b WHERE b.feed_id = f.id) AS received,
       (SELECT count(*)::int FROM ledger_entry e WHERE e.feed_id = f.id AND outcome NOT IN ('RELEASED', 'DISMISSED')) AS entries,
       (SELECT count(*)::int FROM applied_key a WHERE a.feed_id = f.id) AS "appliedKeys",
       (SELECT count(*)::int FROM ledger_entry e WHERE e.feed_id = f.id AND outcome IN ('APPLIED', 'RELEASED')) AS applied,
       (SELECT size::int FROM feed_head h WHERE h.feed_id = f.id) AS size
     FROM feed f WHERE f.name = $1`,
    [feed],
  );
  const balance = rows[0];
  if (balance === undefined) throw new Error(`no feed ${feed}`);
  return balance;
}

/** Balanced, dense, hashed as stored, and every duplicate names an earlier entry with its key and digest, or one of a former version. */
export async function expectSoundLedger(url: string, feed: string): Promise<StoredEntry[]> {
  const [entries, balance] = await Promise.all([readEntries(url, feed), readBalance(url, feed)]);
  expect(balance.entries).toBe(balance.received);
  expect(balance.appliedKeys).toBe(balance.applied);
  expect(balance.size).toBe(entries.length);
  let before: StoredEntry | undefined;
  for (const [index, entry] of entries.entries()) {
    expect(entry.position).toBe(index);
    const { leafHash: stored, ...columns } = entry;
    expect(leafHash(columns)).toBe(stored);
    if (before !== undefined) expect(entry.recordedAt >= before.recordedAt).toBe(true);
    if (entry.outcome === 'DUPLICATE_SUPPRESSED') {
      const original = entries[entry.original ?? -1];
      expect(original?.outcome).toEqual(expect.not.stringMatching('DUPLICATE'));
      if (original?.keyVersion === entry.keyVersion) expect(original?.key).toBe(entry.key);
      else {
        expect(entry.reason).toBe('same_former_key_and_digest');
        expect(original?.keyVersion).toBeLessThan(entry.keyVersion ?? 0);
      }
      expect(original?.claimDigest).toEqual(expect.any(String));
      expect(original?.position).toBeLessThan(entry.position);
    }
    before = entry;
  }
  return entries;
}

/** Fields of an incident as JSON values; sets as sorted arrays. */
export async function readIncident(url: string, id: string): Promise<Record<string, unknown>> {
  const fields = await query<{ field: string; value: string | null }>(
    url,
    'SELECT field, value FROM incident_field WHERE incident_id = $1 ORDER BY field',
    [id],
  );
  const members = await query<{ field: string; value: string }>(
    url,
    'SELECT field, value FROM incident_member WHERE incident_id = $1 ORDER BY field, value',
    [id],
  );
  const of = (field: string) => members.filter((m) => m.field === field).map((m) => JSON.parse(m.value) as unknown);
  return Object.fromEntries(
    fields.map(({ field, value }) => [field, value === null ? of(field) : (JSON.parse(value) as unknown)]),
  );
}
