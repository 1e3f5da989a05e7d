/**
 * Templates of effect fields and forward topics (design section 7).
 *
 * `{topic}`, `{topic[n]}` (levels from 0), `{incident}`, `{agency}`, `{source}`, `{/pointer}` (into the message); all
 * else is literal. Braces have no escape: a literal `{` or `}` is refused, and so is a pointer with `}`.
 *
 * A value may be a text or a number; a number stands as its exact decimal text, so that `7`, `7.0` and `"7"` are one.
 */
import { readDecimal } from './decimal';
import { ExactNumber, hasLoneSurrogate, quoted } from './json-value';
import { escapeToken, parsePointer, type PointerTokens } from './pointer';
import { MAX_TOPIC_BYTES } from './topic-filter';
import type { Identity } from './types';
import { Unreadable, type MessageReader, type ReadValue } from './values';

export type TemplatePart =
  | { readonly kind: 'text'; readonly text: string }
  /** Start of the placeholder in the template, in UTF-16 code units. */
  | (Placeholder & { readonly offset: number });

type Placeholder =
  | { readonly kind: 'topic' | 'incident' | 'agency' | 'source' }
  | { readonly kind: 'topicLevel'; readonly level: number }
  | { readonly kind: 'pointer'; readonly pointer: string; readonly tokens: PointerTokens };

export type Template = readonly TemplatePart[];

export type TemplateParse =
  | { readonly ok: true; readonly parts: Template }
  /** `offset`: where the trouble begins, in UTF-16 code units from 0. */
  | { readonly ok: false; readonly error: string; readonly offset: number };

/** What a template is filled with. */
export interface TemplateValues {
  readonly reader: MessageReader;
  readonly identity: Identity;
  readonly incidentId: string | null;
}

export type FieldFailure = 'no_incident' | 'field_value_missing' | 'field_invalid' | 'field_too_long';
export type TopicFailure = 'no_incident' | 'forward_topic_invalid';

export type Rendering<Failure extends string> =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: Failure; readonly detail: string };

/** Bytes of UTF-8 that the path of a field may have. */
export const MAX_FIELD_BYTES = 512;

const TOPIC_LEVEL = /^topic\[(0|[1-9]\d{0,4})\]$/;

export function parseTemplate(text: string): TemplateParse {
  const parts: TemplatePart[] = [];
  let at = 0;
  while (at < text.length) {
    const open = text.indexOf('{', at);
    const literal = text.slice(at, open === -1 ? text.length : open);
    const stray = literal.indexOf('}');
    if (stray !== -1) return { ok: false, error: '"}" without "{"', offset: at + stray };
    if (literal !== '') parts.push({ kind: 'text', text: literal });
    if (open === -1) break;
    const close = text.indexOf('}', open);
    if (close === -1) return { ok: false, error: '"{" without "}"', offset: open };
    const placeholder = parsePlaceholder(text.slice(open + 1, close));
    if (placeholder === null) {
      const known = '{topic}, {topic[n]}, {incident}, {agency}, {source} or {/pointer}';
      return { ok: false, error: `a placeholder is one of ${known}`, offset: open };
    }
    parts.push({ ...placeholder, offset: open });
    at = close + 1;
  }
  return { ok: true, parts };
}

/**
 * Offset of the first placeholder that shares a level with another one, or null. In a field such a template may write
 * two different values to one path (`{/a}-{/b}` with `x-y`, `z` and with `x`, `y-z`).
 */
export function sharedLevel(parts: Template): number | null {
  let taken = false;
  for (const part of parts) {
    if (part.kind === 'text') {
      taken &&= !part.text.includes('/');
    } else {
      if (taken) return part.offset;
      taken = true;
    }
  }
  return null;
}

/** The template of a loaded contract. Throws `RangeError` for one that the loader must have refused. */
export function compileTemplate(text: string): Template {
  const parse = parseTemplate(text);
  if (!parse.ok) throw new RangeError(`not a template: ${parse.error}`);
  return parse.parts;
}

/** Path of a field. Values are escaped as RFC 6901 tokens: one value is one level, whatever it holds. */
export function renderField(template: Template, values: TemplateValues): Rendering<FieldFailure> {
  let path = '';
  for (const part of template) {
    if (part.kind === 'text') {
      path += part.text;
      continue;
    }
    const value = placeholderText(part, values);
    if (!value.ok) {
      const missing = value.why === 'missing' || value.why === 'empty';
      const reason = value.why === 'no_incident' ? value.why : missing ? 'field_value_missing' : 'field_invalid';
      return { ok: false, reason, detail: `field: ${describe(part)} ${EXPLANATIONS[value.why]}` };
    }
    path += escapeToken(value.text);
  }
  if (path === '' || path.includes('\0') || hasLoneSurrogate(path)) {
    return {
      ok: false,
      reason: 'field_invalid',
      detail: 'field: the path is empty, holds NUL or is ill-formed Unicode',
    };
  }
  if (Buffer.byteLength(path, 'utf8') > MAX_FIELD_BYTES) {
    return { ok: false, reason: 'field_too_long', detail: `field: the path has more than ${MAX_FIELD_BYTES} bytes` };
  }
  return { ok: true, text: path };
}

