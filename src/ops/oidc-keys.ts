/**
 * The public keys of an OpenID provider, kept up to date beside the work: nothing waits for the provider but a token that
 * comes before the first answer, or names a key that is not known yet.
 *
 * States: none (nothing has been fetched yet, or it is too old: tokens cannot be checked) → fresh → (stale, while the
 * provider does not answer and its keys stay in force → fresh, or none in the end)* → closed.
 */
import { fetchKeySet, OidcFetchError } from './oidc-fetch';
import { readKeySet } from './oidc-key-set';
import type { KeySet } from './oidc-key-set';
import type { Logger } from './port';

/** Another object after each fetch. */
export interface Keys {
  readonly set: KeySet;
  /** When the provider was asked for them, on the clock of `performance.now()`: they say nothing of later. */
  readonly askedAtMs: number;
}

export interface OidcTiming {
  /** Between two fetches: a key that was withdrawn is refused after this time at the latest. */
  readonly refreshMs: number;
  /** After one that failed. */
  readonly retryMs: number;
  /** How long the provider may take. */
  readonly timeoutMs: number;
  /** Between two fetches because of an unknown key: anybody can name one. */
  readonly cooldownMs: number;
  /** How long keys stay in force that cannot be fetched again. */
  readonly maxAgeMs: number;
}

export const OIDC_TIMING: OidcTiming = {
  refreshMs: 300_000,
  retryMs: 5_000,
  timeoutMs: 5_000,
  cooldownMs: 30_000,
  maxAgeMs: 3_600_000,
};

export class OidcKeys {
  private keys: Keys | null = null;
  private failing = false;
  private demandedAtMs = Number.NEGATIVE_INFINITY;
  private pending: Promise<void> | null = null;
  private refreshTimer: NodeJS.Timeout | undefined;
  private ageTimer: NodeJS.Timeout | undefined;
  private loading: AbortController | null = null;
  private closed = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly issuer: string,
    private readonly log: Logger,
    private readonly timing: OidcTiming,
  ) {
    void this.refresh();
  }

  get state(): 'none' | 'fresh' | 'stale' {
    if (this.keys === null) return 'none';
    return this.failing ? 'stale' : 'fresh';
  }

  /** null: there are none, so that no token can be checked. Never rejects. */
  async current(): Promise<Keys | null> {
    if (this.keys === null) await this.pending;
    return this.keys;
  }

  /**
   * What comes after these, for a token whose key is not among them: of the fetch that is under way, or of one for it,
   * unless that was done a short time ago. The same again: nothing newer can be had at the moment. Never rejects.
   */
  async after(keys: Keys): Promise<Keys | null> {
    if (this.keys === keys) await (this.pending ?? this.demand());
    return this.keys;
  }

  /** Called when other keys are in force, or none any more. Answers what ends it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.refreshTimer);
    clearTimeout(this.ageTimer);
    this.loading?.abort();
    this.listeners.clear();
  }

  private async demand(): Promise<void> {
    const now = performance.now();
    if (now - this.demandedAtMs < this.timing.cooldownMs) return;
    this.demandedAtMs = now;
    await this.refresh();
  }

  /** One at a time. Never rejects. */
  private refresh(): Promise<void> {
    return (this.pending ??= this.load().finally(() => {
      this.pending = null;
      if (this.closed) return;
      clearTimeout(this.refreshTimer);
      const pauseMs = this.failing ? this.timing.retryMs : this.timing.refreshMs;
      this.refreshTimer = setTimeout(() => void this.refresh(), pauseMs).unref();
    }));
  }

  private async load(): Promise<void> {
    const { timeoutMs } = this.timing;
    const loading = new AbortController();
    this.loading = loading;
    const timer = setTimeout(
      () => loading.abort(new OidcFetchError(`the provider did not answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const askedAtMs = performance.now();
    try {
      const set = await readKeySet(await fetchKeySet(this.issuer, loading.signal));
      if (!this.closed) this.accept({ set, askedAtMs });
    } catch (error) {
      if (!this.closed) this.fail(error);
    } finally {
      clearTimeout(timer);
    }
  }

  private accept(keys: Keys): void {
    const { text, keys: count, usable } = keys.set;
    const isNew = this.keys?.set.text !== text;
    this.keys = keys;
    if (isNew || this.failing) {
      this.log.info({ issuer: this.issuer, keys: count, usable }, 'keys of the OpenID provider read');
    }
    this.failing = false;
    clearTimeout(this.ageTimer);
    this.ageTimer = setTimeout(() => this.expire(), this.timing.maxAgeMs).unref();
    if (isNew) this.tell();
  }

  private fail(error: unknown): void {
    const message =
      this.keys === null
        ? 'no keys of the OpenID provider yet: its tokens cannot be checked'
        : 'the keys of the OpenID provider cannot be read; those of before stay';
    this.log[this.failing ? 'debug' : 'warn']({ issuer: this.issuer, err: error }, message);
    this.failing = true;
  }

  private expire(): void {
    this.keys = null;
    this.log.error({ issuer: this.issuer }, 'keys of the OpenID provider are too old: its tokens cannot be checked');
    this.tell();
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
