/** The parser behind `parseJson`: one pass by recursive descent, as far as the depth limit goes. */
import { MAX_EXPONENT_DIGITS } from './decimal';
import {
  ExactNumber,
  hasLoneSurrogate,
  quoted,
  type JsonArray,
  type JsonFault,
  type JsonFaultReason,
  type JsonObject,
  type JsonValue,
} from './json-value';

/** Containers within containers that are read; the outermost one counts as 1. */
export const MAX_JSON_DEPTH = 64;

/** Ends a parse. `parseJson` turns it into an answer. */
export class JsonSyntaxError extends Error {
  constructor(readonly fault: JsonFault) {
    super(fault.detail);
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const HEX4 = /^[0-9a-fA-F]{4}$/;
const SIMPLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

export class JsonParser {
  readonly faults: JsonFault[] = [];
  readonly spans = new Map<JsonArray, readonly number[]>();
  private at = 0;

  constructor(private readonly text: string) {}

  document(): JsonValue {
    this.skipSpace();
    const value = this.value(1);
    this.skipSpace();
    if (this.at < this.text.length) this.fail('nothing may follow the value');
    return value;
  }

  /** Reads the value that begins here. `depth` is the one that a container beginning here has. */
  private value(depth: number): JsonValue {
    const code = this.text.charCodeAt(this.at);
    if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (depth > MAX_JSON_DEPTH) return this.tooDeep();
      return code === OPEN_BRACE ? this.object(depth) : this.array(depth);
    }
    return this.scalar(code);
  }

  private scalar(code: number): JsonValue {
    if (code === QUOTE) return this.string();
    if (code === MINUS || isDigit(code)) return this.number(code);
    if (this.text.startsWith('true', this.at)) return this.literal(4, true);
    if (this.text.startsWith('false', this.at)) return this.literal(5, false);
    if (this.text.startsWith('null', this.at)) return this.literal(4, null);
    return this.fail('a value is expected');
  }

  private literal<T extends boolean | null>(length: number, value: T): T {
    this.at += length;
    return value;
  }

  private object(depth: number): JsonObject {
    const members = new Map<string, JsonValue>();
    if (this.isEmpty(CLOSE_BRACE)) return members;
    do {
      const nameAt = this.at;
      const name = this.name();
      if (members.has(name)) this.note('duplicate_member', nameAt, `the member ${quoted(name)} is repeated`);
      members.set(name, this.value(depth + 1));
    } while (this.hasNext(CLOSE_BRACE));
    return members;
  }

  private array(depth: number): JsonArray {
    const items: JsonValue[] = [];
    const spans: number[] = [];
    this.spans.set(items, spans);
    if (this.isEmpty(CLOSE_BRACKET)) return items;
    do {
      const start = this.at;
      items.push(this.value(depth + 1));
      spans.push(start, this.at);
    } while (this.hasNext(CLOSE_BRACKET));
    return items;
  }

  /** Steps into a container; true if it ends at once. */
  private isEmpty(closer: number): boolean {
    this.at += 1;
    this.skipSpace();
    if (this.text.charCodeAt(this.at) !== closer) return false;
    this.at += 1;
    return true;
  }

  /** After a member or item: steps over the comma, or over the closer. */
  private hasNext(closer: number): boolean {
    this.skipSpace();
    const code = this.text.charCodeAt(this.at);
    if (code !== COMMA && code !== closer) this.fail(`"," or "${String.fromCharCode(closer)}" is expected`);
    this.at += 1;
    if (code === closer) return false;
    this.skipSpace();
    return true;
  }

  /** A member's name with its colon; stops at the value. */
  private name(): string {
    if (this.text.charCodeAt(this.at) !== QUOTE) this.fail('a member name is expected');
    const name = this.string();
    this.skipSpace();
    if (this.text.charCodeAt(this.at) !== COLON) this.fail('":" is expected');
    this.at += 1;
    this.skipSpace();
    return name;
  }

  /**
   * Notes `too_deep` and steps over the container here, checking its syntax only. A loop, not a recursion: a payload
   * can nest as many levels as it has bytes.
   */
  private tooDeep(): null {
    this.note('too_deep', this.at, `nested more than ${MAX_JSON_DEPTH} levels deep`);
    const closers: number[] = [];
    do {
      const code = this.text.charCodeAt(this.at);
      if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        const closer = code === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
        if (!this.isEmpty(closer)) {
          closers.push(closer);
          if (closer === CLOSE_BRACE) this.name();
          continue;
        }
      } else {
        this.scalar(code);
      }
      this.closeAll(closers);
    } while (closers.length > 0);
    return null;
  }

