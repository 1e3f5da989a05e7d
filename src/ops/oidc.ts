/**
 * Access tokens of an OpenID provider: RFC 9068, section 4, by the library `jose`. Without the provider: a token is checked
 * by the keys that oidc-keys.ts keeps.
 */
import type * as jose from 'jose' with { 'resolution-mode': 'import' };
import { Refusal } from './bearer';
import type { Bearer } from './bearer';
import { readRights } from './oidc-claims';
import type { Claims, Rights } from './oidc-claims';
import { ALGORITHMS } from './oidc-key-set';
import type { KeySet } from './oidc-key-set';
import { OIDC_TIMING, OidcKeys } from './oidc-keys';
import type { OidcTiming } from './oidc-keys';
import type { OidcSettings } from './oidc-settings';
import type { Logger } from './port';

/** Why a token is refused: for the log, never for its bearer. */
export type OidcFault =
  | 'malformed'
  | 'wrong type'
  | 'wrong algorithm'
  | 'not supported'
  | 'wrong signature'
  | 'unknown key'
  | 'unusable key'
  | 'wrong issuer'
  | 'wrong audience'
  | 'expired'
  | 'not yet valid'
  | 'bad claim'
  | 'bound to a key of its bearer'
  | Exclude<ReturnType<typeof readRights>, Rights>;

/** For `nbf` and `iat`, of clocks that differ. There is none for `exp`: it is when a socket is closed, too. */
export const CLOCK_TOLERANCE_SECONDS = 5;

const FAULT_OF_CODE: Readonly<Record<string, OidcFault>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'wrong algorithm',
  ERR_JOSE_NOT_SUPPORTED: 'not supported',
  ERR_JWKS_NO_MATCHING_KEY: 'unknown key',
  ERR_JWS_INVALID: 'malformed',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'wrong signature',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'bad claim',
  ERR_JWT_EXPIRED: 'expired',
  ERR_JWT_INVALID: 'malformed',
};

const FAULT_OF_CLAIM: Readonly<Record<string, OidcFault>> = {
  iss: 'wrong issuer',
  aud: 'wrong audience',
  typ: 'wrong type',
  nbf: 'not yet valid',
};

export class OidcTokens {
  private readonly keys: OidcKeys;

  /** Begins to fetch the keys, and waits for nothing. */
  constructor(
    private readonly settings: OidcSettings,
    log: Logger,
    timing: Partial<OidcTiming> = {},
  ) {
    this.keys = new OidcKeys(settings.issuer, log, { ...OIDC_TIMING, ...timing });
  }

  /** Of the keys. `none`: no token can be checked; `stale`: the provider does not answer. */
  get state(): 'none' | 'fresh' | 'stale' {
    return this.keys.state;
  }

  /**
   * Never rejects.
   * @param token in the compact form of JWS
   * @param cameAtMs on the clock of `performance.now()`
   */
  async authenticate(token: string, cameAtMs: number): Promise<Bearer | Refusal> {
    let keys = await this.keys.current();
    for (;;) {
      if (keys === null) return new Refusal('unavailable', 'no keys');
      const verdict = await this.judge(token, keys.set);
      if (typeof verdict !== 'string') return verdict;
      // It is unknown to the provider itself only if that was asked after the token came. Before, it may be a new key.
      if (verdict !== 'unknown key' || keys.askedAtMs >= cameAtMs) return new Refusal('refused', verdict);
      const newer = await this.keys.after(keys);
      if (newer === keys) return new Refusal('unavailable', verdict);
      keys = newer;
    }
  }

  /** Called when other keys are in force, or none any more. Answers what ends it. */
  onChange(listener: () => void): () => void {
    return this.keys.onChange(listener);
  }

  close(): void {
    this.keys.close();
  }

  private async judge(token: string, keys: KeySet): Promise<Bearer | OidcFault> {
    try {
      const { payload, protectedHeader } = await this.verify(token, keys);
      return judgeClaims(payload, protectedHeader.typ, this.settings);
    } catch (error) {
      return faultOf(error);
    }
  }

  /** Signature, algorithm, and the claims that the library knows. @throws errors of the library */
  private async verify(token: string, keys: KeySet): Promise<jose.JWTVerifyResult> {
    const { jwtVerify, errors } = await import('jose');
    const { issuer, audience, tokenType } = this.settings;
    const options: jose.JWTVerifyOptions = {
      issuer,
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      ...(tokenType === 'at+jwt' ? { typ: tokenType } : {}),
    };
    try {
      return await jwtVerify(token, keys.find, options);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // It names no key, and several fit, as during a rotation at a provider that does not name them.
      let failure: unknown = new errors.JWKSInvalid('none of the keys that fit can be used');
      for await (const key of error) {
        try {
          return await jwtVerify(token, key, options);
        } catch (reason) {
          const fault = faultOf(reason);
          // A broken key says nothing of the token, so the next may do; all else but the signature is wrong for any key.
          if (fault === 'unusable key') continue;
          if (fault !== 'wrong signature') throw reason;
          failure = reason;
        }
      }
      throw failure;
    }
  }
}

/** What remains of a token whose signature, issuer and audience are right. */
function judgeClaims(claims: Claims, typ: string | undefined, settings: OidcSettings): Bearer | OidcFault {
  const { exp, iat, sub } = claims;
  const nowMs = Date.now();
  if (typeof exp !== 'number' || !Number.isFinite(exp) || typeof sub !== 'string' || sub === '') return 'bad claim';
  const expiresAtMs = Math.floor(exp * 1000);
  if (expiresAtMs <= nowMs) return 'expired';
  if (typeof iat === 'number' && iat > nowMs / 1000 + CLOCK_TOLERANCE_SECONDS) return 'not yet valid';
  if (settings.tokenType === 'JWT' && !isPlainAccessToken(claims, typ)) return 'wrong type';
  // RFC 7800: whoever took such a token from its bearer does not have the key, and a bearer need not show it here.
  if (claims.cnf !== undefined) return 'bound to a key of its bearer';
  const rights = readRights(claims, settings);
  return typeof rights === 'string' ? rights : { ...rights, expiresAtMs };
}

/** OpenID Connect Core 1.0, section 3.1.3.6: these hashes are of ID tokens, which tell a client who somebody is. */
function isPlainAccessToken(claims: Claims, typ: string | undefined): boolean {
  if (typ !== undefined && !/^(?:application\/)?jwt$/i.test(typ)) return false;
  return claims.at_hash === undefined && claims.c_hash === undefined;
}

/** What has no code of the library for tokens is about the key that was to check it. */
function faultOf(error: unknown): OidcFault {
  const { code, claim, reason } = error as {
    readonly code?: unknown;
    readonly claim?: unknown;
    readonly reason?: unknown;
  };
  // `invalid`: a value of another kind than such a claim has.
  if (typeof claim === 'string' && reason !== 'invalid' && Object.hasOwn(FAULT_OF_CLAIM, claim)) {
    return FAULT_OF_CLAIM[claim] ?? 'bad claim';
  }
  return (typeof code === 'string' ? FAULT_OF_CODE[code] : undefined) ?? 'unusable key';
}
