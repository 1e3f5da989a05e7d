import {
  MAX_EXPONENT_DIGITS,
  addDecimals,
  compareDecimals,
  integerOfNumber,
  integerOfString,
  parseDecimal,
  readDecimal,
  type Decimal,
} from '../../src/contract/decimal';

const NINES = '9'.repeat(38);

function decimal(text: string): Decimal {
  const parse = parseDecimal(text);
  if (!parse.ok) throw new Error(`${text} is no number`);
  return parse.value;
}

const outcome = (text: string): string => {
  const reading = readDecimal(text);
  return reading.ok ? reading.text : reading.reason;
};

describe('readDecimal', () => {
  test.each([
    ['0', '0'],
    ['-0', '0'],
    ['-0.00e5', '0'],
    ['1.50', '1.5'],
    ['-12.0', '-12'],
    ['1e2', '100'],
    ['1E+2', '100'],
    ['125e-2', '1.25'],
    ['0.001', '0.001'],
    ['-1e-3', '-0.001'],
    [NINES, NINES],
    [`${NINES}.${NINES}`, `${NINES}.${NINES}`],
    [`-${NINES}`, `-${NINES}`],
    ['1e37', `1${'0'.repeat(37)}`],
    ['1e-38', `0.${'0'.repeat(37)}1`],
    [`1.${'0'.repeat(60)}`, '1'],
    ['0e999999999999', '0'],
    ['1e38', 'number_out_of_range'],
    ['1e-39', 'number_out_of_range'],
    [`${NINES}9`, 'number_out_of_range'],
    [`0.${NINES}9`, 'number_out_of_range'],
    ['1e400000000', 'number_out_of_range'],
    ['-1e-400000000000000000000', 'number_out_of_range'],
    [`1e${'0'.repeat(200)}2`, '100'],
    [`1e-${'0'.repeat(200)}2`, '0.01'],
    ['', 'not_a_number'],
    [' 1', 'not_a_number'],
    ['1 ', 'not_a_number'],
    ['+1', 'not_a_number'],
    ['01', 'not_a_number'],
    ['.5', 'not_a_number'],
    ['1.', 'not_a_number'],
    ['1e', 'not_a_number'],
    ['0x1', 'not_a_number'],
    ['NaN', 'not_a_number'],
    ['٧', 'not_a_number'],
    ['1\n', 'not_a_number'],
  ])('%s reads %s', (text, expected) => {
    expect(outcome(text)).toBe(expected);
  });
});

describe('an exponent', () => {
  const longest = '9'.repeat(MAX_EXPONENT_DIGITS);

  test('of 100 digits is exact', () => {
    expect(decimal(`1e${longest}`).exponent).toBe(BigInt(longest));
    expect(compareDecimals(decimal(`1e-${longest}`), decimal(`10e-${longest}`))).toBe(-1);
    expect(decimal(`1e${'0'.repeat(500)}${longest}`)).toEqual(decimal(`1e${longest}`));
  });

  test.each(['', '+', '-'])('of more is out of range, and nothing is computed (sign "%s")', (sign) => {
    const outOfRange = { ok: false, reason: 'number_out_of_range' };
    const computed = jest.spyOn(globalThis, 'BigInt');
    try {
      for (const text of [`1e${sign}1${longest}`, `-7.5E${sign}${'9'.repeat(1_000_000)}`]) {
        expect(parseDecimal(text)).toEqual(outOfRange);
        expect(readDecimal(text)).toEqual(outOfRange);
        expect(integerOfNumber(text)).toEqual({ ok: false, why: 'too_long' });
      }
      expect(computed).not.toHaveBeenCalled();
    } finally {
      computed.mockRestore();
    }
  });
});

describe('addDecimals', () => {
  test.each([
    ['0.1', '0.2', '0.3'],
    ['3', '-3', '0'],
    ['-0.5', '0.25', '-0.25'],
    ['9007199254740993', '1', '9007199254740994'],
    [NINES, '1', 'number_out_of_range'],
    [NINES, '0.5', `${NINES}.5`],
    [`-${NINES}`, '-1', 'number_out_of_range'],
    ['1e50', '-1e50', 'number_out_of_range'],
    ['1e400000000', '1', 'number_out_of_range'],
  ])('%s + %s', (left, right, expected) => {
    const sum = addDecimals(decimal(left), decimal(right));
    expect(sum.ok ? sum.text : sum.reason).toBe(expected);
  });
});

describe('compareDecimals', () => {
  test.each([
    ['9', '10', -1],
    ['100', '99', 1],
    ['1.0', '1', 0],
    ['-2', '-10', 1],
    ['-1', '0', -1],
    ['0', '-1', 1],
    ['0.1', '0.11', -1],
    ['9007199254740993', '9007199254740992', 1],
    ['1e400000000', '2', 1],
    ['-1e400000000', '2', -1],
    ['1e-400000000', '2', -1],
  ] as const)('%s and %s', (left, right, expected) => {
    expect(compareDecimals(decimal(left), decimal(right))).toBe(expected);
  });
});

describe('sequences', () => {
  const ofNumber = (text: string): string => {
    const reading = integerOfNumber(text);
    return reading.ok ? reading.digits : reading.why;
  };
  const ofString = (text: string): string => {
    const reading = integerOfString(text);
    return reading.ok ? reading.digits : reading.why;
  };

  test.each([
    ['0', '0'],
    ['-0', '0'],
    ['-0.0e3', '0'],
    ['1', '1'],
    ['1.0', '1'],
    ['1e2', '100'],
    ['10e-1', '1'],
    ['9007199254740993', '9007199254740993'],
    [NINES, NINES],
    ['-1', 'negative'],
    ['-1e-400', 'negative'],
    ['1.5', 'fractional'],
    ['1e-400', 'fractional'],
    ['1e38', 'too_long'],
    ['1e400', 'too_long'],
    ['1e400000000000000000000', 'too_long'],
  ])('the number %s is %s', (text, expected) => {
    expect(ofNumber(text)).toBe(expected);
  });

  test.each([
    ['0', '0'],
    ['000', '0'],
    ['0001', '1'],
    [`000${NINES}`, NINES],
    [`1${NINES}`, 'too_long'],
    ['', 'empty'],
    [' 7', 'not_digits'],
    ['7 ', 'not_digits'],
    ['7\n', 'not_digits'],
    ['+7', 'not_digits'],
    ['-0', 'not_digits'],
    ['-1', 'not_digits'],
    ['1.0', 'not_digits'],
    ['1e2', 'not_digits'],
    ['٧', 'not_digits'],
    ['７', 'not_digits'],
    ['0x7', 'not_digits'],
  ])('the text %j is %s', (text, expected) => {
    expect(ofString(text)).toBe(expected);
  });
});
