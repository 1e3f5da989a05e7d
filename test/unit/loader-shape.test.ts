import { errorsOf, cadWith, load } from './loader-fixture';

/** The errors of `CAD` with one text replaced. */
function errorsWith(from: string, to: string): string[] {
  return errorsOf(cadWith([from, to]));
}

describe('keys', () => {
  test.each([
    [
      '    C112 epcoh',
      '  sequence:',
      '  epcoh: { pointer: /boot }\n  sequence:',
      '7:3: identity.epcoh: unknown key "epcoh"; did you mean "epoch"?',
    ],
    [
      'of another case',
      'maxEntries',
      'max_entries',
      '11:3: dedup.max_entries: unknown key "max_entries"; did you mean "maxEntries"?',
    ],
    [
      'with an ending too much',
      '  source:',
      '  source_id:',
      '6:3: identity.source_id: unknown key "source_id"; did you mean "source"?',
    ],
    ['at the top', 'topics:', 'topcis:', '3:1: topcis: unknown key "topcis"; did you mean "topics"?'],
    [
      'in an origin',
      '{ pointer: /src }',
      '{ pionter: /src }',
      '6:13: identity.source.pionter: unknown key "pionter"; did you mean "pointer"?',
    ],
    [
      'in an alternative',
      '{ pointer: /src }',
      '[{ pointer: /src }, { topicLvl: 1 }]',
      '6:33: identity.source[1].topicLvl: unknown key "topicLvl"; did you mean "topicLevel"?',
    ],
    [
      'in an effect',
      'do: set, field',
      'do: set, feild',
      '13:16: effects[0].feild: unknown key "feild"; did you mean "field"?',
    ],
    [
      'of another effect',
      'do: set, field: status',
      'do: set, by: { const: "1" }, field: status',
      '13:16: effects[0].by: unknown key "by"; known here: do, when, field, to',
    ],
    [
      'that nothing is like',
      'feed: cad-north',
      'feed: cad-north\nwindow: 10',
      '3:1: window: unknown key "window"; known here: apiVersion, feed, description, owner, topics, brokers, decode, items, identity, incident, occurredAt, digest, consume, dedup, policy, delivery, effects, forward',
    ],
  ])('unknown %s', (_, from, to, error) => {
    expect(errorsWith(from, to)).toContain(`cad.yaml:${error}`);
  });

  test('a mistyped origin is one error, not also one about the number of origins', () => {
    expect(errorsWith('{ pointer: /src }', '{ pionter: /src }')).toHaveLength(1);
  });

  test.each([
    ['apiVersion: replay-ledger/v1\n', /^cad\.yaml:1:1: apiVersion: is missing/],
    ['feed: cad-north\n', /^cad\.yaml:1:1: feed: is missing; it must be 1 to 64 characters of a-z, 0-9 and -$/],
    ['topics: ["cad/+/+/incident"]\n', /^cad\.yaml:1:1: topics: is missing/],
    ['  agency: { pointer: /agency }\n', /^cad\.yaml:4:1: identity\.agency: is missing/],
    ['  maxEntries: 1000\n', /^cad\.yaml:9:1: dedup\.maxEntries: is missing; it must be a whole number of entries/],
    [', to: { pointer: /status }', /^cad\.yaml:13:5: effects\[0\]\.to: is missing/],
    ['do: set, ', /^cad\.yaml:13:5: effects\[0\]\.do: is missing; it must be one of increment, set, append, advance$/],
  ])('missing: %j', (text, error) => {
    expect(errorsWith(text, '')).toEqual([expect.stringMatching(error)]);
  });
});

