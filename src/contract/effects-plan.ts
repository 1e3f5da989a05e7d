/**
 * What an applied message changes (design sections 6 and 7): the rules of a contract against one message.
 *
 * Planned while decoding, so that bad data is known before the transaction begins. All matching rules take effect, in
 * the order of the contract; if one of them is impossible none does.
 */
import { canonicalNumber } from './canonical';
import { parseDecimal, plainText, readDecimal } from './decimal';
import { idFault, MAX_ID_BYTES } from './identity';
import { ExactNumber, jsonKind, type JsonValue } from './json-value';
import { compilePointer, type PointerTokens } from './pointer';
import { compileTemplate, renderField, renderTopic, type Template, type TemplateValues } from './template';
import type { EffectPlan, EffectRule, FeedContract, PlannedEffect, ValueSource, When } from './types';
import { compileSource, Unreadable, type CompiledSource, type MessageReader } from './values';

/** What can make the effect of one message impossible before the incident's state is known. */
export type PlanFailure =
  | 'no_incident'
  | 'incident_id_too_long'
  | 'incident_id_invalid'
  | 'value_missing'
  /** A user property that came twice, or text that arrived garbled. */
  | 'value_unreadable'
  | 'value_too_large'
  | 'not_a_number'
  | 'number_out_of_range'
  | 'field_value_missing'
  | 'field_invalid'
  | 'field_too_long'
  | 'forward_topic_invalid';

/**
 * Bytes of canonical JSON that a `set` or `append` may write. A field is read with every message that touches it, and
 * shown whole: what is larger is a document, not a state.
 */
export const MAX_VALUE_BYTES = 65_536;

export type IncidentReading =
  /** null: the message has none. */
  { readonly ok: true; readonly id: string | null } | Failure;

interface Failure {
  readonly ok: false;
  readonly reason: PlanFailure;
  readonly detail: string;
}

/** Must be equal, by value: a text, a truth value, null, or the canonical text of a number. */
interface Condition {
  readonly tokens: PointerTokens;
  readonly equals: string | boolean | null | { readonly number: string };
}

interface CompiledRule {
  readonly do: EffectRule['do'];
  readonly when: readonly Condition[];
  readonly field: Template;
  readonly value: CompiledSource;
}

export interface CompiledEffects {
  readonly rules: readonly CompiledRule[];
  readonly forwardTopic: Template | null;
}

/**
 * `effects: off` decides and records only: nothing is forwarded either, or trying a feed out would reach the consumers
 * of the one in service.
 */
export function compileEffects(contract: FeedContract): CompiledEffects {
  if (contract.effects === 'off') return { rules: [], forwardTopic: null };
  const batch = contract.items !== null;
  return {
    rules: contract.effects.map((rule) => ({
      do: rule.do,
      when: compileWhen(rule.when),
      field: compileTemplate(rule.field),
      value: compileSource(valueSource(rule), batch),
    })),
    forwardTopic: contract.forward === null ? null : compileTemplate(contract.forward.topic),
  };
}

/** Where a rule reads its value. */
export function valueSource(rule: EffectRule): ValueSource {
  switch (rule.do) {
    case 'increment':
      return rule.by;
    case 'append':
      return rule.value;
    case 'set':
    case 'advance':
      return rule.to;
  }
}

/**
 * The incident that a message names: a text of 1 to 512 bytes, or an integer of up to 38 digits. Absent and null mean
 * that it names none. What is there and cannot be an id fails the message even if no rule needs it, or the entry would
 * be missing from what is found under the incident.
 */
export function readIncident(source: CompiledSource | null, reader: MessageReader): IncidentReading {
  const value = source === null ? undefined : reader.read(source);
  if (value === undefined || value === null) return { ok: true, id: null };
  if (value instanceof Unreadable) return invalidIncident(`it is ${value.why}`);
  if (value instanceof ExactNumber) {
    const parse = parseDecimal(value.text);
    const digits = parse.ok && parse.value.exponent >= 0n ? plainText(parse.value) : null;
    return digits === null ? invalidIncident('it is no integer of up to 38 digits') : { ok: true, id: digits };
  }
  if (typeof value !== 'string') return invalidIncident(`it is of type ${jsonKind(value)}`);
  const why = idFault(value);
  if (why === null) return { ok: true, id: value };
  if (why !== 'too_long') return invalidIncident(`it is ${why === 'nul' ? 'text with NUL' : why}`);
  return failure('incident_id_too_long', `the incident id has more than ${MAX_ID_BYTES} bytes`);
}

