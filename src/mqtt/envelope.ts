/**
 * How a forwarded message travels on MQTT 3.1.1, which has no user properties (design section 7, forwarding):
 * `{"meta":{…},"payload":<JSON>}`, or, where the payload is no JSON text in UTF-8,
 * `{"meta":{…},"payloadEncoding":"base64","payload":"<base64>"}`.
 */

/**
 * The payload's own bytes stand between the braces, not a parsed and printed copy: numbers beyond doubles, member order
 * and repeated members reach the consumer as the producer wrote them.
 *
 * @returns UTF-8 JSON text
 */
export function toEnvelope(meta: Readonly<Record<string, string>>, payload: Uint8Array): Buffer {
  const metaText = JSON.stringify(meta);
  if (isJsonText(payload)) {
    return Buffer.concat([Buffer.from(`{"meta":${metaText},"payload":`), payload, Buffer.from('}')]);
  }
  const encoded = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('base64');
  return Buffer.from(`{"meta":${metaText},"payloadEncoding":"base64","payload":"${encoded}"}`);
}

function isJsonText(bytes: Uint8Array): boolean {
  try {
    // ignoreBOM keeps a byte order mark in the text, where JSON.parse refuses it: inside an envelope it would be a fault.
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}
