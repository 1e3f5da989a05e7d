import { errorsOf, bytesOf, CAD, cadWith, load } from './loader-fixture';

describe('what YAML itself may not do in a contract', () => {
  test.each([
    ['an anchor', '{ pointer: /agency }', '&a { pointer: /agency }', /^cad\.yaml:5:11: anchors/],
    ['an alias', '{ pointer: /src }', '*a', /^cad\.yaml:6:11: aliases/],
    ['a tag', 'cad-north', '!!str cad-north', /^cad\.yaml:2:7: tags/],
    ['a local tag', '{ pointer: /agency }', '!mine { pointer: /agency }', /^cad\.yaml:5:11: tags/],
    ['the non-specific tag', 'cad-north', '! cad-north', /^cad\.yaml:2:7: tags/],
    [
      'a merge key',
      '  maxEntries: 1000',
      '  maxEntries: 1000\n  <<: { ordering: strict }',
      /^cad\.yaml:12:3: merge keys/,
    ],
    ['a tab as indentation', '  maxEntries', '\tmaxEntries', /^cad\.yaml:11:1: not valid YAML: Tabs/],
    ['a complex key', 'feed: cad-north', '? [feed]\n: cad-north', /^cad\.yaml:2:3: not valid YAML/],
    ['an unknown escape', 'cad-north', '"cad\\qnorth"', /^cad\.yaml:2:11: not valid YAML: Invalid escape/],
    ['half a surrogate pair', '{ pointer: /agency }', '{ const: "\\ud800" }', /^cad\.yaml:5:20: .*surrogate/],
    ['NUL by escape', '{ pointer: /agency }', '{ const: "a\\0b" }', /^cad\.yaml:5:20: .*NUL/],
    ['a control character', 'cad-north', 'cad\u0007north', /^cad\.yaml:2:10: the control character U\+0007/],
    ["the lexer's own signal", 'cad-north', 'cad\u0018north', /^cad\.yaml:2:10: the control character U\+0018/],
    ['a second document', 'effects:', '---\neffects:', /^cad\.yaml:12:1: a second document/],
    [
      'an unfinished text',
      '["cad/+/+/incident"]',
      '["cad/+/+/incident]',
      /^cad\.yaml:\d+:\d+: not valid YAML: Missing closing/,
    ],
  ])('refuses %s', (_, from, to, message) => {
    expect(errorsOf(cadWith([from, to]))).toContainEqual(expect.stringMatching(message));
  });

  test('refuses an alias once, and looks at the rest of the file', () => {
    const errors = errorsOf(cadWith(['{ pointer: /src }', '*a'], ['maxEntries: 1000', 'maxEntries: 0']));
    expect(errors).toEqual([
      expect.stringMatching(/^cad\.yaml:6:11: aliases/),
      expect.stringMatching(/^cad\.yaml:11:15: dedup\.maxEntries: must be .* from 1 to 10000000/),
    ]);
  });

  test.each(['%YAML 1.1\n---\n', '%YAML 1.3\n---\n', '%TAG ! tag:example.org,2000:\n---\n', '%FOO bar\n---\n'])(
    'C107 refuses the directive %j',
    (directive) => {
      expect(errorsOf(directive + CAD)).toEqual([expect.stringMatching(/^cad\.yaml:1:1: .*(YAML 1\.2|directive)/)]);
    },
  );

  test('takes %YAML 1.2, a byte order mark, CRLF, comments and an end marker', () => {
    expect(load(`\ufeff${CAD}`).contract.feed).toBe('cad-north');
    expect(load(`# hello\n%YAML 1.2\n---\n${CAD}...\n`).contract.feed).toBe('cad-north');
    expect(load(CAD.replaceAll('\n', '\r\n')).contract.feed).toBe('cad-north');
  });

  test('takes JSON, which is YAML', () => {
    const json = JSON.stringify({
      apiVersion: 'replay-ledger/v1',
      feed: 'json',
      topics: ['a'],
      identity: { agency: { const: 'A' }, source: { const: 'S' }, sequence: { pointer: '/n' } },
      dedup: { windowSeconds: 600, maxEntries: 10 },
    });
    expect(load(json).contract.topics).toEqual(['a']);
  });
});

describe('keys that are written twice', () => {
  test('C111 names both lines, and does not choose', () => {
    const again = 'identity: { agency: { const: "B" }, source: { pointer: /s }, sequence: { pointer: /n } }';
    expect(errorsOf(`${CAD}${again}\n`)).toEqual([
      'cad.yaml:14:1: duplicate key "identity" on line 14: it is on line 4 already',
    ]);
  });

  test('C111 holds in flow style, which is what JSON is', () => {
    const errors = errorsOf('{"feed": "a",\n "topics": ["a"],\n "feed": "b"}');
    expect(errors).toContain('cad.yaml:3:2: duplicate key "feed" on line 3: it is on line 1 already');
  });

  test('C111 holds for keys that are equal after NFC', () => {
    const errors = errorsOf(cadWith(['do: set,', 'do: set, when: { "/caf\u00e9": 1, "/cafe\u0301": 2 },']));
    expect(errors).toEqual([expect.stringMatching(/^cad\.yaml:13:\d+: duplicate key .* on line 13: it is on line 13/)]);
  });

  test('a key __proto__ is unknown wherever it stands', () => {
    expect(errorsOf(`__proto__: { feed: x }\n${CAD}`)).toEqual(['cad.yaml:1:1: unknown key "__proto__"']);
    expect(errorsOf(cadWith(['do: set,', 'do: set, when: { __proto__: 1 },']))).toEqual([
      'cad.yaml:13:24: unknown key "__proto__"',
    ]);
    expect(({} as Record<string, unknown>)['feed']).toBeUndefined();
  });
});

