import type { RedisError } from './error';

/** What can fail on its own: a full Redis answers look-ups and refuses records. */
export type Part = 'connection' | 'lookup' | 'record';

/** Turns a stream of failures and successes into one report at the start of an outage and one at its end. */
export class Outage {
  private readonly failing = new Set<Part>();

  constructor(
    private readonly onProblem: (error: RedisError) => void,
    private readonly onRecovered: () => void,
  ) {}

  failed(part: Part, error: RedisError): void {
    const first = this.failing.size === 0;
    this.failing.add(part);
    if (first) {
      this.onProblem(error);
    }
  }

  worked(part: Part): void {
    if (this.failing.delete(part) && this.failing.size === 0) {
      this.onRecovered();
    }
  }
}
