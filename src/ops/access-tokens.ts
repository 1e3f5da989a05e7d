/** The tokens that a service accepts, of both kinds: those of its token file, and those of its OpenID provider. */
import { Refusal, tokenOf } from './bearer';
import type { Bearer, Tokens } from './bearer';
import type { OidcTokens } from './oidc';
import type { TokenFile } from './token-file';

/** Header, payload and signature of a JWS (RFC 7515, section 7.1). */
const COMPACT_JWS = /^[^.]*\.[^.]*\.[^.]*$/;

export class AccessTokens implements Tokens {
  /** @param file null: none of its kind is accepted. @param oidc likewise */
  constructor(
    private readonly file: Pick<TokenFile, 'authenticate' | 'onChange'> | null,
    private readonly oidc: Pick<OidcTokens, 'authenticate' | 'onChange'> | null,
  ) {}

  async authenticate(
    authorization: string | undefined,
    cameAtMs: number = performance.now(),
  ): Promise<Bearer | Refusal> {
    const token = tokenOf(authorization);
    if (token instanceof Refusal) return token;
    // The file knows its tokens whatever they look like.
    const holder = this.file?.authenticate(token) ?? 'unknown token';
    if (typeof holder !== 'string') {
      const { name, role, agencies, expiresAtMs } = holder;
      return { name, roles: [role], agencies, expiresAtMs };
    }
    if (holder === 'expired' || this.oidc === null) return new Refusal('refused', holder);
    if (!COMPACT_JWS.test(token)) return new Refusal('refused', 'unknown token, no JWT');
    return this.oidc.authenticate(token, cameAtMs);
  }

  onChange(listener: () => void): () => void {
    const ends = [this.file?.onChange(listener), this.oidc?.onChange(listener)];
    return () => ends.forEach((end) => end?.());
  }
}