describe('files that are no contracts', () => {
  test.each([
    ['C116 an empty file', '', 'cad.yaml:1:1: the file is empty; a contract is expected'],
    ['a file of comments', '# nothing here\n\n', 'cad.yaml:1:1: the file is empty; a contract is expected'],
    ['an empty document', '---\n', 'cad.yaml:1:1: the file is empty; a contract is expected'],
    ['a text', 'hello', /^cad\.yaml:1:1: must be a feed contract: a mapping/],
    ['a list', '- a\n- b\n', /^cad\.yaml:1:1: must be a feed contract: a mapping/],
    ['a null', 'null', /^cad\.yaml:1:1: must be a feed contract: .* YAML reads null as null$/],
  ])('refuses %s', (_, text, message) => {
    expect(errorsOf(text)).toEqual([typeof message === 'string' ? message : expect.stringMatching(message)]);
  });

  test('C116 refuses a contract that ends in the middle, wherever that is before its last line', () => {
    // Cut in the last line but one, what is left can be a whole contract with a smaller number or fewer effects.
    const end = CAD.indexOf('maxEntries');
    for (let length = 1; length < end; length++) {
      expect({ length, errors: errorsOf(CAD.slice(0, length)) }).toMatchObject({
        length,
        errors: expect.arrayContaining([expect.stringMatching(/^cad\.yaml:\d+:\d+: /)]),
      });
    }
  });

  test('refuses bytes that are not UTF-8, where they stand', () => {
    const bytes = bytesOf(cadWith(['cad-north', 'cad-?orth']));
    bytes[bytes.indexOf(0x3f)] = 0xff;
    expect(errorsOf(bytes)).toEqual(['cad.yaml:2:11: the file is not valid UTF-8 from here on']);
    expect(errorsOf(Uint8Array.of(0x61, 0xc3))).toEqual(['cad.yaml:1:2: the file is not valid UTF-8 from here on']);
  });

  test('refuses UTF-16, and says so', () => {
    expect(errorsOf(Uint8Array.of(0xff, 0xfe, 0x61, 0))).toEqual([
      'cad.yaml:1:1: the file is UTF-16; save it as UTF-8',
    ]);
  });

  test('refuses a file over 256 KiB, and takes one of exactly that', () => {
    const filler = (size: number): string => `${CAD}#${'x'.repeat(size - CAD.length - 2)}\n`;
    expect(errorsOf(filler(262_145))).toEqual(['cad.yaml:1:1: the file is too big: a contract has at most 256 KiB']);
    expect(errorsOf(filler(262_144))).toEqual([]);
  });
});

describe('files that are meant to do harm', () => {
  test('C109 an alias bomb is refused without being expanded', () => {
    const letters = 'abcdefghijklmnopqrstu'.split('');
    const bomb = letters
      .map((name, i) => `${name}: &${name} ${i === 0 ? '[1,2,3,4]' : `[*${letters[i - 1]}, *${letters[i - 1]}]`}`)
      .join('\n');
    const before = process.memoryUsage().heapUsed;
    const errors = errorsOf(bomb);
    expect(errors).toContainEqual(expect.stringMatching(/^cad\.yaml:1:4: anchors/));
    expect(errors).toContainEqual(expect.stringMatching(/^cad\.yaml:2:8: aliases/));
    // Expanded it would have 4 million nodes, which is far more than this.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * 1024 * 1024);
  });

  test.each(['[', '{', '- ', '? ', 'a: [', '{a: '])('C109 hostile nesting of %j is one bounded error', (open) => {
    expect(errorsOf(open.repeat(Math.floor(262_144 / open.length)))).toEqual([
      expect.stringMatching(/^cad\.yaml:1:\d+: (nested too deeply for a contract|not valid YAML)/),
    ]);
  });

  test('nesting by indentation is bounded too', () => {
    const deep = Array.from({ length: 600 }, (_, i) => `${' '.repeat(i)}a:`).join('\n');
    expect(errorsOf(deep)).toEqual([expect.stringMatching(/^cad\.yaml:\d+:\d+: nested too deeply for a contract$/)]);
  });

  test('a file that is wrong everywhere has a bounded number of errors', () => {
    const errors = errorsOf(Array.from({ length: 5000 }, (_, i) => `key${i}: 1`).join('\n'));
    expect(errors).toHaveLength(100);
    expect(errorsOf(']'.repeat(5000)).length).toBeLessThanOrEqual(100);
  });
});
