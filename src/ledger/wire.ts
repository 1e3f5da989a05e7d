/**
 * What goes over to `read_batch`, `store_payloads` and `write_batch` as JSON: one parameter a document instead of an
 * array a column, so neither the number of rows nor of columns meets a bound of the protocol. The functions name the
 * members.
 */
import { sha256Hex } from '../contract/key';
import { epochKey } from '../dedup/state';
import type { BatchToWrite, EntryToWrite, ReadRequest, StoredPayload, WantedKey } from './port';

/** The two documents of a request. Many keys share a source, so they name it by its place. */
export function requestJson(request: ReadRequest): { readonly request: string; readonly keys: string } {
  const places = new Map<string, number>();
  const sources: { v: number; a: string; s: string; e: string }[] = [];
  const keys = wantedKeys(request).map((wanted) => {
    const { keyVersion: v, agency: a, sourceId: s, epoch: e } = wanted;
    const name = epochKey(v, a, s, e);
    let place = places.get(name);
    if (place === undefined) {
      places.set(name, (place = sources.length));
      sources.push({ v, a, s, e });
    }
    return { k: wanted.key, d: wanted.claimDigest, s: place, n: given(wanted.sequence), p: given(wanted.hint) };
  });
  const rest = {
    hintTerm: request.hintTerm,
    incidents: request.incidents,
    fields: request.fields.map(({ incidentId, field }) => ({ i: incidentId, f: field })),
    remembered: request.remembered,
    sources,
  };
  return { request: JSON.stringify(rest), keys: JSON.stringify(keys) };
}

/** In the order in which `read_batch` counts them. */
export function wantedKeys({ keys, formerKeys }: ReadRequest): readonly WantedKey[] {
  return [...keys, ...formerKeys];
}

export function batchJson(batch: BatchToWrite): string {
  return JSON.stringify({
    id: batch.id,
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

export function payloadsJson(payloads: readonly StoredPayload[]): string {
  return JSON.stringify(
    payloads.map(({ bytesDigest, bytes, sizeBytes }) => ({
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
    i: given(e.itemIndex),
    oc: e.outcome,
    ti: e.tier,
    re: e.reason,
    he: given(e.held),
    la: given(e.late),
    kv: given(e.keyVersion),
    k: given(e.key),
    cd: orSame(e.claimDigest, e.payloadDigest),
    pd: e.payloadDigest,
    bd: e.bytesDigest,
    ag: given(e.agency),
    so: given(e.sourceId),
    ep: given(e.epoch),
    sq: given(e.sequence),
    ev: given(e.eventId),
    inc: given(e.incidentId),
    og: given(e.original),
    rs: given(e.resolves),
    ac: given(e.actor),
    nt: given(e.note),
    ak: orSame(appliedKey, e.key),
    br: e.broker,
    tp: e.topic,
    qos: e.qos,
    dup: given(e.dup),
    rt: given(e.retained),
    oa: given(e.occurredAt),
    lh: leafHash,
  };
}

/** What is null or false is left out of a document: most members of most entries are. */
function given<T>(value: T | null | false): T | undefined {
  return value === null || value === false ? undefined : value;
}

function orSame(value: string | null, other: string | null): string | undefined {
  return value !== null && value === other ? 'same' : given(value);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function text(value: bigint | null): string | null {
  return value === null ? null : value.toString();
}
