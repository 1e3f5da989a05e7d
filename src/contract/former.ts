/**
 * What former identity versions of a feed make of the messages of today (design section 7, "Identity of a feed with
 * entries"). Pure.
 *
 * A feed whose `identity.version` was raised decides under the new keys, and still recognises what it decided under the
 * old ones: each delivery is read under the rules of before as well. Key and digest of a message depend on the whole
 * contract that read it (an effect that reads the topic brings the topic into the digest), so every contract of a lower
 * version under which something was decided counts, not only the last; those that give equal keys and digests count as
 * one.
 */
import { outsideReadings } from './plan-effects';
import type { FeedContract, FormerClaim, FormerReading, Message } from './types';

/** A delivery as one former contract reads it. */
export interface FormerDelivery {
  readonly contract: FeedContract;
  readonly messages: readonly Message[];
}

/**
 * The former contracts to read by, oldest first, each reduced to what keys and digests depend on.
 *
 * @param history contracts under which something was decided, in the order in which they were in force
 */
export function formerContracts(current: FeedContract, history: readonly FeedContract[]): FeedContract[] {
  const distinct = new Map<string, FeedContract>();
  for (const contract of history) {
    if (contract.identity.version >= current.identity.version) continue;
    // Incident and effects count only where they bring something into the digest.
    const reduced =
      outsideReadings(contract) === ''
        ? { ...contract, incident: null, effects: 'off' as const, forward: null }
        : contract;
    const { items, identity, digest, incident, effects, forward } = reduced;
    const name = JSON.stringify([items, identity, digest, incident, effects, forward]);
    const topics = [...(distinct.get(name)?.topics ?? []), ...contract.topics];
    distinct.set(name, { ...reduced, topics: [...new Set(topics)] });
  }
  return [...distinct.values()];
}

/**
 * The messages with what each was under the former contracts. Which message is which:
 * - `items` as before: the item at the same index;
 * - `items` new: every item is part of what was one message; its digest proves it, unless it left out any of the items;
 * - `items` gone: the message holds all of what were several, and more, which their digests did not cover;
 * - `items` elsewhere: none, for what stands there was not decided before.
 * What a former contract could not read (malformed, a topic that it did not take) was never decided under it: none.
 *
 * @param messages of one delivery, read by `current`
 */
export function withFormer(
  messages: readonly Message[],
  current: FeedContract,
  deliveries: readonly FormerDelivery[],
): Message[] {
  const readings = deliveries.map((delivery) => readingsOf(current, delivery));
  return messages.map((message, index) => {
    if (message.kind !== 'keyed') return message;
    const former = readings.map((readingAt) => readingAt(index)).filter((reading) => reading !== null);
    return former.length === 0 ? message : { ...message, former };
  });
}

/** What the message at an index was; null for nothing. Asked for every item, so it must not search. */
function readingsOf(
  current: FeedContract,
  { contract, messages }: FormerDelivery,
): (index: number) => FormerReading | null {
  if (contract.items === current.items) {
    // Where the items could not be told apart there is one message, which has no key.
    return (index) => readingOf(messages.slice(index, index + 1), true);
  }
  if (contract.items !== null && current.items !== null) return () => null;
  const whole = readingOf(messages, current.items !== null && !ignores(contract, current.items));
  return () => whole;
}

/** null where one of them has no key, or where there is none. */
function readingOf(messages: readonly Message[], proves: boolean): FormerReading | null {
  const claims: FormerClaim[] = [];
  for (const message of messages) {
    if (message.kind !== 'keyed') return null;
    const { keyVersion, key, claimDigest, identity } = message;
    claims.push({ keyVersion, key, claimDigest, identity });
  }
  return claims.length === 0 ? null : { claims, proves };
}

/** Did the digest leave out something at, above or below the pointer? Then equal digests prove nothing about it. */
function ignores({ digest }: FeedContract, pointer: string): boolean {
  if (digest === 'off') return false;
  return digest.ignore.some((ignored) => `${pointer}/`.startsWith(`${ignored}/`) || ignored.startsWith(`${pointer}/`));
}
