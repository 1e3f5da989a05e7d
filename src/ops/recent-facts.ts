/**
 * A value that costs a query, for readers that come as often as they like: read again only when it has aged.
 *
 * A reader that finds it aged starts one read, which all wait for together; who has waited long enough gets what was
 * known before. After a read that took long the next one waits longer, so that counting a large ledger takes no more
 * than a twentieth of one connection's time.
 */
export interface FactsLimits {
  /** A value younger than this is not read again. */
  readonly minAgeMs: number;
  /** How long a reader waits for a read under way. */
  readonly waitMs: number;
}

export interface Recent<T> {
  readonly value: T;
  readonly ageMs: number;
}

const REST_FACTOR = 20;

export class RecentFacts<T> {
  private known: { readonly value: T; readonly atMs: number } | null = null;
  private reading: Promise<void> | null = null;
  private restUntilMs = 0;

  /** @param now milliseconds on a clock that never goes back */
  constructor(
    private readonly read: () => Promise<T>,
    private readonly limits: FactsLimits,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** null: never read, or the last read failed. Never rejects. */
  async get(): Promise<Recent<T> | null> {
    if (this.reading === null && this.now() >= this.restUntilMs) {
      this.reading = this.refresh().finally(() => (this.reading = null));
    }
    if (this.reading !== null) await this.patience(this.reading);
    return this.known === null ? null : { value: this.known.value, ageMs: this.now() - this.known.atMs };
  }

  private async refresh(): Promise<void> {
    const startedMs = this.now();
    try {
      const value = await this.read();
      this.known = { value, atMs: startedMs };
    } catch {
      // What was true before may not be any more. That the database is away is said by those who need it.
      this.known = null;
    }
    const tookMs = this.now() - startedMs;
    this.restUntilMs = startedMs + Math.max(this.limits.minAgeMs, tookMs * REST_FACTOR);
  }

  private async patience(reading: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.limits.waitMs);
    });
    await Promise.race([reading, enough]);
    clearTimeout(timer);
  }
}
