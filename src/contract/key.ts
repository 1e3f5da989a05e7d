/** The idempotency key and the digests (design section 4). */
import { hash } from 'node:crypto';

import type { Identity } from './types';

/** Leads the keys of `eventId` mode, and of what is released although it conflicts. No escaped part can begin so. */
const EVENT_ID_MARK = '\\e|';
const CONFLICT_MARK = '\\c|';

/** SHA-256 of a text's UTF-8 or of bytes: 64 lower-case hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/**
 * The text that is hashed: the parts, escaped, joined by `|`. A join of escaped parts has one `|` less than parts, so
 * that three parts never equal four; ordinary parts give the plain join.
 */
export function keyText(identity: Identity): string {
  const { agency, sourceId, epoch, sequence, eventId } = identity;
  const source = `${escapePart(agency)}|${escapePart(sourceId)}`;
  if (eventId !== null) return `${EVENT_ID_MARK}${[source, ...eventId.map(escapePart)].join('|')}`;
  if (sequence === null) throw new RangeError('an identity has a sequence or an event id');
  const place = epoch === null ? escapePart(sequence) : `${escapePart(epoch)}|${escapePart(sequence)}`;
  return `${source}|${place}`;
}

/** The idempotency key, 64 lower-case hex digits. Equal if and only if the identities are. */
export function idempotencyKey(identity: Identity): string {
  return sha256Hex(keyText(identity));
}

/** The key under which a released conflict is applied (design section 3). `digest`: the one it was claimed with. */
export function derivedKey(key: string, digest: string): string {
  return sha256Hex(`${CONFLICT_MARK}${key}|${digest}`);
}

function escapePart(part: string): string {
  return part.includes('\\') || part.includes('|') ? part.replace(/[\\|]/g, '\\$&') : part;
}
