import { parseJson } from '../../src/contract/json';
import { ExactNumber, type JsonValue } from '../../src/contract/json-value';
import { compilePointer, escapeToken, getPointer, parsePointer } from '../../src/contract/pointer';

function read(text: string): JsonValue {
  const parse = parseJson(Buffer.from(text));
  if (!parse.ok) throw new Error(parse.fault.detail);
  return parse.document.value;
}

const number = (text: string): ExactNumber => new ExactNumber(text);

describe('RFC 6901 section 5', () => {
  const document = read(
    '{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\\\j":5,"k\\"l":6," ":7,"m~n":8}',
  );

  test.each<[string, JsonValue]>([
    ['', document],
    ['/foo', ['bar', 'baz']],
    ['/foo/0', 'bar'],
    ['/', number('0')],
    ['/a~1b', number('1')],
    ['/c%d', number('2')],
    ['/e^f', number('3')],
    ['/g|h', number('4')],
    ['/i\\j', number('5')],
    ['/k"l', number('6')],
    ['/ ', number('7')],
    ['/m~0n', number('8')],
  ])('%j', (pointer, value) => {
    expect(getPointer(document, compilePointer(pointer))).toEqual(value);
  });
});

test.each(['foo', '#/foo', '/a~b', '/a~', '/~2', ' /a'])('%j is no pointer', (pointer) => {
  expect(parsePointer(pointer)).toBeNull();
  expect(() => compilePointer(pointer)).toThrow(RangeError);
});

test('~01 is ~1, not /', () => {
  expect(parsePointer('/~01/~1/~0~1')).toEqual(['~1', '/', '~/']);
  expect(escapeToken('~1/~')).toBe('~01~1~0');
});

describe('C113: only own members and canonical indices resolve', () => {
  const document = read('{"items":[1,2],"name":"engine","empty":null}');

  test.each([
    '/constructor',
    '/constructor/name',
    '/__proto__',
    '/__proto__/polluted',
    '/toString',
    '/hasOwnProperty',
    '/size',
    '/get',
    '/items/length',
    '/items/-',
    '/items/2',
    '/items/00',
    '/items/01',
    '/items/+1',
    '/items/-1',
    '/items/1.0',
    '/items/1e0',
    '/items/0x1',
    '/items/ 1',
    '/items/',
    '/items/9007199254740993',
    '/items/constructor',
    '/name/0',
    '/name/length',
    '/empty/x',
    '/items/0/text',
  ])('%s is absent', (pointer) => {
    expect(getPointer(document, compilePointer(pointer))).toBeUndefined();
  });

  test('null is present', () => {
    expect(getPointer(document, compilePointer('/empty'))).toBeNull();
  });

  test('members that a payload really owns resolve, whatever their name', () => {
    const owner = read('{"__proto__":{"polluted":1},"constructor":{"name":"x"}}');
    expect(getPointer(owner, compilePointer('/__proto__/polluted'))).toEqual(number('1'));
    expect(getPointer(owner, compilePointer('/constructor/name'))).toBe('x');
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});
