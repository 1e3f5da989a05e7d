import { MinHeap } from './min-heap';
import type { LedgerMemory, Window, WindowHints, WindowUpdate } from './window';

/** The window of one feed in one term. */
interface FeedWindow {
  memory: LedgerMemory;
  readonly positions: Map<string, number>;
  /** Every key once for each position it ever had, by position; a pair that was overtaken is skipped when it is due. */
  readonly byPosition: MinHeap<string>;
  /** Last positions of batches, by their time. */
  readonly marks: MinHeap<number>;
}

/**
 * The window in this process, for one that runs alone. Its memory is bounded by `maxEntries` a feed, and a call costs
 * O(keys of the batch × log of the window), amortised. It forgets everything when the process ends.
 */
export function createLocalWindow(): Window {
  const feeds = new Map<string, FeedWindow>();
  return {
    lookup: (feed, keys) => Promise.resolve(lookup(feeds.get(feed), keys)),
    record(feed, update) {
      const known = feeds.get(feed);
      if (known === undefined || known.memory.term <= update.memory.term) {
        const window = known?.memory.term === update.memory.term ? known : empty(update.memory);
        feeds.set(feed, window);
        remember(window, update);
        trim(window, update);
      }
      return Promise.resolve(true);
    },
    close() {
      feeds.clear();
      return Promise.resolve();
    },
  };
}

function empty(memory: LedgerMemory): FeedWindow {
  return { memory, positions: new Map(), byPosition: new MinHeap(), marks: new MinHeap() };
}

function lookup(window: FeedWindow | undefined, keys: readonly string[]): WindowHints {
  const positions = new Map<string, number>();
  for (const key of keys) {
    const position = window?.positions.get(key);
    if (position !== undefined) {
      positions.set(key, position);
    }
  }
  return { positions, memory: window?.memory ?? null };
}

function remember(window: FeedWindow, update: WindowUpdate): void {
  if (update.memory.size > window.memory.size) {
    window.memory = update.memory;
  }
  for (const [key, position] of update.positions) {
    // Of a key with two entries the later one is kept, in whichever order the batches arrive.
    if (position > (window.positions.get(key) ?? -1)) {
      window.positions.set(key, position);
      window.byPosition.push(position, key);
    }
  }
  window.marks.push(update.recordedAtMs, update.memory.size - 1);
}

function trim(window: FeedWindow, update: WindowUpdate): void {
  // Both bounds are inclusive (design section 3): the next position is `size`, the next time is this one at the earliest.
  let firstKept = window.memory.size - update.maxEntries;
  const cutoffMs = update.recordedAtMs - update.windowSeconds * 1000;
  for (const lastOfBatch of window.marks.popBelow(cutoffMs)) {
    firstKept = Math.max(firstKept, lastOfBatch + 1);
  }
  // Each batch has a position of its own, so that more marks than this are of positions gone by count.
  while (window.marks.length > update.maxEntries + 1) {
    window.marks.pop();
  }
  for (const key of window.byPosition.popBelow(firstKept)) {
    const position = window.positions.get(key);
    if (position !== undefined && position < firstKept) {
      window.positions.delete(key);
    }
  }
}
