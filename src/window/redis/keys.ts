/** Names and members in Redis: nothing in them is payload text, and no two keys share one. */
import { createHash } from 'node:crypto';

/** The three keys of a feed's window, of one hash slot. See `record.lua` for what they hold. */
export interface FeedKeys {
  readonly memory: string;
  readonly keys: string;
  readonly marks: string;
}

/**
 * `<prefix>:{<16 hex digits>}:…`. The hash tag is made of a digest, never of the feed's name, so that a name with
 * braces cannot scatter the keys over the slots of a cluster.
 */
export function feedKeys(keyPrefix: string, feed: string): FeedKeys {
  const tag = createHash('sha256').update(feed).digest('hex').slice(0, 16);
  const base = `${keyPrefix}:{${tag}}`;
  return { memory: `${base}:memory`, keys: `${base}:keys`, marks: `${base}:marks` };
}

const WINDOW_KEY = /^([1-9]\d{0,8}):([0-9a-f]{64})$/;
const OTHER = Buffer.of(0);

/**
 * A window key as the member of a sorted set: the version in as few bytes as it needs, then the 32 bytes of the digest.
 * Injective over all strings: the version's first byte is never 0, and a key of any other form begins with 0.
 */
export function encodeMember(key: string): Buffer {
  const [, version, digest] = WINDOW_KEY.exec(key) ?? [];
  if (version === undefined || digest === undefined) {
    return Buffer.concat([OTHER, Buffer.from(key, 'utf16le')]);
  }
  const hex = Number(version).toString(16);
  return Buffer.from((hex.length % 2 === 0 ? hex : `0${hex}`) + digest, 'hex');
}
