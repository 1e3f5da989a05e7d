/**
 * Waiting between tries: exponential with full jitter, so that many instances do not come back in step.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export interface BackoffLimits {
  readonly minMs: number;
  readonly maxMs: number;
}

export class Backoff {
  private tries = 0;

  constructor(private readonly limits: BackoffLimits) {}

  /** Waits for the next try. Rejects at once when the signal aborts. */
  async wait(signal: AbortSignal): Promise<void> {
    const ceiling = Math.min(this.limits.maxMs, this.limits.minMs * 2 ** this.tries);
    this.tries += 1;
    await sleep(Math.random() * ceiling + 1, undefined, { signal });
  }
}
