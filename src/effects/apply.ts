/**
 * What effects do to an incident (design section 6). Pure; a message's effects happen all or not at all.
 *
 * Increments and appends commute, so a late one is applied as it is. A late or released `set` or `advance` writes only
 * where it cannot undo something newer: into an empty field, or over the same source's earlier message.
 */
import { addDecimals, compareDecimals, isShortInteger, parseDecimal } from '../contract/decimal';
import type { PlannedEffect } from '../contract/types';
import type { FieldState, Writer } from './state';

export type FieldLookup = (field: string) => FieldState | undefined;

export interface FieldWrite {
  readonly field: string;
  /** As in `FieldState.value`. */
  readonly value: string | null;
  /** Canonical JSON text of a member added to the set. */
  readonly member?: string;
  /** Who the field remembers from now on. */
  readonly writer: Writer;
}

export type EffectFailure = 'not_a_number' | 'number_out_of_range' | 'not_a_set' | 'not_a_value';

export type Applied =
  | { readonly ok: true; readonly writes: readonly FieldWrite[]; readonly superseded: readonly string[] }
  | { readonly ok: false; readonly reason: EffectFailure; readonly field: string };

/** What one effect does: a write, nothing because something newer stands, nothing at all, or a failure. */
type Step = { readonly write: Omit<FieldWrite, 'writer'> } | 'superseded' | 'unchanged' | EffectFailure;

/**
 * @param outOfOrder the message is late or released: it may be older than what the field holds
 */
export function applyEffects(
  effects: readonly PlannedEffect[],
  lookup: FieldLookup,
  writer: Writer,
  outOfOrder: boolean,
): Applied {
  const writes: FieldWrite[] = [];
  const superseded: string[] = [];
  for (const effect of effects) {
    const before = lookup(effect.field);
    // Newer or not is asked of what stood before the message: its own increment must not open the way for its own `set`.
    const mayReplace = !outOfOrder || before === undefined || isEarlier(before.writer, writer);
    const current = writes.findLast(({ field }) => field === effect.field) ?? before;
    const step = applyEffect(effect, current, mayReplace);
    if (step === 'superseded') superseded.push(effect.field);
    else if (typeof step === 'object') {
      // A late increment leaves the newer message of its source in place, or a later `set` could undo that one.
      const last = outOfOrder && before !== undefined && isEarlier(writer, before.writer) ? before.writer : writer;
      const { field, value, member } = step.write;
      writes.push({ field, value, member, writer: last });
    } else if (step !== 'unchanged') return { ok: false, reason: step, field: effect.field };
  }
  return { ok: true, writes, superseded };
}

/** @param mayReplace false: what stands in the field may be newer than the message */
function applyEffect(effect: PlannedEffect, current: FieldState | undefined, mayReplace: boolean): Step {
  const { field } = effect;
  switch (effect.do) {
    case 'append':
      if (current !== undefined && current.value !== null) return 'not_a_set';
      return { write: { field, value: null, member: effect.value } };
    case 'increment': {
      const sum = addTo(current, effect.by);
      return sum.ok ? { write: { field, value: sum.text } } : sum.reason;
    }
    case 'set':
      if (current?.value === null) return 'not_a_value';
      return mayReplace ? { write: { field, value: effect.to } } : 'superseded';
    case 'advance': {
      if (current === undefined) return { write: { field, value: effect.to } };
      const held = numberOf(current);
      if (held === null) return 'not_a_number';
      if (!mayReplace) return 'superseded';
      const to = parseDecimal(effect.to);
      if (!to.ok) return 'not_a_number';
      return compareDecimals(to.value, held) > 0 ? { write: { field, value: effect.to } } : 'unchanged';
    }
  }
}

function numberOf(state: FieldState) {
  if (state.value === null) return null;
  // The text of a JSON string begins with a quotation mark, which is no number.
  const parsed = parseDecimal(state.value);
  return parsed.ok ? parsed.value : null;
}

function addTo(
  current: FieldState | undefined,
  by: string,
): { ok: true; text: string } | { ok: false; reason: EffectFailure } {
  // Nearly every increment is of a count.
  if (isShortInteger(by) && typeof current?.value === 'string' && isShortInteger(current.value)) {
    return { ok: true, text: String(Number(current.value) + Number(by)) };
  }
  const addend = parseDecimal(by);
  if (!addend.ok) return { ok: false, reason: 'not_a_number' };
  if (current === undefined) return { ok: true, text: by };
  const held = numberOf(current);
  if (held === null) return { ok: false, reason: 'not_a_number' };
  const sum = addDecimals(held, addend.value);
  return sum.ok ? sum : { ok: false, reason: 'number_out_of_range' };
}

/** Is `earlier` a message of the same source with a lower (epoch, sequence)? Without a sequence nothing is known. */
function isEarlier(earlier: Writer, later: Writer): boolean {
  const sameSource =
    earlier.feedId === later.feedId && earlier.agency === later.agency && earlier.sourceId === later.sourceId;
  if (!sameSource || earlier.sequence === null || later.sequence === null) return false;
  const byRank = compareDigits(earlier.rank, later.rank);
  return byRank !== 0 ? byRank < 0 : BigInt(earlier.sequence) < BigInt(later.sequence);
}

function compareDigits(a: string | null, b: string | null): number {
  const left = BigInt(a ?? 0);
  const right = BigInt(b ?? 0);
  return left < right ? -1 : left > right ? 1 : 0;
}
