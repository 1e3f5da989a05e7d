/**
 * Strict RFC 8259 JSON over UTF-8 bytes.
 *
 * Two kinds of trouble are kept apart. What is no JSON text at all ends the parse (`invalid_utf8`, `invalid_json`). What
 * is JSON that cannot be read in one way only (`duplicate_member`, `lone_surrogate`; RFC 8785 section 3.1), is nested
 * too deeply (`too_deep`) or holds a number beyond reckoning (`exponent_too_long`) is noted with its place, and the parse goes on: in a batch it spoils one item, not the rest.
 */
import { isUtf8 } from 'node:buffer';

import { JsonParser, JsonSyntaxError } from './json-parser';
import type { JsonArray, JsonDocument, JsonFault } from './json-value';

export type JsonParse =
  { readonly ok: true; readonly document: JsonDocument } | { readonly ok: false; readonly fault: JsonFault };

/** Reads one JSON text. Never throws on data. A byte order mark is no JSON (RFC 8259 section 8.1): `invalid_json`. */
export function parseJson(bytes: Uint8Array): JsonParse {
  if (!isUtf8(bytes)) {
    return { ok: false, fault: { reason: 'invalid_utf8', offset: 0, detail: 'the payload is not valid UTF-8' } };
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  const parser = new JsonParser(text);
  try {
    return { ok: true, document: { text, value: parser.document(), faults: parser.faults, spans: parser.spans } };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { ok: false, fault: error.fault };
    throw error;
  }
}

/**
 * The bytes of an array's item as they came, or null where there is none. Exact: valid UTF-8 and text without lone
 * surrogates are one to one.
 */
export function itemBytes(document: JsonDocument, array: JsonArray, index: number): Uint8Array | null {
  const spans = document.spans.get(array);
  const start = spans?.[2 * index];
  const end = spans?.[2 * index + 1];
  return start === undefined || end === undefined ? null : Buffer.from(document.text.slice(start, end), 'utf8');
}
