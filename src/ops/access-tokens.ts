/** The tokens that a service accepts, of both kinds: those of its token file, and those of its OpenID provider. */
import { tokenOf } from './bearer';
import type { Bearer, Refusal, Tokens } from './bearer';
import type { OidcTokens } from './oidc';
import type { TokenFile } from './token-file';

/** Header, payload and signature of a JWS (RFC 7515, section 7.1); the tokens of the file hold no dot. */
const COMPACT_JWS = /^[^.]*\.[^.]*\.[^.]*$/;

export class AccessTokens implements Tokens {
  /** @param file null: none of its kind is accepted. @param oidc likewise */
  constructor(
    private readonly file: Pick<TokenFile, 'authenticate' | 'onChange'> | null,
    private readonly oidc: Pick<OidcTokens, 'authenticate' | 'onChange'> | null,
  ) {}

  async authenticate(authorization: string | undefined): Promise<Bearer | Refusal> {
    const token = tokenOf(authorization);
    if (token === null) return 'refused';
    if (this.oidc !== null && COMPACT_JWS.test(token)) return this.oidc.authenticate(token);
    const holder = this.file?.authenticate(authorization) ?? null;
    if (holder === null) return 'refused';
    const { name, role, agencies, expiresAtMs } = holder;
    return { name, roles: [role], agencies, expiresAtMs };
  }

  onChange(listener: () => void): () => void {
    const ends = [this.file?.onChange(listener), this.oidc?.onChange(listener)];
    return () => ends.forEach((end) => end?.());
  }
}
