/**
 * What a batch is decided from, and what comes of it (design sections 3 and 5). Types and keys of maps only.
 *
 * Times are microseconds since 1970 as numbers (exact until the year 2255). Positions are numbers (far below 2^53).
 * Sequences, marks and ranks are bigint.
 */
import type { DedupPolicy, EpochOrder, Message } from '../contract/types';
import type { FieldChange, FieldState, MemberAdded } from '../effects/state';

export type Outcome =
  | 'IGNORED'
  | 'MALFORMED_REJECTED'
  | 'DUPLICATE_SUPPRESSED'
  | 'KEY_CONFLICT'
  | 'STALE_OUT_OF_ORDER'
  | 'EFFECT_FAILED'
  | 'APPLIED';

export type Tier = 'WINDOW' | 'LEDGER' | 'HIGH_WATER_MARK' | 'NONE';

export interface PolicyInForce extends DedupPolicy {
  readonly version: number;
}

/** An entry that decided a key and digest first. */
export interface Claim {
  readonly position: number;
  readonly recordedAtMicros: number;
  readonly digest: string;
}

export interface EpochHead {
  /** Order among the epochs of the source; null until a message of it was applied. */
  readonly rank: bigint | null;
  /** High-water mark. */
  readonly mark: bigint | null;
  /** Highest sequence of any keyed entry, held ones included. */
  readonly highest: bigint | null;
}

/** The state under the lock of the feed's head. */
export interface LockedState {
  readonly feedId: number;
  /** Next position. */
  readonly size: number;
  /** Database time of this batch, taken under the lock, never below that of the batch before. */
  readonly recordedAtMicros: number;
  readonly policy: PolicyInForce;
  readonly epochOrder: EpochOrder;
  /** `sourceKey` → epoch ('' without epochs) → head. */
  readonly sources: ReadonlyMap<string, ReadonlyMap<string, EpochHead>>;
  /** `claimKey` → claims, in order of position. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>;
  /** `fieldKey` → field. */
  readonly fields: ReadonlyMap<string, FieldState>;
}

export function sourceKey(keyVersion: number, agency: string, sourceId: string): string {
  // Identity parts never contain NUL, so no two sources share a key.
  return `${keyVersion}\0${agency}\0${sourceId}`;
}

/** @param epoch '' without epochs */
export function epochKey(keyVersion: number, agency: string, sourceId: string, epoch: string): string {
  return `${sourceKey(keyVersion, agency, sourceId)}\0${epoch}`;
}

export function claimKey(keyVersion: number, key: string): string {
  return `${keyVersion}:${key}`;
}

export function fieldKey(incidentId: string, field: string): string {
  return `${incidentId}\0${field}`;
}

/** The decision about one message. `held` and the claim follow from the outcome. */
export interface Decision {
  readonly message: Message;
  readonly position: number;
  readonly outcome: Outcome;
  readonly tier: Tier;
  readonly reason: string;
  readonly late: boolean;
  /** Position of the entry that a duplicate repeats, or that a conflict collides with. */
  readonly original: number | null;
  readonly note: string | null;
}

export interface SourceChange {
  readonly keyVersion: number;
  readonly agency: string;
  readonly sourceId: string;
  readonly epoch: string;
  readonly head: EpochHead;
}

export interface Outgoing {
  readonly position: number;
  readonly key: string;
  readonly topic: string;
  readonly payload: Uint8Array;
}

export interface DecidedBatch {
  readonly decisions: readonly Decision[];
  readonly sources: readonly SourceChange[];
  readonly fields: readonly FieldChange[];
  readonly members: readonly MemberAdded[];
  readonly outbox: readonly Outgoing[];
}

const HELD: ReadonlySet<Outcome> = new Set([
  'MALFORMED_REJECTED',
  'KEY_CONFLICT',
  'STALE_OUT_OF_ORDER',
  'EFFECT_FAILED',
]);

/** Neither applied nor proven a duplicate: waits for a person. */
export function isHeld(outcome: Outcome): boolean {
  return HELD.has(outcome);
}

/** Does an entry of this outcome claim its key and digest, so that a repeat of it is a duplicate? */
export function claims(outcome: Outcome): boolean {
  return outcome === 'APPLIED' || (HELD.has(outcome) && outcome !== 'MALFORMED_REJECTED');
}
