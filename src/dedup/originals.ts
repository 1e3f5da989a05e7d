/**
 * Where a message was decided before: under its own key, or under what it was in a former identity version of its feed
 * (design section 7, "Identity of a feed with entries"). Pure.
 */
import type { FormerReading, KeyedMessage } from '../contract/types';
import { claimKey } from './state';
import type { Claim, LockedState } from './state';

type Claims = LockedState['claims'];

/**
 * The entry that decided this message under a former version, or null. Key and digest must both be equal: a former key
 * with another digest says nothing, because the identity was changed for a reason. Where a reading names several
 * entries, all must be there, and the first of them stands for all.
 *
 * @param proves by readings that prove it, or by those that only make it likely
 */
export function formerOriginal(claims: Claims, message: KeyedMessage, proves: boolean): Claim | null {
  for (const reading of message.former) {
    if (reading.proves !== proves) continue;
    const original = originalOfAll(claims, reading);
    if (original !== null) return original;
  }
  return null;
}

function originalOfAll(claims: Claims, reading: FormerReading): Claim | null {
  let first: Claim | null = null;
  for (const { keyVersion, key, claimDigest } of reading.claims) {
    const found = claims.get(claimKey(keyVersion, key))?.find(({ digest }) => digest === claimDigest);
    if (found === undefined) return null;
    if (first === null || found.position < first.position) first = found;
  }
  return first;
}

/** The claim of the original at `position` and the `claimKey` that it stands under, if it was read for the message. */
export function claimAt(
  claims: Claims,
  message: KeyedMessage,
  position: number,
): { readonly name: string; readonly claim: Claim } | null {
  const own = claimUnder(claims, claimKey(message.keyVersion, message.key), position);
  if (own !== null) return own;
  for (const reading of message.former) {
    for (const { keyVersion, key } of reading.claims) {
      const former = claimUnder(claims, claimKey(keyVersion, key), position);
      if (former !== null) return former;
    }
  }
  return null;
}

function claimUnder(claims: Claims, name: string, position: number) {
  const claim = claims.get(name)?.find((one) => one.position === position);
  return claim === undefined ? null : { name, claim };
}
