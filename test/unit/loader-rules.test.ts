import { windowShortfall } from '../../src/contract/check-policy';
import { errorsOf, cadWith, load } from './loader-fixture';

/** The errors of `CAD` with one text replaced. */
function errorsWith(from: string, to: string): string[] {
  return errorsOf(cadWith([from, to]));
}

describe('the window', () => {
  test.each([
    [
      420,
      'windowSeconds 420 must exceed sessionExpirySeconds 300 + maxReplayDelaySeconds 120 = 420: replays can come that late',
    ],
    [421, null],
    [
      1,
      'windowSeconds 1 must exceed sessionExpirySeconds 300 + maxReplayDelaySeconds 120 = 420: replays can come that late',
    ],
  ])('of %i s', (windowSeconds, message) => {
    expect(windowShortfall({ windowSeconds }, { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 })).toBe(message);
  });

  test('must exceed the defaults of delivery where it is left out', () => {
    expect(errorsWith('windowSeconds: 600', 'windowSeconds: 420')).toEqual([
      'cad.yaml:10:18: dedup.windowSeconds: windowSeconds 420 must exceed sessionExpirySeconds 300 + maxReplayDelaySeconds 120 = 420: replays can come that late',
    ]);
    expect(errorsWith('windowSeconds: 600', 'windowSeconds: 421')).toEqual([]);
  });

  test('must exceed what delivery says', () => {
    const delivery = 'delivery: { sessionExpirySeconds: 500, maxReplayDelaySeconds: 100 }\neffects:';
    expect(errorsWith('effects:', delivery)).toEqual([expect.stringMatching(/500 \+ maxReplayDelaySeconds 100 = 600/)]);
    expect(errorsWith('effects:', delivery.replace('100', '99'))).toEqual([]);
  });
});

describe('identity', () => {
  test('C035 neither sequence nor eventId is refused, and a content hash is not offered', () => {
    for (const mode of ['', '  mode: sequence\n', '  mode: eventId\n']) {
      expect(errorsWith('  sequence: { pointer: /seq }\n', mode)).toEqual([
        expect.stringMatching(
          /^cad\.yaml:4:1: identity: has neither sequence nor eventId.*hash of the content is not offered/,
        ),
      ]);
    }
  });

  test.each([
    [
      '  sequence: { pointer: /seq }',
      '  eventId: { pointer: /id }',
      [
        /^cad\.yaml:4:1: identity\.sequence: is missing in mode sequence.*mode: eventId/,
        /^cad\.yaml:7:3: identity\.eventId: has no meaning/,
      ],
    ],
    [
      '  sequence:',
      '  mode: eventId\n  sequence:',
      [
        /^cad\.yaml:4:1: identity\.eventId: is missing in mode eventId/,
        /^cad\.yaml:8:3: identity\.sequence: has no meaning/,
      ],
    ],
    [
      '  sequence:',
      '  eventId: { pointer: /id }\n  sequence:',
      [/^cad\.yaml:7:3: identity\.eventId: has no meaning in mode sequence/],
    ],
    [
      '  sequence: { pointer: /seq }',
      '  mode: eventId\n  eventId: { pointer: /id }\n  epoch: { pointer: /boot }',
      [/^cad\.yaml:9:3: identity\.epoch: has no meaning in mode eventId/],
    ],
    [
      '  sequence: { pointer: /seq }',
      '  sequence: { const: "7" }',
      [/^cad\.yaml:7:22: identity\.sequence\.const: a sequence must come from the message/],
    ],
    [
      '  sequence: { pointer: /seq }',
      '  sequence: [{ pointer: /seq }, { const: "7" }]',
      [/^cad\.yaml:7:42: identity\.sequence\[1\]\.const: a sequence must/],
    ],
    [
      '  sequence: { pointer: /seq }',
      '  mode: eventId\n  eventId: [{ const: a }, [{ const: b }]]',
      [/^cad\.yaml:8:3: identity\.eventId: one part of an event id/],
    ],
    [
      '{ pointer: /agency }',
      '{ const: "" }',
      [/^cad\.yaml:5:20: identity\.agency\.const: an identity part must not be empty/],
    ],
    [
      '{ pointer: /agency }',
      `{ const: ${'é'.repeat(257)} }`,
      [/^cad\.yaml:5:20: identity\.agency\.const: .* at most 512 bytes in UTF-8; this one has 514/],
    ],
  ])('%s → %s', (from, to, errors) => {
    expect(errorsWith(from, to)).toEqual(errors.map((error) => expect.stringMatching(error)));
  });

  test('an event id has one part, or several, or alternatives of a part', () => {
    const eventId = (text: string): unknown => {
      const identity = load(cadWith(['sequence: { pointer: /seq }', `mode: eventId\n  eventId: ${text}`])).contract
        .identity;
      return identity.mode === 'eventId' ? identity.eventId : null;
    };
    expect(eventId('{ pointer: /id }')).toEqual([[{ pointer: '/id' }]]);
    expect(eventId('[{ pointer: /id }, { pointer: /sent }]')).toEqual([[{ pointer: '/id' }], [{ pointer: '/sent' }]]);
    expect(eventId('[[{ pointer: /id }, { userProperty: id }], { pointer: /sent }]')).toEqual([
      [{ pointer: '/id' }, { userProperty: 'id' }],
      [{ pointer: '/sent' }],
    ]);
  });

  test('an epoch is an origin with an order, alternatives, or both', () => {
    const epoch = (text: string): unknown => {
      const identity = load(cadWith(['  sequence:', `  epoch: ${text}\n  sequence:`])).contract.identity;
      return identity.mode === 'sequence' ? identity.epoch : null;
    };
    expect(epoch('{ pointer: /boot }')).toEqual({ value: [{ pointer: '/boot' }], order: 'opaque' });
    expect(epoch('{ pointer: /boot, order: numeric }')).toEqual({ value: [{ pointer: '/boot' }], order: 'numeric' });
    expect(epoch('[{ pointer: /boot }, { topicLevel: 1 }]')).toEqual({
      value: [{ pointer: '/boot' }, { topicLevel: 1 }],
      order: 'opaque',
    });
    expect(epoch('{ value: [{ pointer: /boot }, { topicLevel: 1 }], order: numeric }')).toEqual({
      value: [{ pointer: '/boot' }, { topicLevel: 1 }],
      order: 'numeric',
    });
  });

  test('a feed of event ids is tolerant, whatever it says, and is told so', () => {
    const eventId: [string, string] = ['sequence: { pointer: /seq }', 'mode: eventId\n  eventId: { pointer: /id }'];
    expect(load(cadWith(eventId))).toMatchObject({ contract: { dedup: { ordering: 'tolerant' } }, warnings: [] });
    expect(load(cadWith(eventId, ['maxEntries: 1000', 'maxEntries: 1000\n  ordering: strict']))).toMatchObject({
      contract: { dedup: { ordering: 'tolerant' } },
      warnings: [
        'cad.yaml:13:13: dedup.ordering: feeds in eventId mode have no order: nothing can be stale, and the feed runs as tolerant',
      ],
    });
    expect(errorsOf(cadWith(eventId, ['maxEntries: 1000', 'maxEntries: 1000\n  maxSequenceJump: 5']))).toEqual([
      'cad.yaml:13:3: dedup.maxSequenceJump: has no meaning in mode eventId: there are no sequences; remove it',
    ]);
  });
});