describe('values', () => {
  test.each(['NO', 'on', 'off', 'yes', 'y', 'n', 'No', 'Off', '0o8', '1_000', '2024-01-01', '1:30'])(
    'C107 the constant %s is that text',
    (text) => {
      const { identity } = load(cadWith(['agency: { pointer: /agency }', `agency: { const: ${text} }`])).contract;
      expect(identity.agency).toEqual([{ const: text }]);
    },
  );

  test.each([
    ['~', 'null'],
    ['null', 'null'],
    ['NULL', 'null'],
    ['true', 'a boolean'],
    ['FALSE', 'a boolean'],
    ['12', 'a number'],
    ['1e3', 'a number'],
    ['0x10', 'a number'],
    ['.inf', 'a number'],
    ['007', 'a number'],
    ['12345678901234567.0', 'a number'],
  ])('C107 the constant %s must be quoted', (text, kind) => {
    expect(errorsWith('{ pointer: /agency }', `{ const: ${text} }`)).toEqual([
      `cad.yaml:5:20: identity.agency.const: must be a text, but YAML reads ${text} as ${kind}; to mean the text, quote it: "${text}"`,
    ]);
    const quoted = load(cadWith(['{ pointer: /agency }', `{ const: "${text}" }`])).contract.identity.agency;
    expect(quoted).toEqual([{ const: text }]);
  });

  test('C107 a big integer as a constant must be quoted too', () => {
    expect(errorsWith('{ pointer: /agency }', '{ const: 12345678901234567890 }')).toEqual([
      expect.stringMatching(/^cad\.yaml:5:20: identity\.agency\.const: .* quote it: "12345678901234567890"$/),
    ]);
  });

  test.each([
    '10m',
    '10M',
    '10 s',
    '1e3',
    '1E3',
    '10.5',
    '600.0',
    '0x258',
    '0o1130',
    '0600',
    '+600',
    '-600',
    '0',
    '31536001',
    '.inf',
    '1_000',
    '"600"',
    '~',
    '[600]',
    '99999999999999999999',
  ])('C112 windowSeconds: %s is refused', (text) => {
    expect(errorsWith('windowSeconds: 600', `windowSeconds: ${text}`)).toEqual([
      expect.stringMatching(/^cad\.yaml:10:18: dedup\.windowSeconds: must be /),
    ]);
  });

  test.each(['1e3', '0', '10000001', '10.5', '-1', 'many'])('C112 maxEntries: %s is refused', (text) => {
    expect(errorsWith('maxEntries: 1000', `maxEntries: ${text}`)).toEqual([
      expect.stringMatching(/^cad\.yaml:11:15: dedup\.maxEntries: must be /),
    ]);
  });

  test('C112 the bounds themselves are allowed', () => {
    const text = cadWith(
      ['windowSeconds: 600', 'windowSeconds: 31536000'],
      ['maxEntries: 1000', 'maxEntries: 10000000'],
    );
    expect(load(text).contract.dedup).toMatchObject({ windowSeconds: 31_536_000, maxEntries: 10_000_000 });
    expect(load(cadWith(['maxEntries: 1000', 'maxEntries: 1'])).contract.dedup.maxEntries).toBe(1);
  });

  test.each([
    ['5000', '5000'],
    ['99999999999999999999999999999999999999', '99999999999999999999999999999999999999'],
    ['"12345678901234567890"', '12345678901234567890'],
    ['9007199254740993', '9007199254740993'],
  ])('maxSequenceJump: %s survives to the last digit', (text, expected) => {
    const { dedup } = load(cadWith(['maxEntries: 1000', `maxEntries: 1000\n  maxSequenceJump: ${text}`])).contract;
    expect(dedup.maxSequenceJump).toBe(expected);
  });

  test.each(['0', '-1', '1.5', '1e3', '100000000000000000000000000000000000000', '"01"', '"1x"', 'x'])(
    'maxSequenceJump: %s is refused',
    (text) => {
      expect(errorsWith('maxEntries: 1000', `maxEntries: 1000\n  maxSequenceJump: ${text}`)).toEqual([
        expect.stringMatching(/^cad\.yaml:12:20: dedup\.maxSequenceJump: must be /),
      ]);
    },
  );

  test.each(['CAD', 'cad_north', 'cad north', '""', 'é', 'a'.repeat(65), '12'])(
    'the feed name %s is refused',
    (name) => {
      expect(errorsWith('cad-north', name)).toEqual([expect.stringMatching(/^cad\.yaml:2:7: feed: must be 1 to 64/)]);
    },
  );

  test.each(['a', '-', '0-9', 'a'.repeat(64)])('the feed name "%s" is taken', (name) => {
    expect(load(cadWith(['cad-north', `"${name}"`])).contract.feed).toBe(name);
  });

  test.each(['replay-ledger/v2', 'v1', '1', 'Replay-Ledger/v1'])('apiVersion: %s is refused', (version) => {
    expect(errorsWith('replay-ledger/v1', version)).toEqual([
      expect.stringMatching(/^cad\.yaml:1:13: apiVersion: must be replay-ledger\/v1, the only version/),
    ]);
  });

  test.each(['agency', 'a/b', '#/agency', '/a~', '/a~2b', '/~'])('the pointer %s is refused', (pointer) => {
    expect(errorsWith('{ pointer: /agency }', `{ pointer: "${pointer}" }`)).toEqual([
      expect.stringMatching(/^cad\.yaml:5:22: identity\.agency\.pointer: is no JSON pointer \(RFC 6901\)/),
    ]);
  });

  test.each(['', '/', '/a//b', '/a~0b~1c', '/0', '/ü'])('the pointer "%s" is taken', (pointer) => {
    const { identity } = load(cadWith(['{ pointer: /agency }', `{ pointer: "${pointer}" }`])).contract;
    expect(identity.agency).toEqual([{ pointer }]);
  });

  test.each([
    ['{}', 'must have exactly one of const, pointer, envelope, topicLevel, userProperty'],
    ['{ pointer: /a, topicLevel: 1 }', 'must have exactly one of const, pointer, envelope, topicLevel, userProperty'],
    ['[]', 'must be a list of 1 to 8 alternatives'],
    [
      '3',
      'must be a value, such as { pointer: /id }, { topicLevel: 2 } or { const: "text" }, or a list of 1 to 8 alternatives, not 3',
    ],
    [
      '/agency',
      'must be a value, such as { pointer: /id }, { topicLevel: 2 } or { const: "text" }, or a list of 1 to 8 alternatives, not "/agency"',
    ],
  ])('the source %s is refused', (value, message) => {
    expect(errorsWith('agency: { pointer: /agency }', `agency: ${value}`)).toEqual([
      `cad.yaml:5:11: identity.agency: ${message}`,
    ]);
  });

  test.each(['0', '-1', '1.5', '"1"', '1001', 'two'])('identity.version: %s is refused', (version) => {
    expect(errorsWith('identity:', `identity:\n  version: ${version}`)).toEqual([
      expect.stringMatching(
        /^cad\.yaml:5:12: identity\.version: must be a whole number from 1 to 1000, written in digits/,
      ),
    ]);
  });

  test.each([1, 2, 1000])('identity.version: %d is taken', (version) => {
    const { identity } = load(cadWith(['identity:', `identity:\n  version: ${version}`])).contract;
    expect(identity.version).toBe(version);
  });

  test.each(['-1', '1.5', '"1"', '128', 'one'])('topicLevel: %s is refused', (level) => {
    expect(errorsWith('{ pointer: /agency }', `{ topicLevel: ${level} }`)).toContainEqual(
      expect.stringMatching(/^cad\.yaml:5:25: identity\.agency\.topicLevel: must be /),
    );
  });

  test.each([
    ['do: replace', /^cad\.yaml:13:11: effects\[0\]\.do: must be one of increment, set, append, advance/],
    ['do: set, when: { type: x }', /^cad\.yaml:13:24: effects\[0\]\.when\.type: the key "type" is no JSON pointer/],
    ['do: set, when: { /type: [x] }', /^cad\.yaml:13:31: effects\[0\]\.when\.\/type: must be a text, a number/],
    ['do: set, when: { /type: 1e3 }', /^cad\.yaml:13:31: effects\[0\]\.when\.\/type: must be written in plain/],
    ['do: set, when: { /type: 1.0 }', /^cad\.yaml:13:31: effects\[0\]\.when\.\/type: must be written in plain/],
    ['do: set, when: { /n: 1234567890123456789 }', /^cad\.yaml:13:28: effects\[0\]\.when\.\/n: has more digits/],
    ['do: set, when: { /n: 0.12345678901234567 }', /^cad\.yaml:13:28: effects\[0\]\.when\.\/n: has more digits/],
    ['do: set, when: x', /^cad\.yaml:13:22: effects\[0\]\.when: must be a mapping/],
  ])('the effect with %s is refused', (text, error) => {
    expect(errorsWith('do: set', text)).toEqual([expect.stringMatching(error)]);
  });

  test.each(['on', '[]', '{ ignore: /a }', '{}', '~'])('digest: %s is refused', (text) => {
    expect(errorsWith('incident:', `digest: ${text}\nincident:`)).toEqual([
      expect.stringMatching(/^cad\.yaml:8:\d+: digest(\.ignore)?: (must be|is missing)/),
    ]);
  });
});
