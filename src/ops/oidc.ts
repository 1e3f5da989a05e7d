/**
 * Access tokens of an OpenID provider: RFC 9068, section 4, by the library `jose`. Without the provider: a token is checked
 * by the keys that oidc-keys.ts keeps.
 */
import type * as jose from 'jose' with { 'resolution-mode': 'import' };
import type { Bearer, Refusal } from './bearer';
import { readRights } from './oidc-claims';
import type { ClaimRules, Claims, Rights } from './oidc-claims';
import { OIDC_TIMING, OidcKeys } from './oidc-keys';
import type { KeySet, OidcTiming } from './oidc-keys';
import type { Logger } from './port';

export interface OidcSettings extends ClaimRules {
  /** As the provider names itself: compared character by character. */
  readonly issuer: string;
  readonly audience: string;
  /** What the `typ` of the header has to be. `JWT`: or nothing, for providers that do not follow RFC 9068. */
  readonly tokenType: 'at+jwt' | 'JWT';
}

/** Why a token is refused: for the log, never for its bearer. */
export type OidcFault =
  | 'malformed'
  | 'wrong type'
  | 'wrong algorithm'
  | 'not supported'
  | 'wrong signature'
  | 'unknown key'
  | 'wrong issuer'
  | 'wrong audience'
  | 'expired'
  | 'not yet valid'
  | 'bad claim'
  | 'bound to a key of its bearer'
  | Exclude<ReturnType<typeof readRights>, Rights>;

/** Asymmetric ones: with a shared secret the public key would be taken for it. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

/** For `nbf` and `iat`, of clocks that differ. There is none for `exp`: it is when a socket is closed, too. */
const CLOCK_TOLERANCE_SECONDS = 5;

const FAULT_OF_CODE: Readonly<Record<string, OidcFault>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'wrong algorithm',
  ERR_JOSE_NOT_SUPPORTED: 'not supported',
  ERR_JWKS_NO_MATCHING_KEY: 'unknown key',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'wrong signature',
  ERR_JWT_CLAIM_VALIDATION_FAILED: 'bad claim',
  ERR_JWT_EXPIRED: 'expired',
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
    private readonly log: Logger,
    timing: Partial<OidcTiming> = {},
  ) {
    this.keys = new OidcKeys(settings.issuer, log, { ...OIDC_TIMING, ...timing });
  }

  /** Of the keys. `none`: no token can be checked; `stale`: the provider does not answer. */
  get state(): 'none' | 'fresh' | 'stale' {
    return this.keys.state;
  }

  /** @param token in the compact form of JWS. Never rejects. */
  async authenticate(token: string): Promise<Bearer | Refusal> {
    const keys = await this.keys.current();
    if (keys === null) return 'unavailable';
    let verdict = await this.judge(token, keys);
    if (verdict === 'unknown key') {
      const renewed = await this.keys.renewed();
      if (renewed !== null && renewed !== keys) verdict = await this.judge(token, renewed);
      // It may be a new key, which the provider cannot tell us of at the moment.
      if (verdict === 'unknown key' && this.state !== 'fresh') return 'unavailable';
    }
    if (typeof verdict !== 'string') return verdict;
    // Tokens expire every day; everything else is somebody's mistake, or worse.
    this.log[verdict === 'expired' ? 'debug' : 'warn']({ reason: verdict }, 'access token refused');
    return 'refused';
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
      return await jwtVerify(token, keys, options);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // It names no key, and several fit, as during a rotation at a provider that does not name them.
      for await (const key of error) {
        const verified = await jwtVerify(token, key, options).catch((reason: unknown) => {
          if (faultOf(reason) !== 'wrong signature') throw reason;
        });
        if (verified !== undefined) return verified;
      }
      throw new errors.JWSSignatureVerificationFailed();
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
  if (iat !== undefined && !(typeof iat === 'number' && iat <= nowMs / 1000 + CLOCK_TOLERANCE_SECONDS)) {
    return 'not yet valid';
  }
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

function faultOf(error: unknown): OidcFault {
  const { code, claim } = error as { readonly code?: unknown; readonly claim?: unknown };
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED' && typeof claim === 'string' && Object.hasOwn(FAULT_OF_CLAIM, claim)) {
    return FAULT_OF_CLAIM[claim] ?? 'bad claim';
  }
  return (typeof code === 'string' ? FAULT_OF_CODE[code] : undefined) ?? 'malformed';
}