/** `payload` gives the message's own bytes; asked for only if they are forwarded. */
export function planEffects(compiled: CompiledEffects, values: TemplateValues, payload: () => Uint8Array): EffectPlan {
  const effects: PlannedEffect[] = [];
  for (const rule of compiled.rules) {
    if (!matches(rule.when, values.reader)) continue;
    if (values.incidentId === null) return failure('no_incident', `${rule.do}: the message names no incident`);
    const field = renderField(rule.field, values);
    if (!field.ok) return field;
    const value = planValue(rule, values.reader);
    if (!value.ok) return value;
    effects.push(plannedEffect(rule.do, field.text, value.text));
  }
  if (compiled.forwardTopic === null) return { ok: true, effects, forward: null };
  const topic = renderTopic(compiled.forwardTopic, values);
  return topic.ok ? { ok: true, effects, forward: { topic: topic.text, payload: payload() } } : topic;
}

function compileWhen(when: When): readonly Condition[] {
  return when.map(({ pointer, equals }) => ({
    tokens: compilePointer(pointer),
    equals: typeof equals === 'number' ? { number: canonicalNumber(String(equals)) } : equals,
  }));
}

/** All must hold; none is no condition. A member that is absent equals nothing, not even null. */
function matches(when: readonly Condition[], reader: MessageReader): boolean {
  for (const { tokens, equals } of when) {
    if (!isEqual(reader.at(tokens), equals)) return false;
  }
  return true;
}

function isEqual(value: JsonValue | undefined, equals: Condition['equals']): boolean {
  if (typeof equals !== 'object' || equals === null) return value === equals;
  return value instanceof ExactNumber && canonicalNumber(value.text) === equals.number;
}

type PlannedValue = { readonly ok: true; readonly text: string } | Failure;

function planValue(rule: CompiledRule, reader: MessageReader): PlannedValue {
  const value = reader.read(rule.value);
  if (value === undefined) return failure('value_missing', `${rule.do}: the message does not have the value`);
  if (value instanceof Unreadable) return failure('value_unreadable', `${rule.do}: the value is ${value.why}`);
  return rule.do === 'set' || rule.do === 'append' ? planText(rule.do, reader.text(value)) : planNumber(rule.do, value);
}

function planText(effect: string, text: string): PlannedValue {
  // UTF-8 has no fewer bytes than UTF-16 has code units.
  const tooLarge = text.length > MAX_VALUE_BYTES || Buffer.byteLength(text, 'utf8') > MAX_VALUE_BYTES;
  if (!tooLarge) return { ok: true, text };
  return failure('value_too_large', `${effect}: the value has more than ${MAX_VALUE_BYTES} bytes of canonical JSON`);
}

/** A number, or a text that reads as one (`const` and user properties have no others). */
function planNumber(effect: string, value: JsonValue): PlannedValue {
  const text = value instanceof ExactNumber ? value.text : value;
  if (typeof text !== 'string') return failure('not_a_number', `${effect}: the value is of type ${jsonKind(value)}`);
  const reading = readDecimal(text);
  if (reading.ok) return reading;
  const what = reading.reason === 'not_a_number' ? 'is no number' : 'has more than 38 digits on a side of the point';
  return failure(reading.reason, `${effect}: the value ${what}`);
}

function plannedEffect(effect: EffectRule['do'], field: string, text: string): PlannedEffect {
  switch (effect) {
    case 'increment':
      return { do: effect, field, by: text };
    case 'append':
      return { do: effect, field, value: text };
    case 'set':
    case 'advance':
      return { do: effect, field, to: text };
  }
}

function invalidIncident(what: string): Failure {
  return failure('incident_id_invalid', `the incident id cannot be taken: ${what}`);
}

function failure(reason: PlanFailure, detail: string): Failure {
  return { ok: false, reason, detail };
}
