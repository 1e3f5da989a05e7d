/** What every kind of token comes to: who bears it, or that nobody does. */
import type { Role } from './roles';

/** Whoever bears a valid token. */
export interface Bearer {
  /** As the audit trail names them. */
  readonly name: string;
  /** At least one; what any of them may is allowed. */
  readonly roles: readonly Role[];
  /** Only entries of these agencies can be seen; null: all. */
  readonly agencies: readonly string[] | null;
  /** Milliseconds since 1970 from which the token is refused; null: never. */
  readonly expiresAtMs: number | null;
}

/** That nobody is let in. */
export class Refusal {
  /**
   * @param kind `unavailable`: it cannot be told at the moment whether the token is valid, so it must not be called wrong
   * @param reason for the log, never for the bearer; nothing of the token is in it
   */
  constructor(
    readonly kind: 'refused' | 'unavailable',
    readonly reason: string,
  ) {}
}

/** The tokens of a service. */
export interface Tokens {
  /**
   * Never rejects.
   * @param authorization as in the HTTP header
   * @param cameAtMs when it came, on the clock of `performance.now()`: what is known of later than that is final. Default: now
   */
  authenticate(authorization: string | undefined, cameAtMs?: number): Promise<Bearer | Refusal>;
  /** Called when what `authenticate` answers may have changed. Answers what ends it. */
  onChange(listener: () => void): () => void;
}

/** When to come back where tokens are `unavailable`. */
export const UNAVAILABLE_RETRY_SECONDS = 5;

/** A longer one is refused before anything in it is looked at. */
export const MAX_BEARER_BYTES = 8_192;

const SCHEME = 'Bearer ';
/** RFC 6750, section 2.1. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** The token of an `Authorization` header. */
export function tokenOf(authorization: string | undefined): string | Refusal {
  if (authorization === undefined) return new Refusal('refused', 'no token');
  if (authorization.length > SCHEME.length + MAX_BEARER_BYTES) return new Refusal('refused', 'too long');
  const token = authorization.slice(SCHEME.length);
  const isBearer = authorization.slice(0, SCHEME.length).toLowerCase() === SCHEME.toLowerCase();
  return isBearer && TOKEN.test(token) ? token : new Refusal('refused', 'no bearer token');
}
