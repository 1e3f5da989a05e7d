/**
 * Has the ledger gone back in time (design section 5, end)? Pure.
 *
 * A restored backup, or a standby that lost commits, uses positions a second time. Whoever remembers more than the head
 * knows, or another entry at the same place, is the witness; the ledger then goes on in a new term.
 */
import type { LedgerMemory } from '../window/window';

export interface TermCheck {
  readonly term: number;
  /** Why a new term was opened, as a JSON object for the administrative event; null where none was. */
  readonly opened: string | null;
}

/**
 * @param leafAt leaf hash of the last entry of a ledger of that size, for the sizes remembered; undefined beyond the head
 */
export function checkTerm(
  head: { readonly term: number; readonly size: number },
  memories: readonly LedgerMemory[],
  leafAt: (size: number) => string | undefined,
): TermCheck {
  for (const memory of memories) {
    // A memory of an older term is out of date, not a witness: the new term is on record already.
    if (memory.term < head.term || memory.size === 0) continue;
    const agrees = memory.term === head.term && memory.size <= head.size && leafAt(memory.size) === memory.lastLeaf;
    if (agrees) continue;
    const newest = Math.max(head.term, ...memories.map((m) => m.term));
    const found = { term: head.term, size: head.size };
    return { term: newest + 1, opened: JSON.stringify({ found, remembered: memory }) };
  }
  return { term: head.term, opened: null };
}
