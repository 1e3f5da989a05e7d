/**
 * The wake-up port (design section 5, step 10, and section 8): tells that a feed's ledger has grown.
 *
 * Promises nothing: a wake-up may be lost, late, repeated or out of order. It only saves the wait for the next poll, so
 * errors are never the caller's business.
 */

/** `size`: entries in the feed's ledger, i.e. the position that comes next. */
export type WakeUpListener = (feed: string, size: number) => void;

export interface WakeUps {
  /** Calls the listeners of this process before it returns, and those of other processes soon, or never. */
  notify(feed: string, size: number): void;
  /** Answers what ends it; ending it twice does no harm. A listener that throws is ignored. */
  subscribe(listener: WakeUpListener): () => void;
  close(): Promise<void>;
}
