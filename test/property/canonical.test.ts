import fc from 'fast-check';
import { canonicalJson, canonicalNumber, canonicalString } from '../../src/contract/canonical';
import { parseJson } from '../../src/contract/json';
import type { JsonValue } from '../../src/contract/json-value';

const RUNS = { numRuns: 2000 };

function read(text: string): JsonValue {
  const parse = parseJson(Buffer.from(text, 'utf8'));
  if (!parse.ok) throw new Error(parse.fault.detail);
  return parse.document.value;
}

const digits = (max: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: max });
const stripped = (text: string): string => text.replace(/^0+(?=\d)/, '');

/** Number texts of every form; exponents on both sides of what a double holds. */
const numberText = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: digits(25).map(stripped),
    fraction: fc.option(digits(25), { nil: null }),
    exponent: fc.option(fc.integer({ min: -420, max: 420 }), { nil: null }),
  })
  .map(({ sign, whole, fraction, exponent }) => {
    return `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`;
  });

/** The exact value as a fraction over 10^1000: independent of the product's decimals. */
function exactValue(text: string): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
  const value = BigInt(whole + fraction) * 10n ** BigInt(1000 - fraction.length + Number(exponent));
  return sign === '-' ? -value : value;
}

test('canonical text is a fixed point', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const text = canonicalJson(read(JSON.stringify(value)));
      expect(canonicalJson(read(text))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
    RUNS,
  );
});

test('the order of members and the spelling of strings do not count', () => {
  const members = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary', maxLength: 3 }), fc.integer()), {
    selector: ([name]) => name,
  });
  const write = (entries: readonly (readonly [string, number])[], escape: (text: string) => string): string =>
    `{${entries.map(([name, value]) => `${escape(name)} : ${value}`).join(',')}}`;
  const escapeAll = (text: string): string =>
    `"${text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`;
  fc.assert(
    fc.property(members, (entries) => {
      const text = canonicalJson(read(write(entries, JSON.stringify)));
      expect(canonicalJson(read(write(entries.toReversed(), escapeAll)))).toBe(text);
    }),
    RUNS,
  );
});

test('every string is written as ECMAScript writes it', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary-ascii' }), fc.string({ unit: 'binary' }));
  fc.assert(
    fc.property(text, (value) => {
      expect(canonicalString(value)).toBe(JSON.stringify(value));
    }),
    RUNS,
  );
});

test('every double is written as ECMAScript writes it', () => {
  const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
  fc.assert(
    fc.property(finite, (double) => {
      expect(canonicalNumber(JSON.stringify(double))).toBe(JSON.stringify(double));
      // Adding 0 makes 0 of -0, which canonical text does not tell apart.
      expect(Number(canonicalNumber(double.toExponential(16)))).toBe(double + 0);
    }),
    RUNS,
  );
});

test('canonical numbers are JSON, and fixed points', () => {
  fc.assert(
    fc.property(numberText, (text) => {
      const canonical = canonicalNumber(text);
      expect(canonicalNumber(canonical)).toBe(canonical);
    }),
    RUNS,
  );
});

test('equal values have equal text, however they are spelled', () => {
  fc.assert(
    fc.property(numberText, fc.nat({ max: 30 }), (text, shift) => {
      const [, sign = '', whole = '', fraction = '', exponent = '0'] =
        /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
      const shifted = stripped(whole + fraction + '0'.repeat(shift));
      const spelled = `${sign}${shifted}E${Number(exponent) - fraction.length - shift}`;
      expect(canonicalNumber(spelled)).toBe(canonicalNumber(text));
    }),
    RUNS,
  );
});

test('different integers, long fractions and numbers outside double range never share a text', () => {
  const step = fc.constantFrom(1n, -1n, 10n, 1000n);
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), step, (integer, distance) => {
      const neighbour = integer + distance;
      expect(canonicalNumber(String(neighbour))).not.toBe(canonicalNumber(String(integer)));
    }),
    RUNS,
  );
  fc.assert(
    fc.property(fc.bigInt({ min: 10n ** 18n, max: 10n ** 30n }), fc.constantFrom(-25, -500, 400), (long, exponent) => {
      // A last digit that is not 0 keeps every digit significant.
      const odd = long * 10n + 1n;
      expect(canonicalNumber(`${odd}e${exponent}`)).not.toBe(canonicalNumber(`${odd + 2n}e${exponent}`));
    }),
    RUNS,
  );
});

test('the text keeps the value, unless a short fraction is rounded to its double', () => {
  fc.assert(
    fc.property(numberText, (text) => {
      const canonical = canonicalNumber(text);
      if (exactValue(canonical) === exactValue(text)) return;
      expect(Number(canonical)).toBe(Number(text));
      const significant = String(exactValue(text)).replace('-', '').replace(/0+$/, '');
      expect(significant.length).toBeLessThanOrEqual(17);
      expect(exactValue(text) % 10n ** 1000n).not.toBe(0n);
    }),
    RUNS,
  );
});
