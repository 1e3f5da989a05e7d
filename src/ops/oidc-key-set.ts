/** A key set (RFC 7517, section 5) as an OpenID provider publishes it: which of its keys can be used, and for what. */
import type * as jose from 'jose' with { 'resolution-mode': 'import' };
import { OidcFetchError } from './oidc-fetch';

/** Asymmetric ones: with a shared secret the public key would be taken for it. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];

/** RFC 7518, section 3.3. The library refuses shorter ones when it verifies. */
const RSA_MIN_BITS = 2048;

export interface KeySet {
  /** Finds the key that a token names. */
  readonly find: ReturnType<typeof jose.createLocalJWKSet>;
  /** The same for the same keys, in whatever order. */
  readonly text: string;
  readonly keys: number;
  /** At least one. */
  readonly usable: number;
}

/**
 * One key that is broken does not spoil the others; without any that can be used no token could be checked.
 * @param document as it was fetched
 * @throws OidcFetchError, or an error of the library
 */
export async function readKeySet(document: object): Promise<KeySet> {
  // The library is an ES module, hence the dynamic import.
  const { createLocalJWKSet } = await import('jose');
  const find = createLocalJWKSet(document as unknown as jose.JSONWebKeySet);
  const { keys } = find.jwks();
  const isUsable = await Promise.all(keys.map((key) => canVerify(createLocalJWKSet({ keys: [key] }), key.kid)));
  const usable = isUsable.filter(Boolean).length;
  if (usable === 0) throw new OidcFetchError(`none of the ${keys.length} keys of the provider can be used`);
  const text = keys
    .map((key) => JSON.stringify(Object.entries(key).sort()))
    .sort()
    .join();
  return { find, text, keys: keys.length, usable };
}

async function canVerify(find: KeySet['find'], kid: string | undefined): Promise<boolean> {
  for (const alg of ALGORITHMS) {
    // What does not fit the algorithm, and what is broken, is an error.
    const key = await find({ alg, kid }).catch(() => null);
    if (key === null) continue;
    const { modulusLength } = key.algorithm as { readonly modulusLength?: number };
    return modulusLength === undefined || modulusLength >= RSA_MIN_BITS;
  }
  return false;
}
