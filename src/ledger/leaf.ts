/**
 * The Merkle leaf of an entry: RFC 8785 canonical JSON of its immutable columns, hashed as an RFC 6962 leaf.
 * It is built from the very texts that are stored, so what is read back verifies: nothing passes through a clock type.
 */
import { sha256Hex } from '../contract/key';
import type { LedgerEntry } from './entry';

/** RFC 6962 section 2.1: the byte that tells leaves from nodes, as the character whose UTF-8 it is. */
const LEAF_PREFIX = '\0';

/**
 * The members stand in UTF-16 code unit order, as RFC 8785 section 3.2.3 sorts them, and JSON.stringify keeps that order
 * and escapes well-formed strings exactly as section 3.2.2.2 asks. Numbers are strings: 2^53 is not a bound of positions
 * or sequences.
 */
export function leafText(entry: LedgerEntry): string {
  return JSON.stringify({
    actor: entry.actor,
    agency: entry.agency,
    batchId: entry.batchId,
    broker: entry.broker,
    bytesDigest: entry.bytesDigest,
    claimDigest: entry.claimDigest,
    contractDigest: entry.contractDigest,
    dup: entry.dup,
    encodingVersion: digits(entry.encodingVersion),
    epoch: entry.epoch,
    eventId: entry.eventId,
    feed: entry.feed,
    held: entry.held,
    incidentId: entry.incidentId,
    itemIndex: digits(entry.itemIndex),
    key: entry.key,
    keyVersion: digits(entry.keyVersion),
    late: entry.late,
    note: entry.note,
    occurredAt: entry.occurredAt,
    original: digits(entry.original),
    outcome: entry.outcome,
    payloadDigest: entry.payloadDigest,
    policyVersion: digits(entry.policyVersion),
    position: digits(entry.position),
    qos: digits(entry.qos),
    reason: entry.reason,
    recordedAt: entry.recordedAt,
    resolves: digits(entry.resolves),
    retained: entry.retained,
    sequence: entry.sequence,
    sourceId: entry.sourceId,
    term: digits(entry.term),
    tier: entry.tier,
    topic: entry.topic,
  } satisfies Record<keyof LedgerEntry, string | boolean | null>);
}

/** 64 lower-case hex digits. */
export function leafHash(entry: LedgerEntry): string {
  return sha256Hex(LEAF_PREFIX + leafText(entry));
}

function digits(value: number | null): string | null {
  return value === null ? null : String(value);
}
