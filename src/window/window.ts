/**
 * The window port (design section 5, steps 1 and 8).
 *
 * Guarantees nothing: it is a hint. A position that it gives is checked against the ledger before it counts, and a
 * missing, wrong or late answer costs a look-up, never a decision. Errors are the implementation's to report (log,
 * metric); callers see null.
 */

/** What was last known of a feed's ledger. A head that is smaller, or disagrees, went back in time. */
export interface LedgerMemory {
  readonly term: number;
  /** Entries in the ledger, i.e. the next position. Positions are dense and stay far below 2^53. */
  readonly size: number;
  /** Leaf hash of entry `size - 1`, 64 lower-case hex digits; '' while the ledger is empty. */
  readonly lastLeaf: string;
}

export interface WindowHints {
  /** Positions of keys in `memory.term`; keys that the window does not know are absent. */
  readonly positions: ReadonlyMap<string, number>;
  /** null: the window knows nothing of this feed. */
  readonly memory: LedgerMemory | null;
}

export interface WindowUpdate {
  readonly memory: LedgerMemory;
  /** Database time of the batch, milliseconds since 1970; never decreasing within a feed. */
  readonly recordedAtMs: number;
  /** Window key → position of its entry. Keys are opaque ASCII, `<keyVersion>:<64 hex digits>`. */
  readonly positions: ReadonlyMap<string, number>;
  readonly windowSeconds: number;
  readonly maxEntries: number;
}

export interface Window {
  /** One call a batch. Resolves to null when the window cannot answer (in time). */
  lookup(feed: string, keys: readonly string[]): Promise<WindowHints | null>;
  /**
   * Remembers the keys of a committed batch and trims to the policy by time and by count.
   * An update of an older term, or of the same term with a smaller size, never lowers the memory;
   * an update of a newer term forgets every position of the older ones.
   * Resolves to false when the window could not take it.
   */
  record(feed: string, update: WindowUpdate): Promise<boolean>;
  close(): Promise<void>;
}
