/**
 * From deliveries to what the ledger is asked (design section 5, steps 1 to 3). Pure.
 */
import { sha256Hex } from '../contract/key';
import type { FormerClaim, KeyedMessage, Message } from '../contract/types';
import { claimKey } from '../dedup/state';
import type { ReadRequest, WantedKey } from '../ledger/port';
import type { ReceivedDelivery } from '../mqtt/port';
import type { LedgerMemory, WindowHints } from '../window/window';
import type { ActiveContract } from './feed';

/** A message with the delivery that brought it. */
export interface Received {
  readonly delivery: ReceivedDelivery;
  /** SHA-256 of the delivery's bytes, hex. */
  readonly bytesDigest: string;
  readonly message: Message;
}

export function decodeAll(active: ActiveContract, deliveries: readonly ReceivedDelivery[]): Received[] {
  return deliveries.flatMap((delivery) => {
    const bytesDigest = sha256Hex(delivery.payload);
    return active.decoder.decode(delivery).map((message) => ({ delivery, bytesDigest, message }));
  });
}

/** Their own keys, and those of former identity versions. */
export function windowKeys(received: readonly Received[]): string[] {
  const names = new Set<string>();
  for (const message of keyed(received)) {
    names.add(claimKey(message.keyVersion, message.key));
    for (const reading of message.former)
      for (const claim of reading.claims) names.add(claimKey(claim.keyVersion, claim.key));
  }
  return [...names];
}

export function readRequest(
  feedId: number,
  received: readonly Received[],
  hints: WindowHints | null,
  memory: LedgerMemory | null,
): ReadRequest {
  const incidents = new Set<string>();
  const fields = new Map<string, { incidentId: string; field: string }>();
  const keys = new Map<string, WantedKey>();
  const formerKeys = new Map<string, WantedKey>();
  for (const message of keyed(received)) {
    const { incidentId, plan } = message;
    want(keys, message, hints);
    for (const reading of message.former) for (const claim of reading.claims) want(formerKeys, claim, hints);
    if (incidentId === null) continue;
    incidents.add(incidentId);
    if (!plan.ok) continue;
    for (const { field } of plan.effects) fields.set(`${incidentId}\0${field}`, { incidentId, field });
  }
  return {
    feedId,
    hintTerm: hints?.memory?.term ?? null,
    incidents: [...incidents],
    fields: [...fields.values()],
    remembered: [...new Set(memories(hints, memory).map((m) => m.size))].filter((size) => size > 0),
    keys: [...keys.values()],
    formerKeys: [...formerKeys.values()],
  };
}

function want(keys: Map<string, WantedKey>, claim: FormerClaim, hints: WindowHints | null): void {
  const { keyVersion, key, claimDigest, identity } = claim;
  const name = claimKey(keyVersion, key);
  keys.set(`${name}:${claimDigest}`, {
    keyVersion,
    key,
    claimDigest,
    agency: identity.agency,
    sourceId: identity.sourceId,
    epoch: identity.epoch ?? '',
    sequence: identity.sequence,
    hint: hints?.positions.get(name) ?? null,
  });
}

/** What the instance and the window remember of the ledger. */
export function memories(hints: WindowHints | null, memory: LedgerMemory | null): LedgerMemory[] {
  return [memory, hints?.memory ?? null].filter((m): m is LedgerMemory => m !== null);
}

function keyed(received: readonly Received[]): KeyedMessage[] {
  return received.map(({ message }) => message).filter((message): message is KeyedMessage => message.kind === 'keyed');
}
