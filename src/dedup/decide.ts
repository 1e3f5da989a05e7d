/**
 * The decision (design section 3): the first line that fits, for each message in arrival order. Pure: no clock, no
 * I/O, and nothing from a cache, so the same ledger and the same messages always give the same decisions.
 */
import type { KeyedMessage, Message } from '../contract/types';
import { applyEffects } from '../effects/apply';
import type { Writer } from '../effects/state';
import { Draft, higher, type KeyClaims, type SourceDraft } from './draft';
import { formerOriginal } from './originals';
import type { Claim, DecidedBatch, Decision, EpochHead, LockedState, Outcome, Tier } from './state';
import { claims } from './state';

type Verdict = Pick<Decision, 'outcome' | 'tier' | 'reason' | 'late' | 'original' | 'note'>;

/** Where a message stands in its source. */
interface Place {
  readonly source: SourceDraft;
  /** Of the message's epoch, before it. */
  readonly head: EpochHead;
  /** The sequence; null in `eventId` mode. */
  readonly at: bigint | null;
  /** What its epoch has, or gets when this message is applied. */
  readonly rank: bigint | null;
  /** Is it below the high-water mark, or of an epoch that was left? In `eventId` mode neither exists. */
  readonly below: 'below_high_water_mark' | 'epoch_left' | null;
}

export function decide(state: LockedState, messages: readonly Message[]): DecidedBatch {
  const draft = new Draft(state);
  const decisions = messages.map((message, index): Decision => {
    const position = state.size + index;
    const { outcome, tier, reason, late, original, note } = decideOne(state, draft, message, position);
    // Named one by one: in Node 20, spreading it took longer than deciding a duplicate.
    return { message, position, outcome, tier, reason, late, original, note };
  });
  return {
    decisions,
    sources: draft.changedSources(),
    fields: draft.changedFields(),
    members: draft.members,
    outbox: draft.outbox,
  };
}

function decideOne(state: LockedState, draft: Draft, message: Message, position: number): Verdict {
  if (message.kind === 'ignored') return verdict('IGNORED', message.reason);
  if (message.kind === 'malformed') return verdict('MALFORMED_REJECTED', message.reason, { note: message.detail });
  const known = draft.claimsOf(message);
  const original = known.of(message.claimDigest);
  if (original !== undefined) return duplicate(state, original, position, 'same_key_and_digest');
  const former = formerOriginal(state.claims, message, true);
  if (former !== null) return duplicate(state, former, position, 'same_former_key_and_digest');
  const source = draft.sourceOf(message);
  const place = placeOf(state, source, message);
  const decided = conflictOf(state, known, message) ?? decideFirstSeen(state, draft, message, position, place);
  if (claims(decided.outcome)) {
    known.add({ position, recordedAtMicros: state.recordedAtMicros, digest: message.claimDigest });
  }
  raiseHead(message, place, decided.outcome === 'APPLIED');
  return decided;
}

/** Line 4: the key was decided with another digest, or what it was under a former version leaves open what it is. */
function conflictOf(state: LockedState, { first }: KeyClaims, message: KeyedMessage): Verdict | null {
  // `read_batch` finds the first claim of a key by this reason.
  if (first !== undefined) return verdict('KEY_CONFLICT', 'same_key_other_digest', { original: first.position });
  const likely = formerOriginal(state.claims, message, false);
  return likely && verdict('KEY_CONFLICT', 'former_identity_unclear', { original: likely.position });
}

/** Lines 5 to 7: nothing was decided for this key before. */
function decideFirstSeen(
  state: LockedState,
  draft: Draft,
  message: KeyedMessage,
  position: number,
  place: Place,
): Verdict {
  if (place.below !== null && state.policy.ordering === 'strict') {
    return verdict('STALE_OUT_OF_ORDER', place.below, { tier: 'HIGH_WATER_MARK' });
  }
  if (jumps(state, place)) {
    const note = `from ${place.head.mark} to ${message.identity.sequence}, more than ${state.policy.maxSequenceJump}`;
    return verdict('EFFECT_FAILED', 'sequence_jump', { note });
  }
  return applyMessage(state, draft, message, position, place);
}

