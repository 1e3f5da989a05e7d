import { itemBytes, parseJson } from '../../src/contract/json';
import { MAX_JSON_DEPTH } from '../../src/contract/json-parser';
import { ExactNumber, isJsonArray, quoted, type JsonDocument, type JsonValue } from '../../src/contract/json-value';

function parse(text: string | Uint8Array): JsonDocument {
  const result = parseJson(typeof text === 'string' ? Buffer.from(text, 'utf8') : text);
  if (!result.ok) throw new Error(result.fault.detail);
  return result.document;
}

function faultOf(text: string | Uint8Array): string {
  const result = parseJson(typeof text === 'string' ? Buffer.from(text, 'utf8') : text);
  return result.ok ? 'none' : `${result.fault.reason}@${result.fault.offset}`;
}

const reasons = (text: string): string[] => parse(text).faults.map(({ reason, offset }) => `${reason}@${offset}`);

describe('parseJson', () => {
  test.each<[string, JsonValue]>([
    ['null', null],
    [' true\r\n', true],
    ['\tfalse ', false],
    ['""', ''],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'],
    ['"\\u00C5\\u00e5"', 'Åå'],
    ['"\\ud83d\\ude92 \u{1f692}"', '\u{1f692} \u{1f692}'],
    ['"\u007f\u2028"', '\u007f\u2028'],
    ['-0', new ExactNumber('-0')],
    ['1E+2', new ExactNumber('1E+2')],
    ['18446744073709551615', new ExactNumber('18446744073709551615')],
    ['0.10', new ExactNumber('0.10')],
    ['[ ]', []],
    ['{ }', new Map()],
    ['[1,[2],{"a":[]}]', [new ExactNumber('1'), [new ExactNumber('2')], new Map([['a', []]])]],
    [
      '{"b" : 1 , "a":null}',
      new Map<string, JsonValue>([
        ['b', new ExactNumber('1')],
        ['a', null],
      ]),
    ],
  ])('reads %s', (text, value) => {
    expect(parse(text).value).toEqual(value);
    expect(parse(text).faults).toEqual([]);
  });

  test.each([
    ['', 0],
    ['  ', 2],
    ['{"agency":', 10],
    ['{"a":1,}', 7],
    ['{a:1}', 1],
    ["{'a':1}", 1],
    ['{"a" 1}', 5],
    ['{"a":1 "b":2}', 7],
    ['[1,]', 3],
    ['[1', 2],
    ['[1}', 2],
    ['1 2', 2],
    ['{} x', 3],
    ['01', 1],
    ['-', 1],
    ['-01', 2],
    ['+1', 0],
    ['.5', 0],
    ['1.', 2],
    ['1e', 2],
    ['1e+', 3],
    ['0x10', 1],
    ['NaN', 0],
    ['Infinity', 0],
    ['nul', 0],
    ['truex', 4],
    ['"a', 0],
    ['"a\\', 2],
    ['"a\\"', 0],
    ['"\\x41"', 1],
    ['"\\u12g4"', 1],
    ['"\\u12', 1],
    ['"a\nb"', 2],
    ['"\\n\u0000"', 3],
    ['/* c */ 1', 0],
    ['\u00a01', 0],
    ['\ufeff{}', 0],
  ])('%j is no JSON, at %d', (text, offset) => {
    expect(faultOf(text)).toBe(`invalid_json@${offset}`);
  });

  test.each([
    ['an invalid byte', [0x22, 0xff, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xe2, 0x82]],
    ['beyond U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
  ])('refuses UTF-8 with %s', (_, bytes) => {
    expect(faultOf(Uint8Array.from(bytes))).toBe('invalid_utf8@0');
  });

  test('reads a view into a larger buffer', () => {
    const whole = Buffer.from('xx{"a":1}yy');
    expect(parse(whole.subarray(2, 9)).value).toEqual(new Map([['a', new ExactNumber('1')]]));
  });

  test('C114: __proto__ is a member like any other, and pollutes nothing', () => {
    const { value } = parse('{"__proto__":{"polluted":1},"constructor":2}');
    expect(value).toEqual(
      new Map<string, JsonValue>([
        ['__proto__', new Map([['polluted', new ExactNumber('1')]])],
        ['constructor', new ExactNumber('2')],
      ]),
    );
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

describe('what is JSON and cannot be read in one way only', () => {
  test.each([
    ['{"seq":1,"seq":2}', ['duplicate_member@9']],
    ['{"seq":1,"\\u0073eq":1}', ['duplicate_member@9']],
    ['[{"a":1},{"a":2}]', []],
    ['{"a":{"a":1}}', []],
    ['{"a":1,"A":1}', []],
    ['{"\\u00c5":1,"A\\u030a":1}', []],
    ['{"__proto__":1,"__proto__":1}', ['duplicate_member@15']],
    ['"\\ud800"', ['lone_surrogate@0']],
    ['"\\udc00\\ud800"', ['lone_surrogate@0']],
    ['"\\ud800\\u0041"', ['lone_surrogate@0']],
    ['{"\\ud800":1,"\\ud801":1}', ['lone_surrogate@1', 'lone_surrogate@12']],
    ['{"\\ud800":1,"\\ud800":1}', ['lone_surrogate@1', 'lone_surrogate@12', 'duplicate_member@12']],
  ])('%s', (text, expected) => {
    expect(reasons(text)).toEqual(expected);
  });

  test('details can be stored whatever the name is', () => {
    const name = `${'\\u0000\\ud800'.repeat(40)}`;
    for (const { detail } of parse(`{"${name}":1,"${name}":2}`).faults) {
      expect(detail.length).toBeLessThanOrEqual(200);
      expect(detail).not.toMatch(/\p{Cc}|\p{Cs}/u);
    }
    expect(quoted(`${'x'.repeat(59)}\u{1f692}y`)).toBe(`"${'x'.repeat(59)}\ufffd…"`);
  });
});

describe('depth', () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

  test(`${MAX_JSON_DEPTH} levels are read, one more is not`, () => {
    expect(reasons(nested(MAX_JSON_DEPTH))).toEqual([]);
    expect(reasons(nested(MAX_JSON_DEPTH + 1))).toEqual([`too_deep@${MAX_JSON_DEPTH}`]);
    expect(reasons('{"a":'.repeat(65) + '1' + '}'.repeat(65))).toEqual(['too_deep@320']);
  });

  test('a payload may nest as deeply as it is long', () => {
    expect(reasons(nested(500_000))).toEqual([`too_deep@${MAX_JSON_DEPTH}`]);
    expect(faultOf('['.repeat(500_000))).toBe('invalid_json@500000');
    expect(faultOf('{"a":'.repeat(100_000))).toBe('invalid_json@500000');
  });

  test('what is too deep is still checked, and what follows is still read', () => {
    const inner = '{"a":[1,{"b":"\\ud800"},[]],"c":{},"d":true}';
    const text = `[${'['.repeat(63)}${inner}${']'.repeat(63)},"next"]`;
    const document = parse(text);
    expect(document.faults.map(({ reason }) => reason)).toEqual(['too_deep', 'lone_surrogate']);
    expect(isJsonArray(document.value) && document.value[1]).toBe('next');
    for (const broken of ['{"a":[1,{"b":2]}', '[1,,2]', '{"a"}', '{"a":1,}', '[1 2]', '{"a":tru}', '[01]']) {
      expect(faultOf(`${'['.repeat(64)}${broken}${']'.repeat(64)}`)).toMatch(/^invalid_json@/);
    }
  });
});

describe('itemBytes', () => {
  test('gives each item as it came', () => {
    const text = '{"s":"\u{1f692}","events" : [ {"a" :1.0}, "\u00c5\\u00c5" ,2 ]}';
    const document = parse(text);
    const events = document.value instanceof Map ? (document.value.get('events') as JsonValue) : null;
    if (!isJsonArray(events)) throw new Error('an array expected');
    const items = [0, 1, 2].map((index) => Buffer.from(itemBytes(document, events, index) ?? []).toString('utf8'));
    expect(items).toEqual(['{"a" :1.0}', '"\u00c5\\u00c5"', '2']);
    expect(itemBytes(document, events, 3)).toBeNull();
    expect(itemBytes(document, events, -1)).toBeNull();
  });
});
