import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { LedgerMemory, Window, WindowUpdate } from '../../src/window/window';
import { onCleanup } from '../support/cleanup';
import { windows } from './windows';

/** A ledger as it grew, and the order in which its batches reached the window: some late, twice or never. */
interface Story {
  readonly windowSeconds: number;
  readonly maxEntries: number;
  readonly batches: readonly WindowUpdate[];
  readonly arrivals: readonly number[];
}

const KEYS = Array.from({ length: 12 }, (_, index) => `${(index % 3) + 1}:${index.toString(16).padStart(64, '0')}`);

const step = fc.record({
  /** A key for each entry, or null for one that has none. */
  entries: fc.array(fc.option(fc.constantFrom(...KEYS)), { minLength: 1, maxLength: 6 }),
  pauseMs: fc.constantFrom(0, 1, 500, 999, 1000, 1001, 2500),
  /** Postgres went back: the next term begins with fewer entries. */
  newTerm: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
});

const stories: fc.Arbitrary<Story> = fc
  .record({
    windowSeconds: fc.integer({ min: 1, max: 3 }),
    maxEntries: fc.integer({ min: 1, max: 12 }),
    steps: fc.array(step, { minLength: 1, maxLength: 14 }),
    shuffle: fc.array(fc.nat({ max: 13 }), { maxLength: 14 }),
    inOrder: fc.boolean(),
  })
  .map(({ windowSeconds, maxEntries, steps, shuffle, inOrder }) => {
    let [term, size, nowMs] = [1, 0, 1_700_000_000_000];
    const batches = steps.map(({ entries, pauseMs, newTerm }, index): WindowUpdate => {
      nowMs += pauseMs;
      if (newTerm) {
        [term, size] = [term + 1, Math.floor(size / 2)];
      }
      const positions = new Map<string, number>();
      for (const key of entries) {
        if (key !== null) {
          positions.set(key, size);
        }
        size += 1;
      }
      const memory = { term, size, lastLeaf: index.toString(16).padStart(64, '0') };
      return { memory, recordedAtMs: nowMs, positions, windowSeconds, maxEntries };
    });
    const all = batches.map((_, index) => index);
    const arrivals = inOrder ? all : [...shuffle.map((index) => index % batches.length), ...all.slice(-2).reverse()];
    return { windowSeconds, maxEntries, batches, arrivals };
  });

/** What a window may and must know, said as plainly as possible: it keeps every batch of the newest term it saw. */
class Model {
  private arrived: WindowUpdate[] = [];

  record(update: WindowUpdate): void {
    const newest = this.arrived[0]?.memory.term ?? 0;
    if (update.memory.term > newest) {
      this.arrived = [];
    }
    if (update.memory.term >= newest) {
      this.arrived.push(update);
    }
  }

  get memory(): LedgerMemory | null {
    return this.arrived.reduce<LedgerMemory | null>(
      (known, { memory }) => (known === null || memory.size > known.size ? memory : known),
      null,
    );
  }

  /** Positions that were recorded for a key. */
  allowed(key: string): number[] {
    return this.arrived.flatMap(({ positions }) => positions.get(key) ?? []);
  }

  /** Its last position, if the next entry would find that inside the policy's bounds, both inclusive. */
  required(key: string): number | null {
    const size = this.memory?.size ?? 0;
    const nowMs = Math.max(...this.arrived.map(({ recordedAtMs }) => recordedAtMs));
    const inside = this.arrived.flatMap(({ positions, recordedAtMs, windowSeconds, maxEntries }) => {
      const position = positions.get(key);
      const isInside =
        position !== undefined && size - position <= maxEntries && nowMs - recordedAtMs <= windowSeconds * 1000;
      return isInside ? [position] : [];
    });
    return inside.length === 0 ? null : Math.max(...inside);
  }
}

async function holds(window: Window, story: Story, inOrder: boolean): Promise<void> {
  const feed = randomUUID();
  const model = new Model();
  for (const arrival of story.arrivals) {
    const update = story.batches[arrival];
    if (update === undefined) {
      throw new Error(`no batch ${arrival}`);
    }
    expect(await window.record(feed, update)).toBe(true);
    model.record(update);
    const hints = await window.lookup(feed, KEYS);
    expect(hints?.memory).toEqual(model.memory);
    for (const key of KEYS) {
      const found = hints?.positions.get(key) ?? null;
      const required = model.required(key);
      if (required !== null) {
        expect(found).toBe(required);
      } else if (found !== null) {
        // Outside the bounds nothing has to be forgotten, unless everything came in order; but nothing is made up.
        expect(inOrder).toBe(false);
        expect(model.allowed(key)).toContain(found);
      }
    }
  }
}

describe.each(windows)('a window %s agrees with the model', (_name, create) => {
  let window: Window;

  beforeAll(async () => {
    window = await create();
    onCleanup(() => window.close());
  });

  test('when batches come in order, late, twice or never', async () => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const inOrder = story.arrivals.every((arrival, index) => arrival === index);
        await holds(window, story, inOrder);
      }),
      { numRuns: 300 },
    );
  });
});
