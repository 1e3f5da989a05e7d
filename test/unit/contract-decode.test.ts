import { createHash } from 'node:crypto';
import { compileContract, decodeDelivery, messagePayload } from '../../src/contract/decode';
import type { FeedContract, KeyedMessage, Message } from '../../src/contract/types';
import { decodeAll, decodeKeyed, decodeOne, delivery, eventIdContract, feedContract } from '../support/decode-feed';

const feed = feedContract();
const B = (seq: number): string => `{"agency":"NFD","src":"e1","seq":${seq},"incident":"I-77","status":"ENROUTE"}`;
const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');
const reasons = (messages: readonly Message[]): string[] =>
  messages.map((message) => (message.kind === 'keyed' ? 'keyed' : message.reason));

describe('a delivery that is one message', () => {
  test('is read whole', () => {
    const contract = feedContract({ occurredAt: [{ pointer: '/sent' }] });
    const payload = '{"sent":"2024-08-29T01:10:00.5-05:00","agency":"NFD","src":"e1","seq":41,"incident":"I-77"}';
    expect(decodeOne(contract, payload)).toEqual({
      kind: 'keyed',
      itemIndex: null,
      keyVersion: 1,
      key: sha256('NFD|e1|41'),
      identity: { agency: 'NFD', sourceId: 'e1', epoch: null, sequence: '41', eventId: null },
      payloadDigest: sha256(
        '{"agency":"NFD","incident":"I-77","sent":"2024-08-29T01:10:00.5-05:00","seq":41,"src":"e1"}',
      ),
      claimDigest: sha256(
        '{"agency":"NFD","incident":"I-77","sent":"2024-08-29T01:10:00.5-05:00","seq":41,"src":"e1"}',
      ),
      incidentId: 'I-77',
      occurredAt: '2024-08-29T06:10:00.500000Z',
      plan: { ok: true, effects: [], forward: null },
      former: [],
    });
  });

  test('a time that cannot be read is none', () => {
    const contract = feedContract({ occurredAt: [{ pointer: '/sent' }] });
    for (const sent of ['"yesterday"', '1724911800', 'null', '{}']) {
      expect(decodeKeyed(contract, `{"agency":"N","src":"e","seq":1,"sent":${sent}}`).occurredAt).toBeNull();
    }
  });

  test('C001, C002, C004: how it was delivered never counts', () => {
    const [first] = decodeAll(feed, B(1041));
    for (const overrides of [{ dup: true }, { retained: true }, { qos: 0 }, { qos: 2 }, { broker: 'other' }] as const) {
      expect(decodeAll(feed, B(1041), overrides)).toEqual([first]);
    }
    expect(decodeAll(feed, B(1041), { topic: 'cad/south/e9/incident' })).toEqual([first]);
    expect(decodeAll(feed, B(1041), { userProperties: { trace: '1' } })).toEqual([first]);
  });

  test('a zero-length payload is ignored, whatever its topic', () => {
    expect(decodeAll(feed, '')).toEqual([{ kind: 'ignored', itemIndex: null, reason: 'empty_payload' }]);
    expect(reasons(decodeAll(feed, '', { topic: 'elsewhere' }))).toEqual(['empty_payload']);
    expect(reasons(decodeAll(feed, ' '))).toEqual(['invalid_json']);
  });

  test('C019: a topic that the contract does not name is not decided on', () => {
    for (const topic of ['aws/cad/north/e1/incident', 'cad/north/incident', '$SYS/north/e1/incident']) {
      expect(decodeOne(feed, B(9), { topic })).toMatchObject({ kind: 'malformed', reason: 'topic_not_in_contract' });
    }
    const two = feedContract({ topics: ['a/#', 'b/+'] });
    expect(decodeOne(two, B(9), { topic: 'b/x' }).kind).toBe('keyed');
  });

  test('too large comes before a foreign topic: by that reason the bytes are not stored', () => {
    const large = decodeAll(feed, B(1), { topic: 'elsewhere' }, { maxPayloadBytes: 10 });
    expect(reasons(large)).toEqual(['payload_too_large']);
  });

  test('C022: what is no JSON is malformed, and says where', () => {
    expect(decodeOne(feed, '{"agency":')).toEqual({
      kind: 'malformed',
      itemIndex: null,
      reason: 'invalid_json',
      detail: 'a value is expected, at character 10',
    });
    expect(reasons(decodeAll(feed, Uint8Array.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d])))).toEqual(['invalid_json']);
    for (const scalar of ['1', '"x"', 'null', '[]']) {
      expect(reasons(decodeAll(feed, scalar))).toEqual(['agency_missing']);
    }
  });

  test('C025: a payload over the limit is malformed, one at the limit is read', () => {
    const payload = B(1);
    expect(reasons(decodeAll(feed, payload, {}, { maxPayloadBytes: payload.length }))).toEqual(['keyed']);
    const [message] = decodeAll(feed, payload, {}, { maxPayloadBytes: payload.length - 1 });
    expect(message).toMatchObject({ kind: 'malformed', reason: 'payload_too_large', itemIndex: null });
    expect(reasons(decodeDelivery(feed, delivery(new Uint8Array(20 * 1_048_576))))).toEqual(['payload_too_large']);
  });

  test('a compiled contract decodes as often as wanted', () => {
    const decoder = compileContract(feed);
    expect(decoder.contract).toBe(feed);
    expect(decoder.decode(delivery(B(1)))).toEqual(decoder.decode(delivery(B(1))));
    expect(decoder.decode(delivery(B(2)))).not.toEqual(decoder.decode(delivery(B(1))));
  });

  test('a contract that the loader must have refused is not compiled', () => {
    expect(() => compileContract(feedContract({ items: 'events' }))).toThrow(RangeError);
    expect(() => compileContract(feedContract({ forward: { topic: '{none}' } }))).toThrow(RangeError);
  });
});

