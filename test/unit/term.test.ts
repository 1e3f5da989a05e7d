import { checkTerm } from '../../src/ledger/term';
import type { LedgerMemory } from '../../src/window/window';

const leaf = (size: number): string => size.toString(16).padStart(64, '0');
const remembered = (size: number, term = 1, lastLeaf = leaf(size)): LedgerMemory => ({ term, size, lastLeaf });

/** A ledger of `size` entries in `term`. */
function check(head: { term: number; size: number }, ...memories: LedgerMemory[]) {
  return checkTerm(head, memories, (size) => (size <= head.size ? leaf(size) : undefined));
}

describe('checkTerm (design section 5, end)', () => {
  it.each([
    ['nobody remembers anything', []],
    ['somebody remembers the very end', [remembered(10)]],
    ['somebody is behind', [remembered(3)]],
    ['an empty ledger is remembered', [{ term: 1, size: 0, lastLeaf: '' }]],
    ['a memory is of an older term, whatever it says', [remembered(99, 0), remembered(10, 0, leaf(7))]],
  ])('keeps the term where %s', (_, memories) => {
    expect(check({ term: 1, size: 10 }, ...memories)).toEqual({ term: 1, opened: null });
  });

  it.each([
    ['knows one entry more', [remembered(11)], 2],
    ['knows another entry at the end', [remembered(10, 1, leaf(9))], 2],
    ['knows another entry in the middle of what has grown since', [remembered(4, 1, leaf(5))], 2],
    ['knows a later term', [remembered(4, 7)], 8],
    ['disagrees, beside one that agrees', [remembered(10), remembered(10, 1, leaf(1))], 2],
    ['disagrees in this term, beside one that knows a later', [remembered(11), remembered(2, 5)], 6],
  ])('opens one above all that are known where somebody %s', (_, memories, term) => {
    const answer = check({ term: 1, size: 10 }, ...memories);
    expect(answer.term).toBe(term);
    expect(JSON.parse(answer.opened ?? 'null')).toMatchObject({ found: { term: 1, size: 10 }, remembered: {} });
  });

  it('says who disagreed', () => {
    const answer = check({ term: 2, size: 0 }, remembered(5, 2));
    expect(JSON.parse(answer.opened ?? 'null')).toEqual({ found: { term: 2, size: 0 }, remembered: remembered(5, 2) });
  });
});
