/**
 * What goes over to `read_batch` and `write_batch` as JSON: one parameter a document instead of an array a column, so
 * neither the number of rows nor of columns meets a bound of the protocol. The functions name the members.
 */
import { sha256Hex } from '../contract/key';
import type { BatchToWrite, EntryToWrite, ReadRequest } from './port';

export function requestJson(request: ReadRequest): string {
  const sources = new Map<string, { v: number; a: string; s: string; e: string }>();
  for (const { keyVersion: v, agency: a, sourceId: s, epoch: e } of request.keys) {
    sources.set(`${v}\0${a}\0${s}\0${e}`, { v, a, s, e });
  }
  return JSON.stringify({
    feed: request.feedId,
    hintTerm: request.hintTerm,
    incidents: request.incidents,
    fields: request.fields.map(({ incidentId, field }) => ({ i: incidentId, f: field })),
    remembered: request.remembered,
    sources: [...sources.values()],
  });
}

export function keysJson(request: ReadRequest): string {
  return JSON.stringify(
    [...request.keys, ...request.formerKeys].map((k) => ({
      v: k.keyVersion,
      k: k.key,
      d: k.claimDigest,
      a: k.agency,
      s: k.sourceId,
      e: k.epoch,
      n: k.sequence,
      p: k.hint,
    })),
  );
}

export function batchJson(batch: BatchToWrite): string {
  return JSON.stringify({
    id: batch.id,
    feed: batch.feedId,
    term: batch.term,
    termReason: batch.termOpened,
    first: batch.firstPosition,
    recordedAt: batch.recordedAtMicros,
    received: batch.received,
    deliveries: batch.deliveries,
    policyVersion: batch.policyVersion,
    contractDigest: batch.contractDigest,
    heads: batch.sources.map(({ keyVersion, agency, sourceId, epoch, head }) => ({
      v: keyVersion,
      a: agency,
      s: sourceId,
      e: epoch,
      r: text(head.rank),
      m: text(head.mark),
      h: text(head.highest),
    })),
    fields: batch.fields.map(({ incidentId, field, value, writer, position }) => ({
      i: incidentId,
      f: field,
      value,
      p: position,
      a: writer.agency,
      s: writer.sourceId,
      e: writer.epoch,
      r: writer.rank,
      n: writer.sequence,
    })),
    members: batch.members.map(({ incidentId, field, value, position }) => ({
      i: incidentId,
      f: field,
      d: sha256Hex(value),
      value,
      p: position,
    })),
  });
}

export function payloadsJson(batch: BatchToWrite): string {
  return JSON.stringify(
    batch.payloads.map(({ bytesDigest, bytes, sizeBytes }) => ({
      d: bytesDigest,
      b: bytes === null ? null : base64(bytes),
      n: sizeBytes,
    })),
  );
}

export function outboxJson(batch: BatchToWrite): string {
  return JSON.stringify(
    batch.outbox.map(({ position, topic, key, payload }) => ({ p: position, t: topic, k: key, b: base64(payload) })),
  );
}

export function entriesJson(batch: BatchToWrite): string {
  return JSON.stringify(batch.entries.map(entryRow));
}

function entryRow({ entry: e, leafHash, appliedKey }: EntryToWrite) {
  return {
    p: e.position,
    i: e.itemIndex,
    oc: e.outcome,
    ti: e.tier,
    re: e.reason,
    he: e.held,
    la: e.late,
    kv: e.keyVersion,
    k: e.key,
    cd: e.claimDigest,
    pd: e.payloadDigest,
    bd: e.bytesDigest,
    ag: e.agency,
    so: e.sourceId,
    ep: e.epoch,
    sq: e.sequence,
    ev: e.eventId,
    inc: e.incidentId,
    og: e.original,
    rs: e.resolves,
    ac: e.actor,
    nt: e.note,
    ak: appliedKey,
    br: e.broker,
    tp: e.topic,
    qos: e.qos,
    dup: e.dup,
    rt: e.retained,
    oa: e.occurredAt,
    lh: leafHash,
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function text(value: bigint | null): string | null {
  return value === null ? null : value.toString();
}
