/**
 * JSON without loss: what a parse gives, and what can be wrong with it.
 *
 * Numbers keep their text, objects are maps (so that `__proto__` is a member like any other).
 */

/** A number as it was written. */
export class ExactNumber {
  constructor(readonly text: string) {}
}

export type JsonArray = readonly JsonValue[];
export type JsonObject = ReadonlyMap<string, JsonValue>;
export type JsonValue = null | boolean | string | ExactNumber | JsonArray | JsonObject;

export type JsonFaultReason =
  'invalid_utf8' | 'invalid_json' | 'duplicate_member' | 'lone_surrogate' | 'too_deep' | 'exponent_too_long';

export interface JsonFault {
  readonly reason: JsonFaultReason;
  /** Place in the decoded text, in UTF-16 code units from 0. */
  readonly offset: number;
  /** For people: printable, at most 200 characters. */
  readonly detail: string;
}

export interface JsonDocument {
  readonly text: string;
  readonly value: JsonValue;
  /** In the order of their offsets. While there is one, the value around it must not be trusted. */
  readonly faults: readonly JsonFault[];
  /** Per array: start and end (exclusive) of each item in `text`, two numbers an item. */
  readonly spans: ReadonlyMap<JsonArray, readonly number[]>;
}

export type JsonKind = 'null' | 'boolean' | 'string' | 'number' | 'array' | 'object';

export function isJsonArray(value: JsonValue | undefined): value is JsonArray {
  return Array.isArray(value);
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return value instanceof Map;
}

export function jsonKind(value: JsonValue): JsonKind {
  if (value === null) return 'null';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'boolean';
  if (value instanceof ExactNumber) return 'number';
  return isJsonArray(value) ? 'array' : 'object';
}

/** Whether text holds a surrogate without its partner: such text has no UTF-8 form, so two of them could hash alike. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Characters of a foreign text that a detail shows. */
const SHOWN_CHARACTERS = 60;

const UNPRINTABLE = /\p{C}/gu;

/** A foreign text for a detail: clipped, and without NUL, other controls and lone surrogates, so that it can be stored. */
export function quoted(text: string): string {
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  return `"${shown.replace(UNPRINTABLE, '\ufffd')}"`;
}
