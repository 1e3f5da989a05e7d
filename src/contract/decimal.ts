/**
 * Exact decimals: sequences (design section 4) and the numbers of effects (design section 6).
 *
 * No value passes through a double, and no exponent is expanded: `1e400000000` costs as much as `1`.
 */

/** Digits that a decimal may have on either side of the point, and a sequence at all. */
export const MAX_DIGITS = 38;

/**
 * Digits that a written exponent may have, leading zeros apart. Far more than any producer writes, and few enough that
 * turning them into a bigint and back costs nothing: a million of them would hold the process up for seconds.
 */
export const MAX_EXPONENT_DIGITS = 100;

/** ± `digits` × 10^`exponent`. */
export interface Decimal {
  readonly negative: boolean;
  /** Without leading or trailing zeros; '' for zero, which is never negative and has exponent 0. */
  readonly digits: string;
  /** A bigint: a producer may write more digits than a double holds. */
  readonly exponent: bigint;
}

export type DecimalParse =
  | { readonly ok: true; readonly value: Decimal }
  | { readonly ok: false; readonly reason: 'not_a_number' | 'number_out_of_range' };

export type DecimalReading =
  /** Canonical: `-?digits[.digits]`, no superfluous zero, no exponent, no `-0`. */
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reason: 'not_a_number' | 'number_out_of_range' };

export type IntegerReading =
  /** Canonical digits: no leading zero, 1 to 38 of them. */
  | { readonly ok: true; readonly digits: string }
  | { readonly ok: false; readonly why: 'empty' | 'not_digits' | 'negative' | 'fractional' | 'too_long' };

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const CANONICAL_INTEGER = /^(?:0|[1-9]\d{0,37})$/;
const SHORT_INTEGER = /^(?:0|-?[1-9]\d{0,14})$/;
const DIGITS = /^[0-9]+$/;
const ZERO: Decimal = { negative: false, digits: '', exponent: 0n };
const SCALE = BigInt(MAX_DIGITS);

/**
 * Reads a number of the JSON grammar (RFC 8259 section 6), of any size; `number_out_of_range` only where the exponent
 * has more than 100 digits. (The JSON parser lets no such number through.)
 */
export function parseDecimal(text: string): DecimalParse {
  const match = NUMBER.exec(text);
  if (match === null) return { ok: false, reason: 'not_a_number' };
  const [, sign, whole = '', fraction = '', written = '0'] = match;
  const exponent = exponentOf(written);
  if (exponent === null) return { ok: false, reason: 'number_out_of_range' };
  const all = whole + fraction;
  const first = countZeros(all, 1);
  if (first === all.length) return { ok: true, value: ZERO };
  const trailing = countZeros(all, -1);
  const value: Decimal = {
    negative: sign === '-',
    digits: all.slice(first, all.length - trailing),
    exponent: exponent - BigInt(fraction.length) + BigInt(trailing),
  };
  return { ok: true, value };
}

/** An integer of up to 15 digits: exact as a double, and so is the sum of two; RFC 8785 writes both as they stand. */
export function isShortInteger(text: string): boolean {
  return SHORT_INTEGER.test(text);
}

/** `[+-]?\d+` as a bigint, or null beyond 100 digits: checked before anything is computed. */
function exponentOf(written: string): bigint | null {
  const sign = /^[+-]/.test(written) ? 1 : 0;
  const digits = written.slice(sign);
  const significant = digits.slice(countZeros(digits, 1));
  if (significant.length > MAX_EXPONENT_DIGITS) return null;
  const magnitude = BigInt(significant);
  return written.startsWith('-') ? -magnitude : magnitude;
}

/** A number text as the canonical decimal of effects, at most 38 digits on either side of the point. */
export function readDecimal(text: string): DecimalReading {
  if (CANONICAL_INTEGER.test(text)) return { ok: true, text };
  const parse = parseDecimal(text);
  return parse.ok ? inRange(plainText(parse.value)) : parse;
}

