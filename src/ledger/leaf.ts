/**
 * The Merkle leaf of an entry: RFC 8785 canonical JSON of its immutable columns, hashed as an RFC 6962 leaf.
 * It is built from the very texts that are stored, so what is read back verifies: nothing passes through a clock type.
 */
import { canonicalString } from '../contract/canonical';
import { sha256Hex } from '../contract/key';
import type { LedgerEntry } from './entry';

/** RFC 6962 section 2.1: the byte that tells leaves from nodes, as the character whose UTF-8 it is. */
const LEAF_PREFIX = '\0';

/**
 * The members stand in UTF-16 code unit order, as RFC 8785 section 3.2.3 sorts them. Numbers are strings: 2^53 is not a
 * bound of positions or sequences. Written out, because `JSON.stringify` of all of it takes longer by half, looking for
 * escapes in names and digests. Tests hold it to every column and to a generic canonicaliser.
 */
export function leafText(entry: LedgerEntry): string {
  return (
    `{"actor":${text(entry.actor)}` +
    `,"agency":${text(entry.agency)}` +
    `,"batchId":"${entry.batchId}"` +
    `,"broker":${canonicalString(entry.broker)}` +
    `,"bytesDigest":"${entry.bytesDigest}"` +
    `,"claimDigest":${plain(entry.claimDigest)}` +
    `,"contractDigest":"${entry.contractDigest}"` +
    `,"dup":${entry.dup}` +
    `,"encodingVersion":"${entry.encodingVersion}"` +
    `,"epoch":${text(entry.epoch)}` +
    `,"eventId":${text(entry.eventId)}` +
    `,"feed":${canonicalString(entry.feed)}` +
    `,"held":${entry.held}` +
    `,"incidentId":${text(entry.incidentId)}` +
    `,"itemIndex":${plain(entry.itemIndex)}` +
    `,"key":${plain(entry.key)}` +
    `,"keyVersion":${plain(entry.keyVersion)}` +
    `,"late":${entry.late}` +
    `,"note":${text(entry.note)}` +
    `,"occurredAt":${plain(entry.occurredAt)}` +
    `,"original":${plain(entry.original)}` +
    `,"outcome":"${entry.outcome}"` +
    `,"payloadDigest":"${entry.payloadDigest}"` +
    `,"policyVersion":"${entry.policyVersion}"` +
    `,"position":"${entry.position}"` +
    `,"qos":"${entry.qos}"` +
    `,"reason":${canonicalString(entry.reason)}` +
    `,"recordedAt":"${entry.recordedAt}"` +
    `,"resolves":${plain(entry.resolves)}` +
    `,"retained":${entry.retained}` +
    `,"sequence":${plain(entry.sequence)}` +
    `,"sourceId":${text(entry.sourceId)}` +
    `,"term":"${entry.term}"` +
    `,"tier":"${entry.tier}"` +
    `,"topic":${canonicalString(entry.topic)}}`
  );
}

/** 64 lower-case hex digits. */
export function leafHash(entry: LedgerEntry): string {
  return sha256Hex(LEAF_PREFIX + leafText(entry));
}

/** What came from outside. */
function text(value: string | null): string {
  return value === null ? 'null' : canonicalString(value);
}

/** Digits, hex or a time: nothing in it needs an escape. */
function plain(value: string | number | null): string {
  return value === null ? 'null' : `"${value}"`;
}