function applyMessage(
  state: LockedState,
  draft: Draft,
  message: KeyedMessage,
  position: number,
  place: Place,
): Verdict {
  const { plan, identity, incidentId } = message;
  if (!plan.ok) return verdict('EFFECT_FAILED', plan.reason, { note: plan.detail });
  const late = place.below !== null;
  const writer: Writer = {
    feedId: state.feedId,
    agency: identity.agency,
    sourceId: identity.sourceId,
    epoch: identity.epoch,
    rank: place.rank === null ? null : place.rank.toString(),
    sequence: identity.sequence,
  };
  let superseded: readonly string[] = [];
  if (incidentId !== null && plan.effects.length > 0) {
    const applied = applyEffects(plan.effects, (field) => draft.field(incidentId, field), writer, late);
    if (!applied.ok) return verdict('EFFECT_FAILED', applied.reason, { note: `field ${applied.field}` });
    for (const write of applied.writes) draft.write(incidentId, write, position);
    superseded = applied.superseded;
  }
  if (plan.forward !== null) draft.outbox.push({ position, key: message.key, ...plan.forward });
  const reason = plan.effects.length === 0 ? 'no_effect' : superseded.length > 0 ? 'superseded' : 'applied';
  return verdict('APPLIED', reason, {
    late,
    note: superseded.length > 0 ? `something newer stands in: ${superseded.join(', ')}` : null,
  });
}

function duplicate(state: LockedState, original: Claim, position: number, reason: string): Verdict {
  const tier = tierOf(state, original, position);
  return verdict('DUPLICATE_SUPPRESSED', reason, { tier, original: original.position });
}

function verdict(
  outcome: Outcome,
  reason: string,
  { tier = 'NONE', late = false, original = null, note = null }: Partial<Verdict> = {},
): Verdict {
  return { outcome, tier, reason, late, original, note };
}

/** Within the policy's seconds and entries, both inclusive, or remembered by the ledger alone. */
function tierOf(state: LockedState, original: Claim, position: number): Tier {
  const age = state.recordedAtMicros - original.recordedAtMicros;
  const inWindow =
    age <= state.policy.windowSeconds * 1_000_000 && position - original.position <= state.policy.maxEntries;
  return inWindow ? 'WINDOW' : 'LEDGER';
}

function placeOf(state: LockedState, source: SourceDraft, { identity }: KeyedMessage): Place {
  const { sequence, epoch } = identity;
  const head = source.head(epoch);
  if (sequence === null) return { source, head, at: null, rank: null, below: null };
  const at = BigInt(sequence);
  const current = source.rank;
  const rank = head.rank ?? rankOfNew(state, epoch, current);
  const left = current !== null && rank < current;
  const below = left ? 'epoch_left' : head.mark !== null && at <= head.mark ? 'below_high_water_mark' : null;
  return { source, head, at, rank, below };
}

/** Opaque epochs rank by their first applied message, numeric ones by their own number. */
function rankOfNew(state: LockedState, epoch: string | null, current: bigint | null): bigint {
  if (state.epochOrder === 'numeric' && epoch !== null) return BigInt(epoch);
  return (current ?? 0n) + 1n;
}

/** One absurd number must not block a source: beyond the bound it is held, and the mark stays. */
function jumps({ policy }: LockedState, { at, head }: Place): boolean {
  if (policy.maxSequenceJump === null || at === null || head.mark === null) return false;
  return at - head.mark > BigInt(policy.maxSequenceJump);
}

/**
 * A held message counts for look-ups (its key may come again), never for the mark. A late one gives no new mark;
 * without a sequence there is none, and the row only says that the source exists.
 */
function raiseHead({ identity }: KeyedMessage, { source, head, at, rank }: Place, isApplied: boolean): void {
  const highest = higher(head.highest, at);
  source.setHead(identity.epoch, isApplied ? { rank, mark: higher(head.mark, at), highest } : { ...head, highest });
}
