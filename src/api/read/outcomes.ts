/** Counts by outcome, in the order of design section 3. */
import type { EntryOutcome } from '../../ledger/entry';
import type { OutcomeGroup } from '../model/records';
import { Outcome } from '../types/enums';

export interface OutcomeTotal {
  readonly outcome: EntryOutcome;
  readonly count: bigint;
}

/** Outcomes that did not occur are left out. */
export function totalsOf(groups: readonly OutcomeGroup[]): OutcomeTotal[] {
  const totals = new Map<EntryOutcome, bigint>();
  for (const { outcome, count } of groups) totals.set(outcome, (totals.get(outcome) ?? 0n) + count);
  return Object.values(Outcome).flatMap((outcome) => {
    const count = totals.get(outcome);
    return count === undefined ? [] : [{ outcome, count }];
  });
}

export function spanOf(groups: readonly OutcomeGroup[]): { readonly first: bigint; readonly last: bigint } | null {
  let span: { first: bigint; last: bigint } | null = null;
  for (const { firstPosition, lastPosition } of groups) {
    if (span === null) span = { first: firstPosition, last: lastPosition };
    if (firstPosition < span.first) span.first = firstPosition;
    if (lastPosition > span.last) span.last = lastPosition;
  }
  return span;
}