describe('a delivery with items', () => {
  const batch = feedContract({ items: '/events', forward: { topic: 'cop/all' } });
  const wrap = (...items: string[]): string => `{"events":[${items.join(',')}]}`;

  test('each item is a message, in order, with its own bytes', () => {
    const items = [B(1), ' { "agency":"Å","src":"e1","seq":2.0 }', B(1)];
    const messages = decodeAll(batch, wrap(...items)) as KeyedMessage[];
    expect(messages.map(({ itemIndex, identity }) => [itemIndex, identity.sequence])).toEqual([
      [0, '1'],
      [1, '2'],
      [2, '1'],
    ]);
    const forwarded = messages.map(
      ({ plan }) => plan.ok && plan.forward && Buffer.from(plan.forward.payload).toString(),
    );
    expect(forwarded).toEqual(items.map((item) => item.trim()));
    expect({ ...messages[2], itemIndex: 0 }).toEqual(messages[0]);
  });

  test.each([
    ['{"events":[]}', ['empty_items']],
    ['{}', ['items_missing']],
    ['[]', ['items_missing']],
    ['7', ['items_missing']],
    ['{"events":null}', ['items_not_an_array']],
    ['{"events":{"0":1}}', ['items_not_an_array']],
    ['{"events":"[]"}', ['items_not_an_array']],
  ])('%s', (payload, expected) => {
    expect(reasons(decodeAll(batch, payload))).toEqual(expected);
  });

  test('one bad item spoils that item', () => {
    const messages = decodeAll(
      batch,
      wrap(
        B(1),
        '{"agency":"NFD","src":"e1","seq":2,"seq":3}',
        '{"agency":"\\ud800","src":"e1","seq":4}',
        '['.repeat(64) + ']'.repeat(64),
        '17',
        '{"agency":"NFD","src":"e1","seq":-1}',
        B(5),
      ),
    );
    expect(reasons(messages)).toEqual([
      'keyed',
      'duplicate_member',
      'lone_surrogate',
      'too_deep',
      'agency_missing',
      'sequence_negative',
      'keyed',
    ]);
    expect(messages.map(({ itemIndex }) => itemIndex)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  test.each([
    [`{"events":[${B(1)}],"events":[${B(2)}]}`, 'duplicate_member'],
    [`{"events":[${B(1)}],"note":"\\ud800"}`, 'lone_surrogate'],
    [`{"note":{"a":1,"a":2},"events":[${B(1)}]}`, 'duplicate_member'],
    [`{"deep":${'['.repeat(64)}${']'.repeat(64)},"events":[${B(1)}]}`, 'too_deep'],
    [`{"events":{"a":1,"a":2}}`, 'duplicate_member'],
    [`{"events":[{"a":1,"a":2}],"note":"\\ud800"}`, 'lone_surrogate'],
    [`{"events":[${B(1)}`, 'invalid_json'],
    [`{"events":[${B(1)},]}`, 'invalid_json'],
  ])('what is bad around the items spoils the delivery: %s', (payload, reason) => {
    expect(decodeAll(batch, payload)).toMatchObject([{ kind: 'malformed', itemIndex: null, reason }]);
  });

  test('C025: 2500 items are 2500 identities', () => {
    const contract: FeedContract = {
      ...eventIdContract('/properties/IrwinID', '/properties/ModifiedOnDateTime_dt'),
      items: '/features',
    };
    const identity = contract.identity;
    if (identity.mode !== 'eventId') throw new Error('an event id expected');
    const features = Array.from(
      { length: 2500 },
      (_, index) => `{"properties":{"IrwinID":"a${index}","ModifiedOnDateTime_dt":1}}`,
    );
    const messages = decodeAll(
      { ...contract, identity: { ...identity, agency: [{ const: 'irwin' }], source: [{ const: 'fires' }] } },
      `{"features":[${features.join(',')}]}`,
    );
    expect(new Set(messages.map((message) => (message.kind === 'keyed' ? message.key : ''))).size).toBe(2500);
  });

  test('a number with an exponent beyond reckoning spoils its item, not the rest', () => {
    const item = (seq: number, n: string): string => `{"agency":"NFD","src":"e1","seq":${seq},"n":${n}}`;
    const exponent = '9'.repeat(100);
    const payload = wrap(item(1, `1e${exponent}`), item(2, `1e9${exponent}`), item(3, `-1.5E-9${exponent}`), B(4));
    expect(decodeAll(batch, payload)).toMatchObject([
      { kind: 'keyed' },
      { kind: 'malformed', itemIndex: 1, reason: 'exponent_too_long' },
      { kind: 'malformed', itemIndex: 2, reason: 'exponent_too_long' },
      { kind: 'keyed' },
    ]);
    expect(reasons(decodeAll(feed, item(1, `1e${'9'.repeat(1_000_000)}`)))).toEqual(['exponent_too_long']);
    const [zeros] = decodeAll(feed, item(1, `1e${'0'.repeat(1000)}2`));
    expect(zeros).toEqual(decodeOne(feed, item(1, '100')));
  });

  test('more items than the limit are one malformed message', () => {
    expect(reasons(decodeAll(batch, wrap('0', '0', '0'), {}, { maxItems: 2 }))).toEqual(['too_many_items']);
    expect(decodeAll(batch, wrap('0', '0'), {}, { maxItems: 2 })).toHaveLength(2);
  });

  test('the payload itself may be the array', () => {
    expect(reasons(decodeAll({ ...batch, items: '' }, `[${B(1)},${B(2)}]`))).toEqual(['keyed', 'keyed']);
  });

  test('the envelope speaks for all items', () => {
    const { identity } = feedContract();
    const contract: FeedContract = { ...batch, identity: { ...identity, agency: [{ envelope: '/agency' }] } };
    const payload = (agency: string): string => `{"agency":${agency},"events":[{"src":"e1","seq":1,"agency":"other"}]}`;
    expect(decodeKeyed(contract, payload('"NFD"')).identity.agency).toBe('NFD');
    expect(reasons(decodeAll(contract, payload('null')))).toEqual(['agency_null']);
  });
});

describe('messagePayload', () => {
  const bytes = Buffer.from(`{"events":[ ${B(1)} ,{"a":1,"a":2}]}`);
  const text = (items: string | null, index: number | null): string | null => {
    const payload = messagePayload(items, bytes, index);
    return payload && Buffer.from(payload).toString('utf8');
  };

  test('gives an item as it came, also a malformed one', () => {
    expect(text('/events', 0)).toBe(B(1));
    expect(text('/events', 1)).toBe('{"a":1,"a":2}');
  });

  test('gives the whole payload where that is the message', () => {
    expect(messagePayload(null, bytes, null)).toBe(bytes);
    expect(messagePayload('/events', bytes, null)).toBe(bytes);
  });

  test('gives nothing where there is none', () => {
    expect(text('/events', 2)).toBeNull();
    expect(text('/none', 0)).toBeNull();
    expect(messagePayload('/events', Buffer.from('{"events":'), 0)).toBeNull();
  });
});
