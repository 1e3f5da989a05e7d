/**
 * A ledger entry as it is written: immutable columns only (design sections 2, 3 and 8).
 */
import type { Outcome as Decided, Tier } from '../dedup/state';

/** A decision about a message, or a person's resolution of a held entry. */
export type EntryOutcome = Decided | 'RELEASED' | 'DISMISSED';

/** All of them, in the order in which people are told of them. */
export const ENTRY_OUTCOMES = [
  'APPLIED',
  'DUPLICATE_SUPPRESSED',
  'KEY_CONFLICT',
  'STALE_OUT_OF_ORDER',
  'EFFECT_FAILED',
  'MALFORMED_REJECTED',
  'IGNORED',
  'RELEASED',
  'DISMISSED',
] as const satisfies readonly EntryOutcome[];

/** Version of the leaf encoding. */
export const ENCODING_VERSION = 1;

/** Digests and keys are lower-case hex; times RFC 3339 in UTC with six fractional digits. */
export interface LedgerEntry {
  readonly feed: string;
  readonly position: number;
  readonly term: number;
  readonly encodingVersion: typeof ENCODING_VERSION;
  readonly batchId: string;
  readonly itemIndex: number | null;
  readonly outcome: EntryOutcome;
  readonly tier: Tier;
  readonly reason: string;
  readonly held: boolean;
  readonly late: boolean;
  readonly keyVersion: number | null;
  readonly key: string | null;
  /** null: claims nothing; '' under `digest: off`. */
  readonly claimDigest: string | null;
  readonly payloadDigest: string;
  /** Of the delivery as it came. */
  readonly bytesDigest: string;
  readonly agency: string | null;
  readonly sourceId: string | null;
  readonly epoch: string | null;
  readonly sequence: string | null;
  /** JSON array of the parts. */
  readonly eventId: string | null;
  readonly incidentId: string | null;
  readonly original: number | null;
  readonly resolves: number | null;
  readonly actor: string | null;
  readonly note: string | null;
  readonly policyVersion: number;
  readonly contractDigest: string;
  readonly broker: string;
  readonly topic: string;
  readonly qos: number;
  readonly dup: boolean;
  readonly retained: boolean;
  readonly recordedAt: string;
  readonly occurredAt: string | null;
}

/** Microseconds since 1970 as RFC 3339 in UTC with six fractional digits. */
export function timeText(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const fraction = (micros - seconds * 1_000_000).toString().padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}
