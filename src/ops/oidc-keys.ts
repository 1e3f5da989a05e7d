/**
 * The public keys of an OpenID provider, kept up to date beside the work: nothing waits for the provider but a token that
 * comes before the first answer, or names a key that is not known yet.
 *
 * States: none (nothing has been fetched yet, or it is too old: tokens cannot be checked) → fresh → (stale, while the
 * provider does not answer and its keys stay in force → fresh, or none in the end)* → closed.
 */
import type * as jose from 'jose' with { 'resolution-mode': 'import' };
import { fetchKeySet, OidcFetchError } from './oidc-fetch';
import type { Logger } from './port';

/** Finds the key that a token names. Another object after each fetch. */
export type KeySet = ReturnType<typeof jose.createLocalJWKSet>;

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

interface Fetched {
  readonly set: KeySet;
  /** To be compared with. */
  readonly text: string;
  /** On the clock that nobody sets. */
  readonly atMs: number;
}

export class OidcKeys {
  private fetched: Fetched | null = null;
  private failing = false;
  private demandedAtMs = Number.NEGATIVE_INFINITY;
  private pending: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;
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
    if (this.inForce === null) return 'none';
    return this.failing ? 'stale' : 'fresh';
  }

  /** null: there are none, so that no token can be checked. Never rejects. */
  async current(): Promise<KeySet | null> {
    if (this.inForce === null) await this.pending;
    return this.inForce;
  }

  /** For a token with a key that is not among the current ones: fetched again, unless that was done a short time ago. */
  async renewed(): Promise<KeySet | null> {
    const now = performance.now();
    if (this.pending !== null) {
      await this.pending;
    } else if (now - this.demandedAtMs >= this.timing.cooldownMs) {
      this.demandedAtMs = now;
      await this.refresh();
    }
    return this.inForce;
  }

  /** Called when other keys are in force, or none any more. Answers what ends it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.loading?.abort();
    this.listeners.clear();
  }

  private get inForce(): KeySet | null {
    const { fetched } = this;
    return fetched === null || performance.now() - fetched.atMs >= this.timing.maxAgeMs ? null : fetched.set;
  }

  /** One at a time. Never rejects. */
  private refresh(): Promise<void> {
    return (this.pending ??= this.load().finally(() => {
      this.pending = null;
      if (this.closed) return;
      clearTimeout(this.timer);
      const pauseMs = this.failing ? this.timing.retryMs : this.timing.refreshMs;
      this.timer = setTimeout(() => void this.refresh(), pauseMs).unref();
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
    try {
      // The library is an ES module, hence the dynamic import.
      const { createLocalJWKSet } = await import('jose');
      const document = await fetchKeySet(this.issuer, loading.signal);
      const set = createLocalJWKSet(document as unknown as jose.JSONWebKeySet);
      if (!this.closed) this.accept({ set, text: JSON.stringify(set.jwks()), atMs: performance.now() });
    } catch (error) {
      if (!this.closed) this.fail(error);
    } finally {
      clearTimeout(timer);
    }
  }

  private accept(fetched: Fetched): void {
    const before = this.fetched;
    const isNew = before?.text !== fetched.text;
    this.fetched = fetched;
    if (isNew || this.failing) this.log.info({ issuer: this.issuer }, 'keys of the OpenID provider read');
    this.failing = false;
    if (before !== null && isNew) this.tell();
  }

  private fail(error: unknown): void {
    const facts = { issuer: this.issuer, err: error };
    const isKnown = this.failing;
    this.failing = true;
    if (this.fetched !== null && this.inForce === null) {
      this.fetched = null;
      this.log.error(facts, 'keys of the OpenID provider are too old: its tokens cannot be checked');
      this.tell();
    } else if (this.fetched === null) {
      this.log[isKnown ? 'debug' : 'warn'](facts, 'no keys of the OpenID provider yet: its tokens cannot be checked');
    } else {
      this.log[isKnown ? 'debug' : 'warn'](
        facts,
        'the keys of the OpenID provider cannot be read; those of before stay',
      );
    }
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
