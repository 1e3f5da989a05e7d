import { decodeKeyed, decodeOne, epochContract, eventIdContract, feedContract } from '../support/decode-feed';
import type { FeedContract, ValueSource } from '../../src/contract/types';

const feed = feedContract();

const withSequence = (sequence: string): string => `{"agency":"NFD","src":"e1","seq":${sequence}}`;
const withAgency = (agency: string): string => `{"agency":${agency},"src":"e1","seq":1}`;

function reasonOf(contract: FeedContract, payload: string | Uint8Array): string {
  const message = decodeOne(contract, payload);
  return message.kind === 'keyed'
    ? `keyed ${message.identity.sequence ?? message.identity.eventId?.join()}`
    : message.reason;
}

function sourceFrom(source: ValueSource): FeedContract {
  const { identity } = feedContract();
  return feedContract({ identity: { ...identity, source } });
}

describe('C045: a sequence that cannot be taken has a reason of its own', () => {
  test.each([
    ['null', 'sequence_null'],
    ['true', 'sequence_boolean'],
    ['false', 'sequence_boolean'],
    ['[]', 'sequence_array'],
    ['[7]', 'sequence_array'],
    ['{}', 'sequence_object'],
    ['""', 'sequence_empty'],
    ['" 7"', 'sequence_not_digits'],
    ['"7 "', 'sequence_not_digits'],
    ['"+7"', 'sequence_not_digits'],
    ['"-0"', 'sequence_not_digits'],
    ['"7.0"', 'sequence_not_digits'],
    ['"٧"', 'sequence_not_digits'],
    ['"7\\u0000"', 'sequence_not_digits'],
    ['-1', 'sequence_negative'],
    ['-0.5', 'sequence_negative'],
    ['1.5', 'sequence_fractional'],
    ['1e-400', 'sequence_fractional'],
    ['1e400', 'sequence_too_long'],
    ['1e400000000', 'sequence_too_long'],
    [`1${'0'.repeat(38)}`, 'sequence_too_long'],
    [`"1${'0'.repeat(38)}"`, 'sequence_too_long'],
    [`"${'0'.repeat(513)}"`, 'sequence_too_long'],
    ['-0', 'keyed 0'],
    [`"${'0'.repeat(511)}1"`, 'keyed 1'],
  ])('seq %s', (sequence, reason) => {
    expect(reasonOf(feed, withSequence(sequence))).toBe(reason);
  });

  test('absent', () => {
    expect(reasonOf(feed, '{"agency":"NFD","src":"e1"}')).toBe('sequence_missing');
  });
});

describe('C040: digits survive unchanged', () => {
  test.each(['9007199254740992', '9007199254740993', '18446744073709551615', '9'.repeat(38)])('%s', (digits) => {
    const asNumber = decodeKeyed(feed, withSequence(digits));
    expect(asNumber.identity.sequence).toBe(digits);
    expect(decodeKeyed(feed, withSequence(`"${digits}"`)).key).toBe(asNumber.key);
  });

  test('neighbours have keys of their own', () => {
    const keys = ['9007199254740992', '9007199254740993', '9007199254740994'].map(
      (digits) => decodeKeyed(feed, withSequence(digits)).key,
    );
    expect(new Set(keys).size).toBe(3);
  });
});

describe('C044: one number, many spellings', () => {
  test('as a sequence', () => {
    const keys = ['"0007"', '"7"', '7', '7.0', '70e-1', '0.7E1'].map(
      (text) => decodeKeyed(feed, withSequence(text)).key,
    );
    expect(new Set(keys).size).toBe(1);
  });

  test('as an event id, text is text, and a number is its digits', () => {
    const contract = eventIdContract('/seq');
    const key = (text: string): string => decodeKeyed(contract, withSequence(text)).key;
    expect(key('"0007"')).not.toBe(key('"7"'));
    expect(key('7')).toBe(key('"7"'));
    expect(key('7.0')).toBe(key('7'));
  });
});

