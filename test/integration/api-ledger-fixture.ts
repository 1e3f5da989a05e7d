/** Ledgers written by SQL alone: with times of the test's choosing, or large. */
import { query } from '../support/ledger';

export interface BulkOptions {
  readonly feedId: number;
  readonly first: number;
  readonly count: number;
  /** Entries a batch; all of one share its time. */
  readonly perBatch?: number;
  /** Time of the first batch; the next ones follow a second apart. */
  readonly startsAt?: string;
  readonly sources?: number;
  readonly incidents?: number;
  /** Every so manieth entry repeats the one before it. */
  readonly duplicateEvery?: number;
}

/**
 * Appends entries as `write_batch` would: claims, repeats, heads of sources, batches and the feed's head. Sequences are
 * positions, keys are SHA-256 of them; every 10th repetition is of the tier LEDGER, every 100th message is held as stale.
 */
export async function appendEntries(url: string, options: BulkOptions): Promise<void> {
  const { feedId, first, count, perBatch = 500, sources = 50, incidents = 200, duplicateEvery = 10 } = options;
  const startsAt = options.startsAt ?? '2026-01-01T00:00:00Z';
  await query(
    url,
    `WITH e AS (
       SELECT n AS position, n / $4 AS batch, n % $7 = $7 - 1 AS repeats, n % 100 = 50 AS stale,
              CASE WHEN n % $7 = $7 - 1 THEN n - 1 ELSE n END AS sequence
       FROM generate_series($2::bigint, $2::bigint + $3 - 1) AS n)
     INSERT INTO ledger_entry (feed_id, position, term, encoding_version, batch_id, outcome, tier, reason, held, late,
       key_version, key, claim_digest, payload_digest, bytes_digest, agency, source_id, sequence, incident_id, original,
       policy_version, contract_digest, broker, topic, qos, dup, retained, recorded_at, leaf_hash)
     SELECT $1::integer, position, 1, 1, md5($1::integer || '/' || $2::bigint || '/' || batch)::uuid,
       (CASE WHEN repeats THEN 'DUPLICATE_SUPPRESSED' WHEN stale THEN 'STALE_OUT_OF_ORDER' ELSE 'APPLIED' END)::outcome,
       (CASE WHEN repeats AND position % 100 = 99 THEN 'LEDGER' WHEN repeats THEN 'WINDOW' WHEN stale THEN 'HIGH_WATER_MARK'
        ELSE 'NONE' END)::tier,
       'bulk', stale, false, 1, sha256(sequence::text::bytea), CASE WHEN repeats THEN NULL ELSE sha256('x') END,
       sha256('x'), sha256('x'), 'agency-' || sequence % 3, 'source-' || sequence % $5, sequence,
       'incident-' || sequence % $6, CASE WHEN repeats THEN sequence END, 1, sha256('contract'), 'default', 'bulk', 1,
       repeats, false, $8::timestamptz + batch * interval '1 second', sha256('x')
     FROM e`,
    [feedId, first, count, perBatch, sources, incidents, duplicateEvery, startsAt],
  );
  await query(
    url,
    `INSERT INTO batch (id, feed_id, term, first_position, entries, received, deliveries, recorded_at)
     SELECT batch_id, feed_id, 1, min(position), count(*), count(*), count(*), min(recorded_at)
     FROM ledger_entry WHERE feed_id = $1 AND position >= $2 GROUP BY batch_id, feed_id`,
    [feedId, first],
  );
  await query(
    url,
    `INSERT INTO source_head (feed_id, key_version, agency, source_id, epoch, rank, mark, highest)
     SELECT feed_id, key_version, agency, source_id, '', 1, max(sequence), max(sequence)
     FROM ledger_entry WHERE feed_id = $1 GROUP BY feed_id, key_version, agency, source_id
     ON CONFLICT (feed_id, key_version, agency, source_id, epoch) DO UPDATE SET mark = excluded.mark`,
    [feedId],
  );
  await query(
    url,
    `UPDATE feed_head SET size = $2, recorded_at = (SELECT max(recorded_at) FROM batch WHERE feed_id = $1) WHERE feed_id = $1`,
    [feedId, first + count],
  );
}