  /** After a value: closes every container that ends here, and stops at the next value. */
  private closeAll(closers: number[]): void {
    for (let closer = closers.at(-1); closer !== undefined; closer = closers.at(-1)) {
      if (this.hasNext(closer)) {
        if (closer === CLOSE_BRACE) this.name();
        return;
      }
      closers.pop();
    }
  }

  private string(): string {
    const { text } = this;
    const start = this.at + 1;
    for (let at = start; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.at = at + 1;
        return text.slice(start, at);
      }
      if (code === BACKSLASH) return this.escapedString(start, at);
      if (code < 0x20) return this.fail('a control character must be escaped', at);
    }
    return this.fail('the string does not end', start - 1);
  }

  /** The rest of a string whose first escape is at `escapeAt`. */
  private escapedString(start: number, escapeAt: number): string {
    const { text } = this;
    let value = text.slice(start, escapeAt);
    let at = escapeAt;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.at = at + 1;
        // Valid UTF-8 has no surrogates of its own, so that only an escape can leave one alone.
        if (hasLoneSurrogate(value)) this.note('lone_surrogate', start - 1, 'a string holds a lone surrogate');
        return value;
      }
      if (code < 0x20) return this.fail('a control character must be escaped', at);
      if (code === BACKSLASH) {
        const escaped = this.escape(at);
        value += escaped;
        at += text[at + 1] === 'u' ? 6 : 2;
      } else {
        const runStart = at;
        while (at < text.length && isPlain(text.charCodeAt(at))) at += 1;
        value += text.slice(runStart, at);
      }
    }
    return this.fail('the string does not end', start - 1);
  }

  private escape(at: number): string {
    const letter = this.text[at + 1] ?? '';
    if (letter === 'u') {
      const hex = this.text.slice(at + 2, at + 6);
      if (HEX4.test(hex)) return String.fromCharCode(Number.parseInt(hex, 16));
    }
    return SIMPLE_ESCAPES.get(letter) ?? this.fail('an escape that JSON does not have', at);
  }

  private number(first: number): ExactNumber {
    const start = this.at;
    if (first === MINUS) this.at += 1;
    if (this.text.charCodeAt(this.at) === ZERO) this.at += 1;
    else this.digits();
    if (this.text.charCodeAt(this.at) === POINT) {
      this.at += 1;
      this.digits();
    }
    // 0x20 folds E into e.
    if ((this.text.charCodeAt(this.at) | 0x20) === 0x65) {
      this.at += 1;
      const sign = this.text.charCodeAt(this.at);
      if (sign === PLUS || sign === MINUS) this.at += 1;
      this.exponent(start);
    }
    return new ExactNumber(this.text.slice(start, this.at));
  }

  private exponent(numberStart: number): void {
    const start = this.at;
    this.digits();
    let first = start;
    while (first < this.at && this.text.charCodeAt(first) === ZERO) first += 1;
    if (this.at - first <= MAX_EXPONENT_DIGITS) return;
    this.note('exponent_too_long', numberStart, `an exponent of more than ${MAX_EXPONENT_DIGITS} digits`);
  }

  private digits(): void {
    const start = this.at;
    while (isDigit(this.text.charCodeAt(this.at))) this.at += 1;
    if (this.at === start) this.fail('a digit is expected');
  }

  private skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at += 1;
    }
  }

  private note(reason: JsonFaultReason, offset: number, what: string): void {
    this.faults.push({ reason, offset, detail: this.place(what, offset) });
  }

  private fail(what: string, offset = this.at): never {
    throw new JsonSyntaxError({ reason: 'invalid_json', offset, detail: this.place(what, offset) });
  }

  private place(what: string, offset: number): string {
    return `${what}, at character ${offset}`;
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Stands for itself within a string. False for the NaN beyond the end. */
function isPlain(code: number): boolean {
  return code >= 0x20 && code !== QUOTE && code !== BACKSLASH;
}
