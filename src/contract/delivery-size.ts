/** How much a delivery weighs, for every bound that is given in bytes of deliveries. */
import type { Delivery } from './types';

/**
 * Bytes of UTF-8 of payload, topic and user properties, names included. A topic and each property may have 64 KiB, and
 * of properties there may be any number: a bound on payloads alone would let them fill the memory.
 */
export function deliverySize({
  payload,
  topic,
  userProperties,
}: Pick<Delivery, 'payload' | 'topic' | 'userProperties'>): number {
  let bytes = payload.byteLength + Buffer.byteLength(topic, 'utf8');
  for (const [name, value] of Object.entries(userProperties)) {
    const values = typeof value === 'string' ? [value] : value;
    for (const text of values) bytes += Buffer.byteLength(name, 'utf8') + Buffer.byteLength(text, 'utf8');
  }
  return bytes;
}