describe('pointers that lead into prototypes', () => {
  test.each(['/constructor/name', '/__proto__/polluted', '/a/prototype'])(
    'C113 %s is taken with a warning',
    (pointer) => {
      const loaded = load(cadWith(['/seq', pointer]));
      expect(loaded.contract.identity).toMatchObject({ sequence: [{ pointer }] });
      expect(loaded.warnings).toEqual([
        expect.stringMatching(
          /^cad\.yaml:7:24: identity\.sequence\.pointer: ".*" is read only where a message really has/,
        ),
      ]);
    },
  );

  test.each(['/toString', '/items/length', '/name/0'])('C113 %s is an ordinary pointer', (pointer) => {
    expect(load(cadWith(['/seq', pointer])).warnings).toEqual([]);
  });
});

describe('levels of the topic', () => {
  test.each([
    ['["cad/+/+/incident"]', 3, []],
    [
      '["cad/+/+/incident"]',
      4,
      ['cad.yaml:5:25: identity.agency.topicLevel: no topic of this contract has a level 4: levels count from 0'],
    ],
    ['["cad/#"]', 100, []],
    ['["#"]', 100, []],
    ['["a/b", "c"]', 1, []],
    [
      '["a/b", "c"]',
      2,
      ['cad.yaml:5:25: identity.agency.topicLevel: no topic of this contract has a level 2: levels count from 0'],
    ],
  ])('of %s: %i', (topics, level, errors) => {
    const text = cadWith(['["cad/+/+/incident"]', topics], ['{ pointer: /agency }', `{ topicLevel: ${level} }`]);
    expect(errorsOf(text)).toEqual(errors);
  });

  test('in a template count as well', () => {
    expect(errorsWith('field: status', 'field: "units/{topic[4]}"')).toEqual([
      'cad.yaml:13:23: effects[0].field: no topic of this contract has a level 4: levels count from 0',
    ]);
  });

  test('that only some topics have are a warning', () => {
    const text = cadWith(['["cad/+/+/incident"]', '["a/b", "c"]'], ['{ pointer: /agency }', '{ topicLevel: 1 }']);
    expect(load(text).warnings).toEqual(['cad.yaml:5:25: identity.agency.topicLevel: topics of "c" have no level 1']);
  });
});

test('a filter cannot be listed twice', () => {
  expect(errorsWith('["cad/+/+/incident"]', '["a/b", "a/c", "a/b"]')).toEqual([
    'cad.yaml:3:24: topics[2]: the filter "a/b" is listed already',
  ]);
});

test('what is left out has the documented values', () => {
  const contract = load(cadWith(['effects:\n  - { do: set, field: status, to: { pointer: /status } }\n', ''])).contract;
  expect(contract).toEqual({
    apiVersion: 'replay-ledger/v1',
    feed: 'cad-north',
    description: '',
    owner: '',
    topics: ['cad/+/+/incident'],
    brokers: ['default'],
    decode: 'json',
    items: null,
    policy: { managedBy: 'api' },
    identity: {
      version: 1,
      mode: 'sequence',
      agency: [{ pointer: '/agency' }],
      source: [{ pointer: '/src' }],
      epoch: null,
      sequence: [{ pointer: '/seq' }],
    },
    incident: [{ pointer: '/incident' }],
    occurredAt: null,
    digest: { ignore: [] },
    consume: 'owned',
    dedup: { windowSeconds: 600, maxEntries: 1000, ordering: 'strict', contiguous: false, maxSequenceJump: null },
    delivery: { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 },
    effects: [],
    forward: null,
  });
});
