/**
 * Where the values of a message are read (design section 7, "Values").
 *
 * Alternatives are tried in order and the first that is *present* counts. `null`, an empty text and an unreadable value
 * are present: what was sent decides, and a producer's fault never makes a later alternative speak for it.
 */
import { canonicalJson, canonicalNumber, canonicalString } from './canonical';
import { ExactNumber, isJsonArray, isJsonObject, type JsonValue } from './json-value';
import { compilePointer, getPointer, type PointerTokens } from './pointer';
import type { Delivery, ValueSource } from './types';

/** A value that is there and cannot be read as one exact value. */
export class Unreadable {
  constructor(
    /**
     * `repeated`: a user property that came more than once. `ill_formed`: a topic level or user property with U+FFFD,
     * which is what decoding leaves of bytes that are no UTF-8; two of them may have been different.
     */
    readonly why: 'repeated' | 'ill_formed',
  ) {}
}

const REPEATED = new Unreadable('repeated');
const ILL_FORMED = new Unreadable('ill_formed');

/** undefined: the message does not have it. */
export type ReadValue = JsonValue | Unreadable | undefined;

/** An origin with its pointer taken apart. `name`: what the digest calls a value from outside the message. */
type CompiledOrigin =
  | { readonly from: 'const'; readonly value: string }
  | { readonly from: 'message'; readonly tokens: PointerTokens }
  | { readonly from: 'envelope'; readonly tokens: PointerTokens; readonly name: string }
  | { readonly from: 'topicLevel'; readonly level: number; readonly name: string }
  | { readonly from: 'userProperty'; readonly property: string; readonly name: string };

export type CompiledSource = readonly CompiledOrigin[];

/** `batch`: the contract has `items`. Without, a delivery is the message, and `envelope` reads the same as `pointer`. */
export function compileSource(source: ValueSource, batch: boolean): CompiledSource {
  return source.map((origin): CompiledOrigin => {
    if ('const' in origin) return { from: 'const', value: origin.const };
    if ('pointer' in origin) return { from: 'message', tokens: compilePointer(origin.pointer) };
    if ('topicLevel' in origin) {
      return { from: 'topicLevel', level: origin.topicLevel, name: topicLevelName(origin.topicLevel) };
    }
    if ('userProperty' in origin) {
      return { from: 'userProperty', property: origin.userProperty, name: `userProperty:${origin.userProperty}` };
    }
    const tokens = compilePointer(origin.envelope);
    return batch ? { from: 'envelope', tokens, name: `envelope:${origin.envelope}` } : { from: 'message', tokens };
  });
}

/** What the messages of one delivery have in common, made ready once and not for each of them. */
export class DeliveryValues {
  private levels: readonly string[] | null = null;
  private readonly texts = new Map<JsonValue, string>();

  constructor(
    /** The whole payload. */
    readonly envelope: JsonValue,
    readonly delivery: Pick<Delivery, 'topic' | 'userProperties'>,
  ) {}

  /** `level` counts from 0. */
  topicLevel(level: number): string | undefined {
    this.levels ??= this.delivery.topic.split('/');
    return this.levels[level];
  }

  /** Canonical text of a value outside the messages. A large one would else be written anew for each of a thousand items. */
  keepText(value: JsonValue): string {
    let text = this.texts.get(value);
    if (text === undefined) this.texts.set(value, (text = canonicalJson(value)));
    return text;
  }

  /** Canonical text of any value. */
  text(value: JsonValue): string {
    return this.texts.get(value) ?? canonicalJson(value);
  }
}

/**
 * Reads the values of one message, and remembers those that came from outside it: they belong to what the message says,
 * hence to its digest.
 */
export class MessageReader {
  /** Canonical text of what was read outside the message, by name. */
  private outside: Map<string, string> | null = null;
  private said: JsonValue;

  constructor(
    readonly message: JsonValue,
    private readonly shared: DeliveryValues,
  ) {
    this.said = message;
  }

