/** Payloads as clients see them: the bytes of one message, and its JSON without rounding. */
import { compareDecimals, parseDecimal } from '../../contract/decimal';
import { ExactNumber, isJsonArray, isJsonObject } from '../../contract/json-value';
import type { JsonValue } from '../../contract/json-value';
import { parseJson } from '../../contract/json';

/** JSON of a message for the `JSON` scalar; null where the bytes are no JSON that can be read in one way only. */
export function jsonOfPayload(bytes: Uint8Array): unknown {
  const parse = parseJson(bytes);
  return parse.ok && parse.document.faults.length === 0 ? plainJson(parse.document.value) : null;
}

/** Canonical JSON text, as incidents are stored in, for the `JSON` scalar. */
export function jsonOfText(text: string): unknown {
  return jsonOfPayload(Buffer.from(text, 'utf8'));
}

/**
 * A parsed value as JSON.stringify takes it. Objects have no prototype, so that `__proto__` is a member like any other;
 * a number that a double would change becomes the text of its digits.
 */
export function plainJson(value: JsonValue): unknown {
  if (value instanceof ExactNumber) return plainNumber(value.text);
  if (isJsonArray(value)) return value.map(plainJson);
  if (!isJsonObject(value)) return value;
  const object = Object.create(null) as Record<string, unknown>;
  for (const [name, member] of value) object[name] = plainJson(member);
  return object;
}

/** Exact where the shortest text of the double has the very value, as with `0.1`. */
function plainNumber(text: string): number | string {
  const double = Number(text);
  const exact = parseDecimal(text);
  const shown = Number.isFinite(double) ? parseDecimal(String(double)) : null;
  if (exact.ok && shown?.ok === true && compareDecimals(exact.value, shown.value) === 0) return double;
  return text;
}

/** The text of a payload, or null where the bytes are not UTF-8. */
export function textOfPayload(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