describe('the other parts', () => {
  test.each([
    ['null', 'agency_null'],
    ['false', 'agency_boolean'],
    ['[]', 'agency_array'],
    ['{}', 'agency_object'],
    ['""', 'agency_empty'],
    ['-3', 'agency_negative'],
    ['3.5', 'agency_fractional'],
    ['1e38', 'agency_too_long'],
    [`"${'a'.repeat(513)}"`, 'agency_too_long'],
    [`"${'Å'.repeat(257)}"`, 'agency_too_long'],
    [`"${'Å'.repeat(256)}"`, 'keyed 1'],
    [`"${'a'.repeat(512)}"`, 'keyed 1'],
    ['" "', 'keyed 1'],
    ['7', 'keyed 1'],
    ['"\ufffd"', 'keyed 1'],
  ])('agency %s', (agency, reason) => {
    expect(reasonOf(feed, withAgency(agency))).toBe(reason);
  });

  test('C079: NUL in the identity is refused, elsewhere it is data', () => {
    expect(reasonOf(feed, '{"agency":"N\\u0000FD","src":"e1","seq":141}')).toBe('agency_nul');
    const note = decodeKeyed(feed, '{"agency":"NFD","src":"e1","seq":140,"note":"a\\u0000b"}');
    expect(JSON.stringify(note)).not.toContain('\\u0000');
  });

  test('C038: parts are compared as they are, without normalisation', () => {
    const composed = decodeKeyed(feed, '{"agency":"\\u00c5rhus","src":"s","seq":1}');
    const decomposed = decodeKeyed(feed, '{"agency":"A\\u030arhus","src":"s","seq":1}');
    expect(composed.key).not.toBe(decomposed.key);
    expect(composed.key).toBe(decodeKeyed(feed, '{"agency":"Århus","src":"s","seq":1}').key);
  });

  test('C038: lone surrogates never share a key', () => {
    for (const surrogate of ['\\ud800', '\\ud801']) {
      expect(reasonOf(feed, `{"agency":"${surrogate}","src":"s","seq":1}`)).toBe('lone_surrogate');
    }
  });

  test('the first part that cannot be taken is named', () => {
    expect(decodeOne(feed, '{}')).toMatchObject({ kind: 'malformed', reason: 'agency_missing' });
    expect(decodeOne(feed, '{"agency":"a"}')).toMatchObject({ kind: 'malformed', reason: 'source_missing' });
  });

  test('C113, C114: a sequence is never read off a prototype', () => {
    expect(reasonOf(feed, '{"__proto__":{"seq":5,"agency":"X"},"agency":"NFD","src":"e1"}')).toBe('sequence_missing');
    const { identity } = feedContract();
    if (identity.mode !== 'sequence') throw new Error('a feed with sequences expected');
    for (const pointer of ['/constructor/name', '/toString', '/items/length', '/agency/0']) {
      const contract = feedContract({ identity: { ...identity, sequence: [{ pointer }] } });
      expect(reasonOf(contract, '{"agency":"NFD","src":"e1","items":[1]}')).toBe('sequence_missing');
    }
  });
});

describe('epochs', () => {
  const withEpoch = (boot: string): string => `{"agency":"NFD","src":"x","boot":${boot},"seq":3}`;

  test('C032: an epoch never equals its absence', () => {
    const without = decodeKeyed(feed, '{"agency":"NFD","src":"x|2","seq":3}');
    const withOne = decodeKeyed(epochContract(), withEpoch('2'));
    expect(withOne.identity).toEqual({ agency: 'NFD', sourceId: 'x', epoch: '2', sequence: '3', eventId: null });
    expect(without.key).not.toBe(withOne.key);
  });

  test.each([
    ['opaque', '"a-b"', 'a-b'],
    ['opaque', '"007"', '007'],
    ['opaque', '7.0', '7'],
    ['numeric', '"007"', '7'],
    ['numeric', '1e2', '100'],
  ] as const)('%s %s is %s', (order, boot, epoch) => {
    expect(decodeKeyed(epochContract(order), withEpoch(boot)).identity.epoch).toBe(epoch);
  });

  test.each([
    ['opaque', 'true', 'epoch_boolean'],
    ['opaque', 'null', 'epoch_null'],
    ['opaque', '""', 'epoch_empty'],
    ['opaque', '-1', 'epoch_negative'],
    ['numeric', '"a"', 'epoch_not_digits'],
    ['numeric', '1.5', 'epoch_fractional'],
    ['numeric', '{}', 'epoch_object'],
  ] as const)('%s %s is refused', (order, boot, reason) => {
    expect(reasonOf(epochContract(order), withEpoch(boot))).toBe(reason);
  });

  test('absent', () => {
    expect(reasonOf(epochContract(), '{"agency":"NFD","src":"x","seq":3}')).toBe('epoch_missing');
  });
});

