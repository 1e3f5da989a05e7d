/**
 * RFC 8785 canonical JSON, with the departure of design section 4: a number that is an integer, has over 17 significant
 * digits or lies outside double range, and whose value RFC 8785 would change, is written `<digits>e<exponent>`.
 *
 * So two numbers of equal value have equal text, and sequences beyond 2^53 never collapse into one. A fraction of up to
 * 17 digits is what producers print a double as; there the shortest form of RFC 8785 counts, as in `0.1`.
 */
import { compareDecimals, isShortInteger, parseDecimal, type Decimal, type DecimalParse } from './decimal';
import { ExactNumber, isJsonArray, isJsonObject, type JsonArray, type JsonObject, type JsonValue } from './json-value';
import type { PointerTokens } from './pointer';

/** What a canonical text leaves out, by reference token; `null` leaves out the value itself. */
export type Omission = Map<string, Omission | null>;

/** Digits that a double's text can have and still name one double (IEEE 754 binary64). */
const DOUBLE_DIGITS = 17;
/** All but printable ASCII without `"` and `\`, which stands for itself between quotation marks. */
const NOT_PLAIN = /[^ !#-[\]-~]/;

/** Joins pointers into one omission. An empty pointer leaves out everything: null. No pointer: an empty omission. */
export function omissionOf(pointers: readonly PointerTokens[]): Omission | null {
  const root: Omission = new Map();
  for (const tokens of pointers) {
    if (tokens.length === 0) return null;
    let node = root;
    for (const [index, token] of tokens.entries()) {
      const next = node.get(token);
      // Something above is left out already.
      if (next === null) break;
      if (index === tokens.length - 1) {
        node.set(token, null);
      } else {
        const child: Omission = next ?? new Map<string, Omission | null>();
        node.set(token, child);
        node = child;
      }
    }
  }
  return root;
}

/** Canonical text of a string. Nearly every one is plain, and this finds it out in half the time of JSON.stringify. */
export function canonicalString(text: string): string {
  return NOT_PLAIN.test(text) ? JSON.stringify(text) : `"${text}"`;
}

/** Canonical text of a value. Members are ordered by UTF-16 code units (RFC 8785 section 3.2.3). */
export function canonicalJson(value: JsonValue): string {
  if (typeof value === 'string') return canonicalString(value);
  if (value instanceof ExactNumber) return canonicalNumber(value.text);
  if (isJsonArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (isJsonObject(value)) return canonicalObject(value, NOTHING);
  return String(value);
}

/**
 * Canonical text of a value without what is left out. A member goes with its name; an item goes and the later ones move
 * up, while all pointers mean the value as it came. '' where the whole value is left out.
 */
export function canonicalJsonWithout(value: JsonValue, omission: Omission | null): string {
  if (omission === null) return '';
  if (omission.size === 0) return canonicalJson(value);
  if (isJsonArray(value)) return canonicalArrayWithout(value, omission);
  if (isJsonObject(value)) return canonicalObject(value, omission);
  return canonicalJson(value);
}

const NOTHING: Omission = new Map();

function canonicalObject(object: JsonObject, omission: Omission): string {
  let text = '';
  for (const name of [...object.keys()].sort()) {
    const omitted = omission.get(name);
    if (omitted === null) continue;
    // The name comes from this very map.
    const value = object.get(name) as JsonValue;
    const written = omitted === undefined ? canonicalJson(value) : canonicalJsonWithout(value, omitted);
    text += `${text === '' ? '' : ','}${canonicalString(name)}:${written}`;
  }
  return `{${text}}`;
}

function canonicalArrayWithout(array: JsonArray, omission: Omission): string {
  const kept: string[] = [];
  array.forEach((item, index) => {
    const omitted = omission.get(String(index));
    if (omitted === null) return;
    kept.push(omitted === undefined ? canonicalJson(item) : canonicalJsonWithout(item, omitted));
  });
  return `[${kept.join(',')}]`;
}

/** Canonical text of a number of the JSON grammar. Throws `RangeError` for any other text. */
export function canonicalNumber(text: string): string {
  if (isShortInteger(text)) return text;
  const parse = parseDecimal(text);
  if (!parse.ok) throw new RangeError('not a JSON number');
  const exact = parse.value;
  const double = Number(text);
  const outside = !Number.isFinite(double) || (double === 0 && exact.digits !== '');
  if (!outside) {
    // String(-0) is "0", as RFC 8785 wants.
    const shortest = String(double);
    const isFraction = exact.exponent < 0n && exact.digits.length <= DOUBLE_DIGITS;
    if (isFraction || sameValue(exact, parseDecimal(shortest))) return shortest;
  }
  return `${exact.negative ? '-' : ''}${exact.digits}e${exact.exponent}`;
}

function sameValue(left: Decimal, right: DecimalParse): boolean {
  return right.ok && compareDecimals(left, right.value) === 0;
}
