import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson, canonicalJsonWithout, canonicalNumber, omissionOf } from '../../src/contract/canonical';
import { parseJson } from '../../src/contract/json';
import type { JsonValue } from '../../src/contract/json-value';
import { compilePointer } from '../../src/contract/pointer';

function read(bytes: Uint8Array | string): JsonValue {
  const parse = parseJson(Buffer.from(bytes));
  if (!parse.ok) throw new Error(parse.fault.detail);
  return parse.document.value;
}

const without = (text: string, ...pointers: string[]): string =>
  canonicalJsonWithout(read(text), omissionOf(pointers.map(compilePointer)));

describe('RFC 8785', () => {
  const folder = join(__dirname, '../vectors/jcs');

  test.each(['arrays', 'french', 'structures', 'unicode'])('vector %s', (name) => {
    const expected = readFileSync(join(folder, `${name}.out.json`), 'utf8').trim();
    expect(canonicalJson(read(readFileSync(join(folder, `${name}.in.json`))))).toBe(expected);
  });

  test('orders members by UTF-16 code units (section 3.2.3)', () => {
    const text =
      '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7,"10":8,"2":9,"__proto__":0}';
    expect(canonicalJson(read(text))).toBe(
      '{"\\r":2,"1":4,"10":8,"2":9,"__proto__":0,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}',
    );
  });

  test('writes strings as section 3.2.2.2 says', () => {
    expect(canonicalJson(read('"\\u20ac$\\u000f\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/\\u007f"'))).toBe(
      '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f"',
    );
  });

  // Appendix B: the doubles that have a text.
  test.each([
    ['0', '0'],
    ['-0', '0'],
    ['5e-324', '5e-324'],
    ['-5e-324', '-5e-324'],
    ['1.7976931348623157e308', '1.7976931348623157e+308'],
    ['9007199254740992', '9007199254740992'],
    ['295147905179352830000', '295147905179352830000'],
    ['9.999999999999997e22', '9.999999999999997e+22'],
    ['1e23', '1e+23'],
    ['1.0000000000000001e23', '1.0000000000000001e+23'],
    ['999999999999999700000', '999999999999999700000'],
    ['999999999999999900000', '999999999999999900000'],
    ['1e21', '1e+21'],
    ['9.999999999999997e-7', '9.999999999999997e-7'],
    ['0.000001', '0.000001'],
    ['333333333.3333332', '333333333.3333332'],
    ['333333333.33333329', '333333333.3333333'],
    ['-0.0000033333333333333333', '-0.0000033333333333333333'],
    ['1424953923781206.2', '1424953923781206.2'],
    ['4.50', '4.5'],
    ['2e-3', '0.002'],
  ])('number %s', (text, expected) => {
    expect(canonicalNumber(text)).toBe(expected);
  });
});

describe('the departure of design section 4', () => {
  test.each([
    // Integers that a double would change.
    ['9007199254740993', '9007199254740993e0'],
    ['-9007199254740993', '-9007199254740993e0'],
    ['9007199254740993.0', '9007199254740993e0'],
    ['90071992547409930', '9007199254740993e1'],
    ['18446744073709551615', '18446744073709551615e0'],
    // 2^64 is a double, but RFC 8785 writes another value for it.
    ['18446744073709551616', '18446744073709551616e0'],
    ['18446744073709552000', '18446744073709552000'],
    ['123456789012345678e5', '123456789012345678e5'],
    // Over 17 significant digits.
    ['0.1000000000000000055511151231257827', '1000000000000000055511151231257827e-34'],
    ['0.100000000000000000000000000000', '0.1'],
    ['1.000000000000000001', '1000000000000000001e-18'],
    // Outside double range.
    ['1e400', '1e400'],
    ['-1e400', '-1e400'],
    ['10e399', '1e400'],
    ['1e-400', '1e-400'],
    ['12.50e-400', '125e-401'],
    ['0e400', '0'],
    ['-0.0e-400', '0'],
    ['1e400000000000000000000', '1e400000000000000000000'],
    ['1e-400000000000000000000', '1e-400000000000000000000'],
    // Up to 17 digits of a fraction are how producers print a double.
    ['0.1', '0.1'],
    ['0.10000000000000001', '0.1'],
    ['1.5e-7', '1.5e-7'],
  ])('%s is written %s', (text, expected) => {
    expect(canonicalNumber(text)).toBe(expected);
  });

  test('text that is no JSON number is refused', () => {
    for (const text of ['', '01', '1.', 'NaN', ' 1']) expect(() => canonicalNumber(text)).toThrow(RangeError);
  });
});

describe('leaving out', () => {
  const text = '{"a":{"b":1,"c":2},"list":[{"x":1,"y":2},{"x":3}],"~/":0}';

  test.each([
    [[], '{"a":{"b":1,"c":2},"list":[{"x":1,"y":2},{"x":3}],"~/":0}'],
    [['/a/b'], '{"a":{"c":2},"list":[{"x":1,"y":2},{"x":3}],"~/":0}'],
    [['/a', '/a/b'], '{"list":[{"x":1,"y":2},{"x":3}],"~/":0}'],
    [['/a/b', '/a'], '{"list":[{"x":1,"y":2},{"x":3}],"~/":0}'],
    [['/list/0'], '{"a":{"b":1,"c":2},"list":[{"x":3}],"~/":0}'],
    [['/list/0', '/list/1'], '{"a":{"b":1,"c":2},"list":[],"~/":0}'],
    [['/list/1/x', '/list/0/y'], '{"a":{"b":1,"c":2},"list":[{"x":1},{}],"~/":0}'],
    [['/~0~1', '/a', '/list'], '{}'],
    [
      ['/none', '/a/b/c', '/list/00', '/list/-', '/list/length', '/a/b/0'],
      '{"a":{"b":1,"c":2},"list":[{"x":1,"y":2},{"x":3}],"~/":0}',
    ],
    [['', '/a'], ''],
    [['/a', ''], ''],
  ])('%j', (pointers, expected) => {
    expect(without(text, ...pointers)).toBe(expected);
  });
});