/**
 * Topic name of a forwarded message (MQTT 5.0 section 4.7). A value is one level of it, so that no message can name a
 * topic that its contract does not; only `{topic}` brings its levels along.
 */
export function renderTopic(template: Template, values: TemplateValues): Rendering<TopicFailure> {
  let topic = '';
  for (const part of template) {
    if (part.kind === 'text') {
      topic += part.text;
      continue;
    }
    const value = placeholderText(part, values);
    if (!value.ok) {
      const reason = value.why === 'no_incident' ? value.why : 'forward_topic_invalid';
      return { ok: false, reason, detail: `forward topic: ${describe(part)} ${EXPLANATIONS[value.why]}` };
    }
    if (part.kind !== 'topic' && value.text.includes('/')) {
      return { ok: false, reason: 'forward_topic_invalid', detail: `forward topic: ${describe(part)} holds "/"` };
    }
    topic += value.text;
  }
  const fault = topicFault(topic);
  return fault === null
    ? { ok: true, text: topic }
    : { ok: false, reason: 'forward_topic_invalid', detail: `forward topic: ${fault}` };
}

/** MQTT 1.5.4: controls and noncharacters may be refused by closing the connection, as mosquitto does. */
const UNSAFE = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;
/** More levels than mosquitto takes (its TOPIC_HIERARCHY_LIMIT); it too closes the connection. */
const MAX_SEPARATORS = 199;

function topicFault(topic: string): string | null {
  if (topic === '') return 'it is empty';
  if (topic.startsWith('$')) return 'it begins with "$"';
  if (/[+#\0]/.test(topic)) return 'it holds "+", "#" or NUL';
  if (UNSAFE.test(topic)) return 'it holds a control character or a noncharacter';
  if (topic.split('/').length - 1 > MAX_SEPARATORS) return `it has more than ${MAX_SEPARATORS + 1} levels`;
  if (hasLoneSurrogate(topic)) return 'it is not well-formed Unicode';
  return Buffer.byteLength(topic, 'utf8') > MAX_TOPIC_BYTES ? `it has more than ${MAX_TOPIC_BYTES} bytes` : null;
}

type ValueFault = 'no_incident' | 'missing' | 'empty' | 'wrong_type' | 'unreadable' | 'out_of_range';
type PlaceholderText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly why: ValueFault };

const EXPLANATIONS: Readonly<Record<ValueFault, string>> = {
  no_incident: 'is absent',
  missing: 'is absent',
  empty: 'is empty',
  wrong_type: 'is neither text nor a number',
  unreadable: 'is not well-formed Unicode',
  out_of_range: 'has more than 38 digits on a side of the point',
};

function placeholderText(part: Placeholder, values: TemplateValues): PlaceholderText {
  switch (part.kind) {
    case 'topic':
      return textOf(values.reader.topic());
    case 'topicLevel':
      return textOf(values.reader.topicLevel(part.level));
    case 'agency':
      return textOf(values.identity.agency);
    case 'source':
      return textOf(values.identity.sourceId);
    case 'incident':
      return values.incidentId === null ? { ok: false, why: 'no_incident' } : textOf(values.incidentId);
    case 'pointer':
      return textOf(values.reader.at(part.tokens));
  }
}

function textOf(value: ReadValue): PlaceholderText {
  if (value === undefined) return { ok: false, why: 'missing' };
  if (value instanceof Unreadable) return { ok: false, why: 'unreadable' };
  if (value instanceof ExactNumber) {
    const reading = readDecimal(value.text);
    return reading.ok ? reading : { ok: false, why: 'out_of_range' };
  }
  if (typeof value !== 'string') return { ok: false, why: 'wrong_type' };
  return value === '' ? { ok: false, why: 'empty' } : { ok: true, text: value };
}

function parsePlaceholder(name: string): Placeholder | null {
  if (name === 'topic' || name === 'incident' || name === 'agency' || name === 'source') return { kind: name };
  const level = TOPIC_LEVEL.exec(name)?.[1];
  if (level !== undefined) return { kind: 'topicLevel', level: Number(level) };
  const tokens = name.startsWith('/') ? parsePointer(name) : null;
  return tokens === null ? null : { kind: 'pointer', pointer: name, tokens };
}

/** The placeholder, for a detail. */
function describe(part: Placeholder): string {
  if (part.kind === 'topicLevel') return `{topic[${part.level}]}`;
  return part.kind === 'pointer' ? `the value at ${quoted(part.pointer)}` : `{${part.kind}}`;
}
