/**
 * From decisions to what is written (design section 5, steps 5 and 6). Pure.
 */
import { claims, isHeld } from '../dedup/state';
import type { DecidedBatch, Decision } from '../dedup/state';
import { ENCODING_VERSION, timeText } from '../ledger/entry';
import type { LedgerEntry } from '../ledger/entry';
import { leafHash } from '../ledger/leaf';
import type { BatchToWrite, EntryToWrite, Locked } from '../ledger/port';
import type { TermCheck } from '../ledger/term';
import type { Received } from './prepare';

export interface BatchContext {
  readonly id: string;
  readonly feed: string;
  readonly feedId: number;
  readonly locked: Locked;
  readonly term: TermCheck;
}

export function composeBatch(
  context: BatchContext,
  received: readonly Received[],
  decided: DecidedBatch,
): BatchToWrite {
  const { locked, term } = context;
  const recordedAt = timeText(locked.recordedAtMicros);
  const entries = decided.decisions.map((decision, index): EntryToWrite => {
    // `decide` answers one decision a message, in the same order.
    const entry = entryOf(context, received[index] as Received, decision, recordedAt);
    return { entry, leafHash: leafHash(entry), appliedKey: decision.outcome === 'APPLIED' ? entry.key : null };
  });
  return {
    id: context.id,
    feedId: context.feedId,
    term: term.term,
    termOpened: term.opened,
    firstPosition: locked.size,
    recordedAtMicros: locked.recordedAtMicros,
    received: received.length,
    deliveries: new Set(received.map(({ delivery }) => delivery)).size,
    policyVersion: locked.policy.version,
    contractDigest: locked.contractDigest,
    entries,
    sources: decided.sources,
    fields: decided.fields,
    members: decided.members,
    outbox: decided.outbox,
  };
}

function entryOf(context: BatchContext, received: Received, decision: Decision, recordedAt: string): LedgerEntry {
  const { delivery, bytesDigest, message } = received;
  const { outcome } = decision;
  const keyed = message.kind === 'keyed' ? message : null;
  const identity = keyed?.identity;
  const eventId = identity?.eventId ?? null;
  return {
    feed: context.feed,
    position: decision.position,
    term: context.term.term,
    encodingVersion: ENCODING_VERSION,
    batchId: context.id,
    itemIndex: message.itemIndex,
    outcome,
    tier: decision.tier,
    reason: decision.reason,
    held: isHeld(outcome),
    late: decision.late,
    keyVersion: keyed?.keyVersion ?? null,
    key: keyed?.key ?? null,
    claimDigest: keyed !== null && claims(outcome) ? keyed.claimDigest : null,
    // Where there is no canonical form, the payload digest is that of the bytes (design section 4).
    payloadDigest: keyed?.payloadDigest ?? bytesDigest,
    bytesDigest,
    agency: identity?.agency ?? null,
    sourceId: identity?.sourceId ?? null,
    epoch: identity?.epoch ?? null,
    sequence: identity?.sequence ?? null,
    eventId: eventId === null ? null : JSON.stringify(eventId),
    incidentId: keyed?.incidentId ?? null,
    original: decision.original,
    resolves: null,
    actor: null,
    note: decision.note === null ? null : storable(decision.note),
    policyVersion: context.locked.policy.version,
    contractDigest: context.locked.contractDigest,
    broker: delivery.broker,
    topic: storable(delivery.topic),
    qos: delivery.qos,
    dup: delivery.dup,
    retained: delivery.retained,
    recordedAt,
    occurredAt: keyed?.occurredAt ?? null,
  };
}

/** Text that is only shown, made storable: Postgres has no NUL, and JSON no lone surrogates. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}
