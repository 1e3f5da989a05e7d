import type { Window, WindowUpdate } from '../../src/window/window';
import { onCleanup } from '../support/cleanup';
import { windows } from './windows';

const T0 = 1_700_000_000_000;
const LEAF = 'ab'.repeat(32);

/** A window key as the pipeline makes them. */
function key(number: number, version = 1): string {
  return `${version}:${number.toString(16).padStart(64, '0')}`;
}

interface Batch {
  readonly from: number;
  readonly size: number;
  readonly atMs?: number;
  readonly term?: number;
  readonly windowSeconds?: number;
  readonly maxEntries?: number;
  readonly lastLeaf?: string;
}

/** Entries `from … size - 1`; the entry at position p has key p. */
function batch(options: Batch): WindowUpdate {
  const { from, size, atMs = T0, term = 1, windowSeconds = 600, maxEntries = 100_000, lastLeaf = LEAF } = options;
  const positions = new Map<string, number>();
  for (let position = from; position < size; position += 1) {
    positions.set(key(position), position);
  }
  return { memory: { term, size, lastLeaf }, recordedAtMs: atMs, positions, windowSeconds, maxEntries };
}

describe.each(windows)('a window %s', (_name, create) => {
  let window: Window;

  beforeAll(async () => {
    window = await create();
    onCleanup(() => window.close());
  });

  let feedNumber = 0;
  let feed: string;

  beforeEach(() => {
    feedNumber += 1;
    feed = `feed-${feedNumber}`;
  });

  /** The numbers of the keys below `limit` that the window knows, each at its own position. */
  async function known(limit: number, name = feed): Promise<number[]> {
    const numbers = Array.from({ length: limit }, (_, number) => number);
    const hints = await window.lookup(
      name,
      numbers.map((number) => key(number)),
    );
    if (hints === null) {
      throw new Error('the window did not answer');
    }
    for (const [found, position] of hints.positions) {
      expect(found).toBe(key(position));
    }
    return numbers.filter((number) => hints.positions.has(key(number)));
  }

  async function memory(name = feed): Promise<unknown> {
    return (await window.lookup(name, []))?.memory;
  }

  test('knows nothing of a feed that was never recorded', async () => {
    expect(await window.lookup(feed, [key(1), key(2)])).toEqual({ positions: new Map(), memory: null });
    expect(await window.lookup(feed, [])).toEqual({ positions: new Map(), memory: null });
  });

  test('gives back what was recorded, and nothing for other keys', async () => {
    expect(await window.record(feed, batch({ from: 0, size: 3 }))).toBe(true);
    expect(await window.lookup(feed, [key(2), key(7), key(0), key(0)])).toEqual({
      positions: new Map([
        [key(2), 2],
        [key(0), 0],
      ]),
      memory: { term: 1, size: 3, lastLeaf: LEAF },
    });
  });

  test('takes a batch without keys as news of the head', async () => {
    await window.record(feed, batch({ from: 0, size: 2 }));
    await window.record(feed, batch({ from: 9, size: 9, lastLeaf: 'cd'.repeat(32) }));
    expect(await memory()).toEqual({ term: 1, size: 9, lastLeaf: 'cd'.repeat(32) });
    expect(await known(9)).toEqual([0, 1]);
  });

  test('remembers an empty ledger', async () => {
    await window.record(feed, batch({ from: 0, size: 0, lastLeaf: '' }));
    expect(await memory()).toEqual({ term: 1, size: 0, lastLeaf: '' });
  });

  test('by count: keeps the last maxEntries positions, and not one more', async () => {
    await window.record(feed, batch({ from: 0, size: 5, maxEntries: 4 }));
    expect(await known(5)).toEqual([1, 2, 3, 4]);
    await window.record(feed, batch({ from: 5, size: 6, maxEntries: 4 }));
    expect(await known(6)).toEqual([2, 3, 4, 5]);
    // The next entry is at position 6: the difference to position 2 is 4, inclusive, to position 1 it is 5.
  });

  test('by count: entries without a key count as well', async () => {
    await window.record(feed, batch({ from: 0, size: 3, maxEntries: 4 }));
    await window.record(feed, batch({ from: 6, size: 6, maxEntries: 4 }));
    expect(await known(6)).toEqual([2]);
  });

  test('by time: keeps what is exactly windowSeconds old, and drops what is older', async () => {
    await window.record(feed, batch({ from: 0, size: 2, atMs: T0, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 2, size: 4, atMs: T0 + 1, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 4, size: 5, atMs: T0 + 10_000, windowSeconds: 10 }));
    expect(await known(5)).toEqual([0, 1, 2, 3, 4]);
    await window.record(feed, batch({ from: 5, size: 6, atMs: T0 + 10_001, windowSeconds: 10 }));
    expect(await known(6)).toEqual([2, 3, 4, 5]);
    await window.record(feed, batch({ from: 6, size: 7, atMs: T0 + 10_002, windowSeconds: 10 }));
    expect(await known(7)).toEqual([4, 5, 6]);
  });

  test('by time: borders hold for fractions of a millisecond', async () => {
    await window.record(feed, batch({ from: 0, size: 1, atMs: T0 + 0.25, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 1, size: 2, atMs: T0 + 10_000.25, windowSeconds: 10 }));
    expect(await known(2)).toEqual([0, 1]);
    await window.record(feed, batch({ from: 2, size: 3, atMs: T0 + 10_000.5, windowSeconds: 10 }));
    expect(await known(3)).toEqual([1, 2]);
  });

  test('by time: batches of one time leave together, whatever the number of digits of their positions', async () => {
    await window.record(feed, batch({ from: 0, size: 9, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 9, size: 11, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 11, size: 12, atMs: T0 + 20_000, windowSeconds: 10 }));
    expect(await known(12)).toEqual([11]);
  });

  test('a policy that shrinks trims with the next batch', async () => {
    await window.record(feed, batch({ from: 0, size: 10 }));
    await window.record(feed, batch({ from: 10, size: 11, maxEntries: 2 }));
    expect(await known(11)).toEqual([9, 10]);
  });

  test('a batch larger than the window keeps its end', async () => {
    await window.record(feed, batch({ from: 0, size: 1000, maxEntries: 10 }));
    expect(await known(1000)).toEqual([990, 991, 992, 993, 994, 995, 996, 997, 998, 999]);
  });

  test('the same batch twice changes nothing', async () => {
    const update = batch({ from: 0, size: 4, maxEntries: 3 });
    await window.record(feed, update);
    const before = await window.lookup(feed, [...update.positions.keys()]);
    expect(await window.record(feed, update)).toBe(true);
    expect(await window.lookup(feed, [...update.positions.keys()])).toEqual(before);
  });

  test('a newer term forgets every position of the older one', async () => {
    await window.record(feed, batch({ from: 0, size: 9, term: 3 }));
    await window.record(feed, batch({ from: 2, size: 4, term: 4, lastLeaf: 'cd'.repeat(32) }));
    expect(await memory()).toEqual({ term: 4, size: 4, lastLeaf: 'cd'.repeat(32) });
    expect(await known(9)).toEqual([2, 3]);
  });

  test('a newer term does not inherit the times of the older one', async () => {
    await window.record(feed, batch({ from: 0, size: 9, atMs: T0, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 2, size: 4, atMs: T0 + 9000, term: 2, windowSeconds: 10 }));
    await window.record(feed, batch({ from: 4, size: 5, atMs: T0 + 12_000, term: 2, windowSeconds: 10 }));
    expect(await known(9)).toEqual([2, 3, 4]);
  });

  test('an older term is left alone, and changes nothing', async () => {
    await window.record(feed, batch({ from: 0, size: 2, term: 10 }));
    expect(await window.record(feed, batch({ from: 0, size: 50, term: 9, maxEntries: 1 }))).toBe(true);
    expect(await memory()).toEqual({ term: 10, size: 2, lastLeaf: LEAF });
    expect(await known(50)).toEqual([0, 1]);
  });

  test('C067: a smaller size of the same term never lowers the memory', async () => {
    await window.record(feed, batch({ from: 92, size: 93, lastLeaf: 'cd'.repeat(32) }));
    await window.record(feed, batch({ from: 81, size: 82 }));
    expect(await memory()).toEqual({ term: 1, size: 93, lastLeaf: 'cd'.repeat(32) });
    expect(await known(100)).toEqual([81, 92]);
  });

  test('a late batch is trimmed by the head that is known, not by its own', async () => {
    await window.record(feed, batch({ from: 90, size: 100, maxEntries: 20 }));
    await window.record(feed, batch({ from: 75, size: 85, maxEntries: 20 }));
    expect(await known(100)).toEqual([80, 81, 82, 83, 84, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  });

  test('the first leaf of a size stays, so that a disagreement can be seen', async () => {
    await window.record(feed, batch({ from: 0, size: 5 }));
    await window.record(feed, batch({ from: 0, size: 5, lastLeaf: 'cd'.repeat(32) }));
    expect(await memory()).toEqual({ term: 1, size: 5, lastLeaf: LEAF });
  });

  test.each([
    ['in order', [3, 8]],
    ['late', [8, 3]],
  ])('of a key with two entries the later one is kept, whichever comes first (%s)', async (_case, order) => {
    for (const position of order) {
      const update = batch({ from: 9, size: 9, maxEntries: 5 });
      await window.record(feed, { ...update, positions: new Map([[key(1), position]]) });
    }
    expect((await window.lookup(feed, [key(1)]))?.positions).toEqual(new Map([[key(1), 8]]));
  });

  test('20 000 keys in one batch', async () => {
    await window.record(feed, batch({ from: 0, size: 20_000 }));
    const all = await known(20_001);
    expect(all).toHaveLength(20_000);
    expect(all.at(-1)).toBe(19_999);
    await window.record(feed, batch({ from: 20_000, size: 40_000, maxEntries: 20_000 }));
    expect(await known(20_001)).toEqual([20_000]);
  });

  test('positions beyond 2^32 are exact', async () => {
    const position = 123_456_789_012_345;
    const update = batch({ from: 0, size: 0 });
    const positions = new Map([[key(1), position]]);
    await window.record(feed, { ...update, memory: { term: 7, size: position + 1, lastLeaf: LEAF }, positions });
    expect(await window.lookup(feed, [key(1)])).toEqual({
      positions,
      memory: { term: 7, size: position + 1, lastLeaf: LEAF },
    });
  });

  test('feeds do not mix', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `${feed}-${index}`);
    await Promise.all(names.map((name, index) => window.record(name, batch({ from: index, size: index + 1 }))));
    for (const [index, name] of names.entries()) {
      expect(await known(50, name)).toEqual([index]);
      expect(await memory(name)).toEqual({ term: 1, size: index + 1, lastLeaf: LEAF });
    }
  });

  test('C069: names of feeds with braces, separators and prototypes stay apart', async () => {
    const names = [
      '',
      '{x}',
      'a}b{',
      '{}',
      '{x}:keys',
      '{x}:memory',
      '__proto__',
      'constructor',
      'x\0y',
      'x',
      'é',
      'e\u0301',
    ];
    for (const [index, name] of names.entries()) {
      await window.record(name, batch({ from: index, size: index + 1 }));
    }
    for (const [index, name] of names.entries()) {
      expect(await known(names.length, name)).toEqual([index]);
    }
  });

  test('keys of any form are told apart', async () => {
    const digest = 'a1'.repeat(32);
    const keys = [
      ...[`1:${digest}`, `2:${digest}`, `256:${digest}`, `65536:${digest}`, `0:${digest}`, `01:${digest}`],
      ...[`1:${digest.toUpperCase()}`, `1:${digest.slice(1)}`, `1:${digest}0`, ` 1:${digest}`, `1:${digest}\n`],
      ...[
        `9999999999:${digest}`,
        `-1:${digest}`,
        digest,
        '',
        ':',
        '__proto__',
        '\0',
        '\u00e9',
        '\ud800',
        '\ud801',
        '\ufffd',
      ],
    ];
    const positions = new Map(keys.map((each, index) => [each, index]));
    await window.record(feed, {
      ...batch({ from: 0, size: 0 }),
      memory: { term: 1, size: 99, lastLeaf: LEAF },
      positions,
    });
    expect((await window.lookup(feed, keys))?.positions).toEqual(positions);
  });

  test('concurrent batches of one feed end with the largest', async () => {
    const sizes = Array.from({ length: 100 }, (_, index) => index + 1);
    await Promise.all(sizes.map((size) => window.record(feed, batch({ from: size - 1, size, maxEntries: 10 }))));
    expect(await memory()).toEqual({ term: 1, size: 100, lastLeaf: LEAF });
    expect(await known(100)).toEqual([90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  });
});
