/**
 * The identity of a message (design section 4): producer-controlled fields only, compared as they are.
 *
 * A part that cannot be taken exactly makes the message malformed, with a reason `<part>_<why>` of its own; nothing is
 * ever turned into text that another value could also become.
 */
import { integerOfNumber, integerOfString } from './decimal';
import { ExactNumber, hasLoneSurrogate, isJsonArray } from './json-value';
import type { Identity, IdentityRule } from './types';
import { compileSource, Unreadable, type CompiledSource, type MessageReader, type ReadValue } from './values';

/** Bytes of UTF-8 that an identity part or an incident id may have. */
export const MAX_ID_BYTES = 512;

export type PartFault =
  | 'missing'
  | 'null'
  | 'boolean'
  | 'object'
  | 'array'
  | 'empty'
  | 'negative'
  | 'fractional'
  | 'not_digits'
  | 'too_long'
  | 'nul'
  | 'ill_formed'
  | 'repeated';

type PartName = 'agency' | 'source' | 'epoch' | 'sequence' | 'event_id';
type PartReading = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: PartFault };

export type IdentityReading =
  | { readonly ok: true; readonly identity: Identity }
  | { readonly ok: false; readonly reason: `${PartName}_${PartFault}`; readonly detail: string };

/** One part: where it is read, how, and where it goes. */
interface CompiledPart {
  readonly name: PartName;
  readonly source: CompiledSource;
  readonly read: (value: ReadValue) => PartReading;
}

/** A sequence or numeric epoch: a number to identity, whatever form it comes in; `7`, `"7"` and `"0007"` are one. */
export interface CompiledCount {
  readonly name: 'epoch' | 'sequence';
  readonly source: CompiledSource;
}

export interface CompiledIdentity {
  readonly keyVersion: number;
  readonly mode: IdentityRule['mode'];
  readonly hasEpoch: boolean;
  /** Agency and source, then epoch and sequence, or the parts of the event id. */
  readonly parts: readonly CompiledPart[];
  /** Those of the parts that are numbers. */
  readonly counts: readonly CompiledCount[];
}

/** `batch`: the contract has `items`. */
export function compileIdentity(rule: IdentityRule, batch: boolean): CompiledIdentity {
  const part = (name: PartName, source: IdentityRule['agency'], read: CompiledPart['read']): CompiledPart => ({
    name,
    source: compileSource(source, batch),
    read,
  });
  const parts = [part('agency', rule.agency, readId), part('source', rule.source, readId)];
  if (rule.mode === 'eventId') {
    parts.push(...rule.eventId.map((source) => part('event_id', source, readId)));
    return { keyVersion: rule.version, mode: rule.mode, hasEpoch: false, parts, counts: [] };
  }
  if (rule.epoch !== null) {
    parts.push(part('epoch', rule.epoch.value, rule.epoch.order === 'numeric' ? readCount : readId));
  }
  parts.push(part('sequence', rule.sequence, readCount));
  const counts = parts.flatMap(({ name, source, read }) => {
    return read === readCount && (name === 'epoch' || name === 'sequence') ? [{ name, source }] : [];
  });
  return { keyVersion: rule.version, mode: rule.mode, hasEpoch: rule.epoch !== null, parts, counts };
}

/** The identity, or the first part that cannot be taken. */
export function readIdentity(compiled: CompiledIdentity, reader: MessageReader): IdentityReading {
  const texts: string[] = [];
  for (const part of compiled.parts) {
    const reading = part.read(reader.read(part.source));
    if (!reading.ok) {
      const place = part.name === 'event_id' ? `event id part ${texts.length - 1}` : part.name;
      return { ok: false, reason: `${part.name}_${reading.why}`, detail: `${place}: ${EXPLANATIONS[reading.why]}` };
    }
    texts.push(reading.text);
  }
  const [agency = '', sourceId = ''] = texts;
  if (compiled.mode === 'eventId') {
    return { ok: true, identity: { agency, sourceId, epoch: null, sequence: null, eventId: texts.slice(2) } };
  }
  const epoch = compiled.hasEpoch ? (texts[2] ?? null) : null;
  return { ok: true, identity: { agency, sourceId, epoch, sequence: texts.at(-1) ?? null, eventId: null } };
}

/** Why a text cannot be stored and compared as an id, or null if it can. */
export function idFault(text: string): 'empty' | 'too_long' | 'nul' | 'ill_formed' | null {
  if (text === '') return 'empty';
  // A UTF-16 code unit has 1 to 3 bytes in UTF-8, so that neither short texts nor huge ones need a count.
  if (text.length > MAX_ID_BYTES) return 'too_long';
  if (text.length * 3 > MAX_ID_BYTES && Buffer.byteLength(text, 'utf8') > MAX_ID_BYTES) return 'too_long';
  if (text.includes('\0')) return 'nul';
  return hasLoneSurrogate(text) ? 'ill_formed' : null;
}

/** Any text as it is, or a non-negative integer as its digits. */
function readId(value: ReadValue): PartReading {
  if (typeof value !== 'string') return readOther(value);
  const why = idFault(value);
  return why === null ? { ok: true, text: value } : { ok: false, why };
}

/** A sequence, or an epoch in numeric order: a non-negative integer of up to 38 digits, as a number or a digit string. */
function readCount(value: ReadValue): PartReading {
  if (typeof value !== 'string') return readOther(value);
  if (value.length > MAX_ID_BYTES) return { ok: false, why: 'too_long' };
  const reading = integerOfString(value);
  return reading.ok ? { ok: true, text: reading.digits } : reading;
}

function readOther(value: Exclude<ReadValue, string>): PartReading {
  if (value instanceof ExactNumber) {
    const reading = integerOfNumber(value.text);
    return reading.ok ? { ok: true, text: reading.digits } : reading;
  }
  if (value === undefined) return { ok: false, why: 'missing' };
  if (value === null) return { ok: false, why: 'null' };
  if (value instanceof Unreadable) return { ok: false, why: value.why };
  if (typeof value === 'boolean') return { ok: false, why: 'boolean' };
  return { ok: false, why: isJsonArray(value) ? 'array' : 'object' };
}

const EXPLANATIONS: Readonly<Record<PartFault, string>> = {
  missing: 'the message does not have it',
  null: 'it is null',
  boolean: 'it is true or false, neither text nor an integer',
  object: 'it is an object, neither text nor an integer',
  array: 'it is an array, neither text nor an integer',
  empty: 'it is the empty text',
  negative: 'it is a negative number',
  fractional: 'it is a number with a fraction',
  not_digits: 'it must be a whole number, or text of ASCII digits alone',
  too_long: `it has more than ${MAX_ID_BYTES} bytes, or as a number more than 38 digits`,
  nul: 'it holds the character NUL',
  ill_formed: 'it is not well-formed Unicode',
  repeated: 'the user property came more than once',
};
