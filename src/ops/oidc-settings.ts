/** What the service has to know of its OpenID provider. Types alone: config.ts makes the value. */

/** The way to a claim of an access token: names of members, or indices, from the outermost. */
export type ClaimPath = readonly string[];

/** An OpenID provider whose access tokens are accepted. */
export interface OidcSettings {
  /** As the provider names itself: compared character by character. */
  readonly issuer: string;
  readonly audience: string;
  /** What the `typ` of the header has to be. `JWT`: or nothing, for providers that do not follow RFC 9068. */
  readonly tokenType: 'at+jwt' | 'JWT';
  readonly roles: ClaimPath;
  /** Roles count only with this before them. */
  readonly rolePrefix: string;
  /** null: no token is limited to agencies. Else the claim is needed in every token. */
  readonly agencies: ClaimPath | null;
  /** Who it is, for the audit trail. */
  readonly name: ClaimPath;
}
