import fc from 'fast-check';
import { parseJson } from '../../src/contract/json';
import { ExactNumber, isJsonArray, isJsonObject, type JsonValue } from '../../src/contract/json-value';

const RUNS = { numRuns: 2000 };

/** What `JSON.parse` makes of the same text. */
function plain(value: JsonValue): unknown {
  if (value instanceof ExactNumber) return Number(value.text);
  if (isJsonArray(value)) return value.map(plain);
  if (!isJsonObject(value)) return value;
  const members: [string, unknown][] = [...value].map(([name, member]) => [name, plain(member)]);
  return Object.fromEntries(members);
}

const wellFormed = fc.string({ unit: 'binary' });
const document = fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 });
const spacing = fc.constantFrom<string | number>('', ' ', '\t', '\n', 3);

function parsed(text: string): { readonly value: JsonValue; readonly faults: readonly unknown[] } | null {
  const parse = parseJson(Buffer.from(text, 'utf8'));
  return parse.ok ? parse.document : null;
}

function accepts(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('the parser agrees with JSON.parse on every document', () => {
  fc.assert(
    fc.property(document, spacing, (value, space) => {
      const text = JSON.stringify(value, null, space);
      const read = parsed(text);
      expect(read?.faults).toEqual([]);
      expect(plain(read?.value ?? null)).toEqual(JSON.parse(text));
    }),
    RUNS,
  );
});

test('the parser accepts what JSON.parse accepts, over damaged documents', () => {
  const damage = fc.constantFrom(...'{}[]",:\\u0123456789-+.eE tfn\u0000\n\ufeff', 'true', '\\ud800', '""');
  fc.assert(
    fc.property(document, fc.nat(), fc.nat({ max: 2 }), damage, (value, place, removed, inserted) => {
      const text = JSON.stringify(value);
      const at = place % (text.length + 1);
      // Through UTF-8, for a cut may leave half a surrogate pair.
      const damaged = Buffer.from(text.slice(0, at) + inserted + text.slice(at + removed), 'utf8').toString('utf8');
      expect(parsed(damaged) !== null).toBe(accepts(damaged));
    }),
    { numRuns: 5000 },
  );
});

test('every string survives, raw and escaped', () => {
  const escaped = (text: string): string =>
    `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
  fc.assert(
    fc.property(wellFormed, (text) => {
      expect(parsed(JSON.stringify(text))).toMatchObject({ value: text, faults: [] });
      expect(parsed(escaped(text))).toMatchObject({ value: text, faults: [] });
    }),
    RUNS,
  );
});

test('a repeated member is found wherever it is, and only then', () => {
  const name = fc.constantFrom('a', 'b', '__proto__', 'Å', 'A\u030a', '');
  fc.assert(
    fc.property(fc.array(name, { maxLength: 6 }), (names) => {
      const text = `[{"x":{${names.map((each) => `${JSON.stringify(each)}:0`).join(',')}}}]`;
      expect(parsed(text)?.faults).toHaveLength(names.length - new Set(names).size);
    }),
    RUNS,
  );
});
