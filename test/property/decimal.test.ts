import fc from 'fast-check';
import { addDecimals, compareDecimals, parseDecimal, readDecimal, type Decimal } from '../../src/contract/decimal';

const RUNS = { numRuns: 2000 };
const SCALE = 40;

/** A number of up to 40 digits on either side of the point, as units of 10^-40 and as one of its texts. */
const number = fc
  .record({
    units: fc.oneof(fc.bigInt({ min: -(10n ** 80n), max: 10n ** 80n }), fc.bigInt({ min: -50n, max: 50n })),
    zeros: fc.nat({ max: 60 }),
    upper: fc.boolean(),
  })
  .map(({ units, zeros, upper }) => ({
    units,
    text: `${units}${units === 0n ? '' : '0'.repeat(zeros)}${upper ? 'E' : 'e'}${units === 0n ? 7 : -SCALE - zeros}`,
  }));

function decimal(text: string): Decimal {
  const parse = parseDecimal(text);
  if (!parse.ok) throw new Error(`${text} is no number`);
  return parse.value;
}

/** Plain text by long division, or null beyond 38 digits on a side. */
function expectedText(units: bigint): string | null {
  const magnitude = units < 0n ? -units : units;
  if (magnitude >= 10n ** 78n || magnitude % 100n !== 0n) return null;
  const whole = magnitude / 10n ** 40n;
  const fraction = String(magnitude % 10n ** 40n).padStart(40, '0');
  const trimmed = fraction.replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${whole}${trimmed === '' ? '' : `.${trimmed}`}`;
}

test('canonical text agrees with integer arithmetic', () => {
  fc.assert(
    fc.property(number, ({ units, text }) => {
      const expected = expectedText(units);
      expect(readDecimal(text)).toEqual(
        expected === null ? { ok: false, reason: 'number_out_of_range' } : { ok: true, text: expected },
      );
      if (expected !== null) expect(readDecimal(expected)).toEqual({ ok: true, text: expected });
    }),
    RUNS,
  );
});

test('sums agree with integer arithmetic, and commute', () => {
  fc.assert(
    fc.property(number, number, (left, right) => {
      const sum = addDecimals(decimal(left.text), decimal(right.text));
      const inRange = expectedText(left.units) !== null && expectedText(right.units) !== null;
      const expected = inRange ? expectedText(left.units + right.units) : null;
      expect(sum).toEqual(
        expected === null ? { ok: false, reason: 'number_out_of_range' } : { ok: true, text: expected },
      );
      expect(addDecimals(decimal(right.text), decimal(left.text))).toEqual(sum);
    }),
    RUNS,
  );
});

test('order agrees with integer order', () => {
  fc.assert(
    fc.property(number, number, (left, right) => {
      const expected = left.units < right.units ? -1 : left.units > right.units ? 1 : 0;
      expect(compareDecimals(decimal(left.text), decimal(right.text))).toBe(expected);
      expect(compareDecimals(decimal(left.text), decimal(left.text))).toBe(0);
    }),
    RUNS,
  );
});