/** The sum, canonical; `number_out_of_range` where it or a summand has more than 38 digits on a side of the point. */
export function addDecimals(left: Decimal, right: Decimal): DecimalReading {
  // Nothing is brought to a common scale before its size is known.
  if (plainText(left) === null || plainText(right) === null) return inRange(null);
  const sum = scaled(left) + scaled(right);
  const parse = parseDecimal(`${sum}e-${MAX_DIGITS}`);
  return inRange(parse.ok ? plainText(parse.value) : null);
}

/** Orders by value, whatever the size. */
export function compareDecimals(left: Decimal, right: Decimal): -1 | 0 | 1 {
  const leftSign = signOf(left);
  const rightSign = signOf(right);
  if (leftSign !== rightSign) return leftSign < rightSign ? -1 : 1;
  const byMagnitude = compareMagnitudes(left, right);
  return leftSign < 0 ? flipped(byMagnitude) : byMagnitude;
}

/** A JSON number as a sequence or id: `1`, `1.0`, `10e-1` are 1, and `-0` is 0. */
export function integerOfNumber(text: string): IntegerReading {
  if (CANONICAL_INTEGER.test(text)) return { ok: true, digits: text };
  const parse = parseDecimal(text);
  if (!parse.ok) return { ok: false, why: parse.reason === 'not_a_number' ? 'not_digits' : 'too_long' };
  if (parse.value.negative) return { ok: false, why: 'negative' };
  if (parse.value.exponent < 0n) return { ok: false, why: 'fractional' };
  const digits = plainText(parse.value);
  return digits === null ? { ok: false, why: 'too_long' } : { ok: true, digits };
}

/** A string as a sequence: ASCII digits and nothing else; leading zeros do not count. */
export function integerOfString(text: string): IntegerReading {
  if (CANONICAL_INTEGER.test(text)) return { ok: true, digits: text };
  if (text === '') return { ok: false, why: 'empty' };
  if (!DIGITS.test(text)) return { ok: false, why: 'not_digits' };
  const digits = text.slice(Math.min(countZeros(text, 1), text.length - 1));
  return digits.length > MAX_DIGITS ? { ok: false, why: 'too_long' } : { ok: true, digits };
}

/** Canonical text without exponent, or null beyond 38 digits on a side. Nothing is expanded before that is known. */
export function plainText(decimal: Decimal): string | null {
  const { negative, digits, exponent } = decimal;
  if (digits === '') return '0';
  const wholeDigits = BigInt(digits.length) + exponent;
  if (wholeDigits > SCALE || exponent < -SCALE) return null;
  const sign = negative ? '-' : '';
  if (exponent >= 0n) return sign + digits + '0'.repeat(Number(exponent));
  const point = Number(wholeDigits);
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

function inRange(text: string | null): DecimalReading {
  return text === null ? { ok: false, reason: 'number_out_of_range' } : { ok: true, text };
}

/** In units of 10^-38; only for what has a plain text. */
function scaled({ negative, digits, exponent }: Decimal): bigint {
  const units = BigInt(digits) * 10n ** (exponent + SCALE);
  return negative ? -units : units;
}

function signOf({ negative, digits }: Decimal): -1 | 0 | 1 {
  if (digits === '') return 0;
  return negative ? -1 : 1;
}

function compareMagnitudes(left: Decimal, right: Decimal): -1 | 0 | 1 {
  const leftWhole = BigInt(left.digits.length) + left.exponent;
  const rightWhole = BigInt(right.digits.length) + right.exponent;
  if (leftWhole !== rightWhole) return leftWhole < rightWhole ? -1 : 1;
  // With the point in the same place, digits compare as text: what is shorter goes on with zeros.
  if (left.digits === right.digits) return 0;
  return left.digits < right.digits ? -1 : 1;
}

function flipped(order: -1 | 0 | 1): -1 | 0 | 1 {
  if (order === 0) return 0;
  return order === 1 ? -1 : 1;
}

/** Zeros at the start (`step` 1) or end (-1). A loop: `/0+$/` takes quadratic time on zeros that do not end the text. */
function countZeros(text: string, step: 1 | -1): number {
  let count = 0;
  for (let at = step === 1 ? 0 : text.length - 1; text[at] === '0'; at += step) count += 1;
  return count;
}
