/**
 * The decision (design section 3): the first line that fits, for each message in arrival order. Pure: no clock, no
 * I/O, and nothing from a cache, so the same ledger and the same messages always give the same decisions.
 */
import type { KeyedMessage, Message } from '../contract/types';
import { applyEffects } from '../effects/apply';
import type { Writer } from '../effects/state';
import { Draft, higher } from './draft';
import { formerOriginal } from './originals';
import type { Claim, DecidedBatch, Decision, EpochHead, LockedState, Outcome, Tier } from './state';
import { claims } from './state';

type Verdict = Pick<Decision, 'outcome' | 'tier' | 'reason' | 'late' | 'original' | 'note'>;

/** Where a sequence stands in its source. */
type Place =
  | { readonly below: null; readonly rank: bigint | null }
  | { readonly below: 'below_high_water_mark' | 'epoch_left'; readonly rank: bigint | null };

export function decide(state: LockedState, messages: readonly Message[]): DecidedBatch {
  const draft = new Draft(state);
  const decisions = messages.map((message, index): Decision => {
    const position = state.size + index;
    return { message, position, ...decideOne(state, draft, message, position) };
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
  const original = draft.originalOf(message);
  if (original !== undefined) return duplicate(state, original, position, 'same_key_and_digest');
  const former = formerOriginal(state.claims, message, true);
  if (former !== null) return duplicate(state, former, position, 'same_former_key_and_digest');
  const decided = conflictOf(state, draft, message) ?? decideFirstSeen(state, draft, message, position);
  if (claims(decided.outcome)) draft.addClaim(message, position);
  if (decided.outcome !== 'APPLIED') raiseHighest(draft, message);
  return decided;
}

/** Line 4: the key was decided with another digest, or what it was under a former version leaves open what it is. */
function conflictOf(state: LockedState, draft: Draft, message: KeyedMessage): Verdict | null {
  const first = draft.firstClaimOf(message);
  // `read_batch` finds the first claim of a key by this reason.
  if (first !== undefined) return verdict('KEY_CONFLICT', 'same_key_other_digest', { original: first.position });
  const likely = formerOriginal(state.claims, message, false);
  return likely && verdict('KEY_CONFLICT', 'former_identity_unclear', { original: likely.position });
}

/** Lines 5 to 7: nothing was decided for this key before. */
function decideFirstSeen(state: LockedState, draft: Draft, message: KeyedMessage, position: number): Verdict {
  const head = draft.head(message);
  const place = placeOf(state, draft, message, head);
  if (place.below !== null && state.policy.ordering === 'strict') {
    return verdict('STALE_OUT_OF_ORDER', place.below, { tier: 'HIGH_WATER_MARK' });
  }
  if (jumps(state, message, head)) {
    const note = `from ${head.mark} to ${message.identity.sequence}, more than ${state.policy.maxSequenceJump}`;
    return verdict('EFFECT_FAILED', 'sequence_jump', { note });
  }
  return applyMessage(state, draft, message, position, head, place);
}

function applyMessage(
  state: LockedState,
  draft: Draft,
  message: KeyedMessage,
  position: number,
  head: EpochHead,
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
  raiseMark(draft, message, head, place.rank);
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

function verdict(outcome: Outcome, reason: string, rest: Partial<Verdict> = {}): Verdict {
  return { outcome, reason, tier: 'NONE', late: false, original: null, note: null, ...rest };
}

/** Within the policy's seconds and entries, both inclusive, or remembered by the ledger alone. */
function tierOf(state: LockedState, original: Claim, position: number): Tier {
  const age = state.recordedAtMicros - original.recordedAtMicros;
  const inWindow =
    age <= state.policy.windowSeconds * 1_000_000 && position - original.position <= state.policy.maxEntries;
  return inWindow ? 'WINDOW' : 'LEDGER';
}

/**
 * Is the message below the high-water mark, or of an epoch that was left? In `eventId` mode neither exists.
 * `rank` is what its epoch has, or gets when this message is applied.
 */
function placeOf(state: LockedState, draft: Draft, message: KeyedMessage, head: EpochHead): Place {
  const { sequence, epoch } = message.identity;
  if (sequence === null) return { below: null, rank: null };
  const current = draft.currentRank(message);
  const rank = head.rank ?? rankOfNew(state, epoch, current);
  if (current !== null && rank < current) return { below: 'epoch_left', rank };
  if (head.mark !== null && BigInt(sequence) <= head.mark) return { below: 'below_high_water_mark', rank };
  return { below: null, rank };
}

/** Opaque epochs rank by their first applied message, numeric ones by their own number. */
function rankOfNew(state: LockedState, epoch: string | null, current: bigint | null): bigint {
  if (state.epochOrder === 'numeric' && epoch !== null) return BigInt(epoch);
  return (current ?? 0n) + 1n;
}

/** One absurd number must not block a source: beyond the bound it is held, and the mark stays. */
function jumps(state: LockedState, message: KeyedMessage, head: EpochHead): boolean {
  const { maxSequenceJump } = state.policy;
  const { sequence } = message.identity;
  if (maxSequenceJump === null || sequence === null || head.mark === null) return false;
  return BigInt(sequence) - head.mark > BigInt(maxSequenceJump);
}

function raiseMark(draft: Draft, message: KeyedMessage, head: EpochHead, rank: bigint | null): void {
  const { sequence } = message.identity;
  const at = sequence === null ? null : BigInt(sequence);
  // A late message gives no new mark; without a sequence there is none, and the row only says that the source exists.
  draft.setHead(message, { rank, mark: higher(head.mark, at), highest: higher(head.highest, at) });
}

/** A held message counts for look-ups (its key may come again), never for the mark. */
function raiseHighest(draft: Draft, message: KeyedMessage): void {
  const { sequence } = message.identity;
  const head = draft.head(message);
  const at = sequence === null ? null : BigInt(sequence);
  draft.setHead(message, { ...head, highest: higher(head.highest, at) });
}
