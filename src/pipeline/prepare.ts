/**
 * From deliveries to what the ledger is asked (design section 5, steps 1 to 3). Pure.
 */
import { sha256Hex } from '../contract/key';
import type { FormerClaim, KeyedMessage, Message } from '../contract/types';
import { claimKey, epochKey } from '../dedup/state';
import type { SourceChange } from '../dedup/state';
import type { ReadRequest, StoredPayload, WantedKey } from '../ledger/port';
import type { ReceivedDelivery } from '../mqtt/port';
import type { LedgerMemory, WindowHints } from '../window/window';
import type { ActiveContract, FeedRuntime } from './feed';

/** A message with the delivery that brought it. */
export interface Received {
  readonly delivery: ReceivedDelivery;
  /** SHA-256 of the delivery's bytes, hex. */
  readonly bytesDigest: string;
  readonly message: Message;
}

export function decodeAll(active: ActiveContract, deliveries: readonly ReceivedDelivery[]): Received[] {
  const received: Received[] = [];
  for (const delivery of deliveries) {
    const bytesDigest = sha256Hex(delivery.payload);
    for (const message of active.decoder.decode(delivery)) received.push({ delivery, bytesDigest, message });
  }
  return received;
}

/**
 * What the window is asked for: own keys, and those of former identity versions. Not what lies above everything that its
 * source had sent by the last batch, as all of a feed does that replays nothing.
 */
export function windowKeys(received: readonly Received[], reached: FeedRuntime['reached']): string[] {
  const names = new Set<string>();
  for (const message of keyed(received)) {
    if (!isAbove(reached, message)) names.add(claimKey(message.keyVersion, message.key));
    for (const reading of message.former)
      for (const claim of reading.claims) names.add(claimKey(claim.keyVersion, claim.key));
  }
  return [...names];
}

function isAbove(reached: FeedRuntime['reached'], { keyVersion, identity }: KeyedMessage): boolean {
  const { agency, sourceId, epoch, sequence } = identity;
  if (sequence === null) return false;
  const highest = reached.get(epochKey(keyVersion, agency, sourceId, epoch ?? ''));
  return highest !== undefined && BigInt(sequence) > highest;
}

/** After a batch: how far its sources have come. */
export function reachedAfter(sources: readonly SourceChange[]): FeedRuntime['reached'] {
  const reached = new Map<string, bigint>();
  for (const { keyVersion, agency, sourceId, epoch, head } of sources) {
    if (head.highest !== null) reached.set(epochKey(keyVersion, agency, sourceId, epoch), head.highest);
  }
  return reached;
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

/** Each delivery's bytes once; of one that was too large only digest and size. */
export function payloadsOf(received: readonly Received[]): StoredPayload[] {
  const payloads = new Map<string, StoredPayload>();
  for (const { delivery, bytesDigest, message } of received) {
    const tooLarge = message.kind === 'malformed' && message.reason === 'payload_too_large';
    payloads.set(bytesDigest, {
      bytesDigest,
      bytes: tooLarge ? null : delivery.payload,
      sizeBytes: delivery.payload.byteLength,
    });
  }
  return [...payloads.values()];
}

/** What the instance and the window remember of the ledger. */
export function memories(hints: WindowHints | null, memory: LedgerMemory | null): LedgerMemory[] {
  return [memory, hints?.memory ?? null].filter((m): m is LedgerMemory => m !== null);
}

function keyed(received: readonly Received[]): KeyedMessage[] {
  return received.map(({ message }) => message).filter((message): message is KeyedMessage => message.kind === 'keyed');
}