  read(source: CompiledSource): ReadValue {
    for (const origin of source) {
      const value = this.readOrigin(origin);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** A value of the message itself. */
  at(tokens: PointerTokens): JsonValue | undefined {
    return getPointer(this.message, tokens);
  }

  topic(): string {
    const { topic } = this.shared.delivery;
    this.remember('topic', topic);
    return topic;
  }

  /** `level` counts from 0. */
  topicLevel(level: number, name = topicLevelName(level)): string | Unreadable | undefined {
    const text = this.shared.topicLevel(level);
    if (text === undefined) return undefined;
    this.remember(name, text);
    return wellFormed(text);
  }

  /**
   * Takes the text that the source reads for the number of these digits, in what the digest is made of. A number that
   * is sent again as text, or with leading zeros, is the same number; without this its replay would look like a conflict.
   * After everything is read: reading an outside value again brings its text back.
   */
  takeAsNumber(source: CompiledSource, digits: string): void {
    for (const origin of source) {
      const value = this.readOrigin(origin);
      if (value === undefined) continue;
      if (typeof value !== 'string') return;
      if (origin.from === 'message') this.said = replaceAt(this.said, origin.tokens, new ExactNumber(digits));
      else if (origin.from !== 'const') this.outside?.set(origin.name, canonicalNumber(digits));
      return;
    }
  }

  /** The message as its digest reads it. */
  get digestMessage(): JsonValue {
    return this.said;
  }

  /** Canonical object of what was read outside the message so far, by name; null for nothing. */
  outsideText(): string | null {
    const { outside } = this;
    if (outside === null) return null;
    const names = [...outside.keys()].sort();
    return `{${names.map((name) => `${canonicalString(name)}:${outside.get(name)}`).join(',')}}`;
  }

  /** Characters of it, names apart. */
  outsideCharacters(): number {
    let characters = 0;
    for (const text of this.outside?.values() ?? []) characters += text.length;
    return characters;
  }

  /** Canonical text of a value that was read. */
  text(value: JsonValue): string {
    return this.shared.text(value);
  }

  private readOrigin(origin: CompiledOrigin): ReadValue {
    switch (origin.from) {
      case 'const':
        return origin.value;
      case 'message':
        return this.at(origin.tokens);
      case 'topicLevel':
        return this.topicLevel(origin.level, origin.name);
      case 'envelope': {
        const value = getPointer(this.shared.envelope, origin.tokens);
        if (value !== undefined) this.remember(origin.name, value);
        return value;
      }
      case 'userProperty':
        return this.userProperty(origin.property, origin.name);
    }
  }

  private userProperty(property: string, name: string): string | Unreadable | undefined {
    const { userProperties } = this.shared.delivery;
    // Own properties only, or a feed that names `constructor` would read one off the prototype.
    const value = Object.hasOwn(userProperties, property) ? userProperties[property] : undefined;
    if (value === undefined) return undefined;
    this.remember(name, value);
    if (typeof value === 'string') return wellFormed(value);
    const [first, ...rest] = value;
    return first === undefined || rest.length === 0 ? first && wellFormed(first) : REPEATED;
  }

  private remember(name: string, value: JsonValue): void {
    this.outside ??= new Map();
    this.outside.set(name, this.shared.keepText(value));
  }
}

function topicLevelName(level: number): string {
  return `topicLevel:${level}`;
}

/** A copy with the value at the pointer replaced, which is there. */
function replaceAt(value: JsonValue, tokens: PointerTokens, replacement: JsonValue): JsonValue {
  const [token, ...rest] = tokens;
  if (token === undefined) return replacement;
  if (isJsonArray(value)) {
    return value.map((item, index) => (String(index) === token ? replaceAt(item, rest, replacement) : item));
  }
  if (!isJsonObject(value)) return value;
  const member = value.get(token);
  return member === undefined ? value : new Map(value).set(token, replaceAt(member, rest, replacement));
}

function wellFormed(text: string): string | Unreadable {
  return text.includes('\ufffd') ? ILL_FORMED : text;
}
