import type { WakeUpListener } from './port';

/** The listeners of this process. */
export class Listeners {
  /** By a token of their own: the same function may subscribe twice. */
  private readonly byToken = new Map<symbol, WakeUpListener>();

  add(listener: WakeUpListener): () => void {
    const token = Symbol('listener');
    this.byToken.set(token, listener);
    return () => {
      this.byToken.delete(token);
    };
  }

  /** Those that are there now; one that is removed by another on the way is not called any more. */
  call(feed: string, size: number): void {
    for (const token of [...this.byToken.keys()]) {
      try {
        this.byToken.get(token)?.(feed, size);
      } catch {
        // A wake-up that fails costs its listener a poll; it must not cost the others theirs, or the batch its end.
      }
    }
  }

  clear(): void {
    this.byToken.clear();
  }
}
