/**
 * Where the values of a message are read (design section 7, "Values").
 *
 * Alternatives are tried in order and the first that is *present* counts. `null`, an empty text and an unreadable value
 * are present: what was sent decides, and a producer's fault never makes a later alternative speak for it.
 */
import type { JsonObject, JsonValue } from './json-value';
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
  | { readonly from: 'topicLevel'; readonly level: number }
  | { readonly from: 'userProperty'; readonly property: string; readonly name: string };

export type CompiledSource = readonly CompiledOrigin[];

/** `batch`: the contract has `items`. Without, a delivery is the message, and `envelope` reads the same as `pointer`. */
export function compileSource(source: ValueSource, batch: boolean): CompiledSource {
  return source.map((origin): CompiledOrigin => {
    if ('const' in origin) return { from: 'const', value: origin.const };
    if ('pointer' in origin) return { from: 'message', tokens: compilePointer(origin.pointer) };
    if ('topicLevel' in origin) return { from: 'topicLevel', level: origin.topicLevel };
    if ('userProperty' in origin) {
      return { from: 'userProperty', property: origin.userProperty, name: `userProperty:${origin.userProperty}` };
    }
    const tokens = compilePointer(origin.envelope);
    return batch ? { from: 'envelope', tokens, name: `envelope:${origin.envelope}` } : { from: 'message', tokens };
  });
}

/**
 * Reads the values of one message, and remembers those that came from outside it: they belong to what the message says,
 * hence to its digest.
 */
export class MessageReader {
  private levels: readonly string[] | null = null;
  private outside: Map<string, JsonValue> | null = null;

  constructor(
    readonly message: JsonValue,
    /** The whole payload; the message itself where the contract has no `items`. */
    private readonly envelope: JsonValue,
    private readonly delivery: Pick<Delivery, 'topic' | 'userProperties'>,
  ) {}

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
    this.remember('topic', this.delivery.topic);
    return this.delivery.topic;
  }

  /** `level` counts from 0. */
  topicLevel(level: number): string | Unreadable | undefined {
    this.levels ??= this.delivery.topic.split('/');
    const text = this.levels[level];
    if (text === undefined) return undefined;
    this.remember(`topicLevel:${level}`, text);
    return wellFormed(text);
  }

  /** What was read outside the message so far, by name; null for nothing. */
  outsideValues(): JsonObject | null {
    return this.outside;
  }

  private readOrigin(origin: CompiledOrigin): ReadValue {
    switch (origin.from) {
      case 'const':
        return origin.value;
      case 'message':
        return this.at(origin.tokens);
      case 'topicLevel':
        return this.topicLevel(origin.level);
      case 'envelope': {
        const value = getPointer(this.envelope, origin.tokens);
        if (value !== undefined) this.remember(origin.name, value);
        return value;
      }
      case 'userProperty':
        return this.userProperty(origin.property, origin.name);
    }
  }

  private userProperty(property: string, name: string): string | Unreadable | undefined {
    const { userProperties } = this.delivery;
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
    this.outside.set(name, value);
  }
}

function wellFormed(text: string): string | Unreadable {
  return text.includes('\ufffd') ? ILL_FORMED : text;
}