describe('event ids', () => {
  test('C034: a second pointer tells an edited message apart', () => {
    const first = '{"agency":"A","src":"s","seq":9,"sent":"10:00","v":1}';
    const edited = '{"agency":"A","src":"s","seq":9,"sent":"10:05","v":2}';
    const byOne = eventIdContract('/seq');
    expect(decodeKeyed(byOne, first).key).toBe(decodeKeyed(byOne, edited).key);
    expect(decodeKeyed(byOne, first).claimDigest).not.toBe(decodeKeyed(byOne, edited).claimDigest);
    const byTwo = eventIdContract('/seq', '/sent');
    expect(decodeKeyed(byTwo, first).key).not.toBe(decodeKeyed(byTwo, edited).key);
    expect(decodeKeyed(byTwo, first).identity).toEqual({
      agency: 'A',
      sourceId: 's',
      epoch: null,
      sequence: null,
      eventId: ['9', '10:00'],
    });
  });

  test('a part that is missing is named by its place', () => {
    expect(decodeOne(eventIdContract('/seq', '/sent'), '{"agency":"A","src":"s","seq":9}')).toEqual({
      kind: 'malformed',
      itemIndex: null,
      reason: 'event_id_missing',
      detail: 'event id part 2: the message does not have it',
    });
  });
});

describe('where values are read', () => {
  const payload = '{"agency":"NFD","src":"e1","seq":1,"nothing":null}';
  const read = (source: ValueSource, overrides: Parameters<typeof decodeOne>[2] = {}): string => {
    const message = decodeOne(sourceFrom(source), payload, overrides);
    return message.kind === 'keyed' ? message.identity.sourceId : message.reason;
  };

  test('a constant, a pointer, a topic level, a user property', () => {
    expect(read([{ const: 'fixed' }])).toBe('fixed');
    expect(read([{ pointer: '/src' }])).toBe('e1');
    expect(read([{ envelope: '/src' }])).toBe('e1');
    expect(read([{ topicLevel: 0 }])).toBe('cad');
    expect(read([{ topicLevel: 3 }])).toBe('incident');
    expect(read([{ userProperty: 'unit' }], { userProperties: { unit: 'e9' } })).toBe('e9');
    expect(read([{ userProperty: 'unit' }], { userProperties: { unit: ['e9'] } })).toBe('e9');
  });

  test('the first alternative that is present counts, and null is present', () => {
    expect(read([{ pointer: '/none' }, { userProperty: 'unit' }, { topicLevel: 9 }, { const: 'last' }])).toBe('last');
    expect(read([{ pointer: '/none' }, { pointer: '/src' }, { const: 'last' }])).toBe('e1');
    expect(read([{ pointer: '/nothing' }, { const: 'last' }])).toBe('source_null');
    expect(read([{ topicLevel: 1 }, { const: 'last' }], { topic: 'cad//e1/incident' })).toBe('source_empty');
  });

  test('what is nowhere is missing', () => {
    expect(read([{ topicLevel: 4 }])).toBe('source_missing');
    expect(read([{ userProperty: 'unit' }])).toBe('source_missing');
    expect(read([{ userProperty: 'unit' }], { userProperties: { unit: [] } })).toBe('source_missing');
    for (const userProperty of ['constructor', '__proto__', 'toString']) {
      expect(read([{ userProperty }])).toBe('source_missing');
    }
  });

  test('a user property that came twice is ambiguous', () => {
    expect(read([{ userProperty: 'unit' }, { const: 'x' }], { userProperties: { unit: ['a', 'b'] } })).toBe(
      'source_repeated',
    );
    expect(read([{ userProperty: 'unit' }], { userProperties: { unit: ['a', 'a'] } })).toBe('source_repeated');
  });

  test('text from MQTT that arrived garbled is not an identity', () => {
    expect(read([{ topicLevel: 2 }], { topic: 'cad/north/e\ufffd/incident' })).toBe('source_ill_formed');
    expect(read([{ userProperty: 'unit' }], { userProperties: { unit: '\ufffd' } })).toBe('source_ill_formed');
  });
});

test('C026: bytes that are no UTF-8 never become a key', () => {
  for (const byte of ['ff', 'fe']) {
    const payload = Buffer.from(
      `7b226167656e6379223a224e${byte}222c22737263223a227322 2c22736571223a317d`.replace(' ', ''),
      'hex',
    );
    expect(reasonOf(feed, payload)).toBe('invalid_utf8');
  }
});

test('C039: a repeated member is refused, never read one way or the other', () => {
  expect(reasonOf(feed, '{"agency":"NFD","src":"e1","seq":1,"seq":2}')).toBe('duplicate_member');
  expect(reasonOf(feed, '{"agency":"NFD","src":"e1","seq":1,"\\u0073eq":1}')).toBe('duplicate_member');
  expect(reasonOf(feed, '{"agency":"NFD","src":"e1","seq":1,"note":{"a":1,"a":1}}')).toBe('duplicate_member');
});
