/**
 * What the API reads, before it is shaped into GraphQL. Times are microseconds since 1970, positions dense numbers from
 * 0 in their feed, keys and digests lower-case hex, sequences, marks and ranks exact decimal digits.
 */
import type { EntryOutcome } from '../../ledger/entry';
import type { Tier } from '../../dedup/state';

/** A feed with the head of its ledger. */
export interface FeedRecord {
  readonly id: number;
  readonly name: string;
  readonly createdAt: bigint;
  readonly retiredAt: bigint | null;
  readonly term: number;
  /** Entries so far, i.e. the next position. */
  readonly size: bigint;
  /** Of the last batch; of the feed's creation while the ledger is empty. */
  readonly recordedAt: bigint;
  readonly contractVersion: number;
  readonly policyVersion: number;
}

export interface DecisionRecord {
  readonly feed: FeedRecord;
  readonly position: bigint;
  readonly term: number;
  readonly itemIndex: number | null;
  readonly outcome: EntryOutcome;
  readonly tier: Tier;
  readonly reason: string;
  readonly held: boolean;
  readonly late: boolean;
  readonly keyVersion: number | null;
  readonly key: string | null;
  readonly payloadDigest: string;
  readonly bytesDigest: string;
  readonly agency: string | null;
  readonly sourceId: string | null;
  readonly epoch: string | null;
  readonly sequence: string | null;
  readonly eventId: readonly string[] | null;
  readonly incidentId: string | null;
  readonly originalPosition: bigint | null;
  readonly resolvesPosition: bigint | null;
  readonly actor: string | null;
  readonly note: string | null;
  readonly policyVersion: number;
  readonly contractDigest: string;
  readonly broker: string;
  readonly topic: string;
  readonly qos: number;
  readonly dup: boolean;
  readonly retained: boolean;
  readonly recordedAt: bigint;
  readonly occurredAt: bigint | null;
  readonly leafHash: string;
}

export interface ContractRecord {
  readonly feedId: number;
  readonly version: number;
  readonly digest: string;
  readonly file: string;
  readonly text: string;
  readonly commit: string | null;
  readonly firstPosition: bigint;
  readonly actor: string;
  readonly recordedAt: bigint;
}

export interface PolicyRecord {
  readonly feedId: number;
  readonly version: number;
  readonly firstPosition: bigint;
  readonly windowSeconds: number;
  readonly maxEntries: number;
  readonly ordering: 'strict' | 'tolerant';
  readonly contiguous: boolean;
  readonly maxSequenceJump: string | null;
  readonly origin: 'CONTRACT' | 'API';
  readonly contractDigest: string | null;
  readonly commit: string | null;
  readonly actor: string;
  readonly reason: string;
  readonly recordedAt: bigint;
}

/** The two counts of design section 3, each side counted by itself. */
export interface BalanceRecord {
  readonly feedId: number;
  readonly received: bigint;
  readonly entries: bigint;
  readonly appliedKeys: bigint;
  readonly applied: bigint;
  readonly released: bigint;
}

export interface SourceRecord {
  readonly feed: FeedRecord;
  readonly agency: string;
  readonly sourceId: string;
}

export interface EpochRecord {
  readonly keyVersion: number;
  /** '' in feeds without epochs. */
  readonly epoch: string;
  readonly rank: string | null;
  readonly mark: string | null;
  readonly highest: string | null;
}

/** Entries of one source that came to one outcome. */
export interface OutcomeGroup {
  readonly feedId: number;
  readonly agency: string | null;
  readonly sourceId: string | null;
  readonly outcome: EntryOutcome;
  readonly count: bigint;
  readonly firstPosition: bigint;
  readonly lastPosition: bigint;
}

export interface FieldRecord {
  /** RFC 6901 without the leading slash, e.g. `units/engine-7`. */
  readonly path: string;
  /** Canonical JSON text; null where the field is a set. */
  readonly value: string | null;
  /** Canonical JSON texts of a set's members, sorted. */
  readonly members: readonly string[];
  readonly feedId: number;
  readonly position: bigint;
  readonly agency: string;
  readonly sourceId: string;
}

export interface PayloadRecord {
  readonly sizeBytes: number;
  /** null: larger than the limit when it came, or purged. */
  readonly bytes: Uint8Array | null;
  readonly purgedAt: bigint | null;
}

export interface AdminEventRecord {
  readonly position: bigint;
  readonly kind: string;
  readonly feedId: number | null;
  readonly actor: string;
  /** JSON text, or a sentence. */
  readonly detail: string;
  readonly recordedAt: bigint;
}
