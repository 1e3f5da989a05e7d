import { decodeKeyed, feedContract } from '../support/decode-feed';
import type { EffectPlan, EffectRule, FeedContract, KeyedMessage, ValueSource, When } from '../../src/contract/types';

const base = '"agency":"NFD","src":"e1","seq":1';

function feed(...effects: EffectRule[]): FeedContract {
  return feedContract({ effects });
}

function decode(contract: FeedContract, members: string, incident = '"incident":"I-77"'): KeyedMessage {
  return decodeKeyed(contract, `{${[base, incident, members].filter((text) => text !== '').join(',')}}`);
}

function planOf(contract: FeedContract, members: string, incident?: string): EffectPlan {
  return decode(contract, members, incident).plan;
}

const outcome = (plan: EffectPlan): unknown => (plan.ok ? plan.effects : plan.reason);

const increment = (by: ValueSource, when: When = []): EffectRule => ({
  do: 'increment',
  when,
  field: 'casualties',
  by,
});
const set = (to: ValueSource, when: When = []): EffectRule => ({ do: 'set', when, field: 'status', to });

describe('rules', () => {
  test('the four effects, all that match, in the order of the contract', () => {
    const contract = feed(
      { do: 'set', when: [{ pointer: '/type', equals: 'x' }], field: 'units/{/unit}', to: [{ pointer: '/status' }] },
      { do: 'append', when: [], field: 'assignments', value: [{ pointer: '/unit' }] },
      { do: 'increment', when: [{ pointer: '/type', equals: 'y' }], field: 'n', by: [{ const: '1' }] },
      { do: 'increment', when: [{ pointer: '/type', equals: 'x' }], field: 'n', by: [{ pointer: '/delta' }] },
      { do: 'advance', when: [], field: 'period', to: [{ pointer: '/period' }] },
    );
    expect(planOf(contract, '"type":"x","unit":"E/4","status":{"b":1.0,"a":null},"delta":-2.50,"period":"7"')).toEqual({
      ok: true,
      effects: [
        { do: 'set', field: 'units/E~14', to: '{"a":null,"b":1}' },
        { do: 'append', field: 'assignments', value: '"E/4"' },
        { do: 'increment', field: 'n', by: '-2.5' },
        { do: 'advance', field: 'period', to: '7' },
      ],
      forward: null,
    });
  });

  test.each<[When, string, boolean]>([
    [[], '', true],
    [[{ pointer: '/t', equals: 'x' }], '"t":"x"', true],
    [[{ pointer: '/t', equals: 'x' }], '"t":"X"', false],
    [[{ pointer: '/t', equals: 'x' }], '"t":["x"]', false],
    [[{ pointer: '/t', equals: '1' }], '"t":1', false],
    [[{ pointer: '/t', equals: 1 }], '"t":"1"', false],
    [[{ pointer: '/t', equals: 1 }], '"t":1.0', true],
    [[{ pointer: '/t', equals: 100 }], '"t":1e2', true],
    [[{ pointer: '/t', equals: 0 }], '"t":-0', true],
    [[{ pointer: '/t', equals: 0 }], '"t":false', false],
    [[{ pointer: '/t', equals: 0.1 }], '"t":0.10', true],
    [[{ pointer: '/t', equals: 9007199254740992 }], '"t":9007199254740993', false],
    [[{ pointer: '/t', equals: true }], '"t":true', true],
    [[{ pointer: '/t', equals: true }], '"t":"true"', false],
    [[{ pointer: '/t', equals: null }], '"t":null', true],
    [[{ pointer: '/t', equals: null }], '', false],
    [
      [
        { pointer: '/t', equals: 'x' },
        { pointer: '/u', equals: 'y' },
      ],
      '"t":"x","u":"y"',
      true,
    ],
    [
      [
        { pointer: '/t', equals: 'x' },
        { pointer: '/u', equals: 'y' },
      ],
      '"t":"x","u":"z"',
      false,
    ],
    [[{ pointer: '/constructor', equals: 'x' }], '', false],
  ])('when %j against %s', (when, members, matches) => {
    expect(outcome(planOf(feed(set([{ const: 'on' }], when)), members))).toEqual(
      matches ? [{ do: 'set', field: 'status', to: '"on"' }] : [],
    );
  });

  test('a rule that cannot take effect stops them all', () => {
    const contract = feed(set([{ const: 'on' }]), increment([{ pointer: '/delta' }]), set([{ pointer: '/none' }]));
    expect(planOf(contract, '"delta":"three"')).toEqual({
      ok: false,
      reason: 'not_a_number',
      detail: 'increment: the value is no number',
    });
  });
});

describe('values', () => {
  test.each<[string, EffectRule]>([
    ['set', set([{ pointer: '/v' }])],
    ['append', { do: 'append', when: [], field: 'log', value: [{ pointer: '/v' }] }],
  ])('%s writes up to 64 KiB of canonical JSON', (_, rule) => {
    const written = (letters: string): unknown => outcome(planOf(feed(rule), `"v":"${letters}"`));
    expect(written('x'.repeat(65_534))).toHaveLength(1);
    expect(written('x'.repeat(65_535))).toBe('value_too_large');
    // Two bytes each.
    expect(written('é'.repeat(32_767))).toHaveLength(1);
    expect(written('é'.repeat(32_768))).toBe('value_too_large');
  });

  test.each([
    ['3', '3'],
    ['-0', '0'],
    ['1e2', '100'],
    ['"3"', '3'],
    ['"1.50"', '1.5'],
    ['9007199254740993', '9007199254740993'],
    ['null', 'not_a_number'],
    ['true', 'not_a_number'],
    ['[1]', 'not_a_number'],
    ['{}', 'not_a_number'],
    ['""', 'not_a_number'],
    ['" 3"', 'not_a_number'],
    ['"+3"', 'not_a_number'],
    ['"NaN"', 'not_a_number'],
    ['1e38', 'number_out_of_range'],
    ['1e-39', 'number_out_of_range'],
    ['1e400000000', 'number_out_of_range'],
  ])('increment and advance by %s', (value, expected) => {
    const source: ValueSource = [{ pointer: '/v' }];
    const advance: EffectRule = { do: 'advance', when: [], field: 'casualties', to: source };
    const taken = !expected.includes('_');
    expect(outcome(planOf(feed(increment(source)), `"v":${value}`))).toEqual(
      taken ? [{ do: 'increment', field: 'casualties', by: expected }] : expected,
    );
    expect(outcome(planOf(feed(advance), `"v":${value}`))).toEqual(
      taken ? [{ do: 'advance', field: 'casualties', to: expected }] : expected,
    );
  });

  test.each([
    ['null', 'null'],
    ['false', 'false'],
    ['"a\\u0000b"', '"a\\u0000b"'],
    ['[1.0,{"b":2,"a":"\\u00e5"}]', '[1,{"a":"å","b":2}]'],
    ['9007199254740993', '9007199254740993e0'],
  ])('set and append %s', (value, canonical) => {
    const source: ValueSource = [{ pointer: '/v' }];
    const append: EffectRule = { do: 'append', when: [], field: 'list', value: source };
    expect(outcome(planOf(feed(set(source), append), `"v":${value}`))).toEqual([
      { do: 'set', field: 'status', to: canonical },
      { do: 'append', field: 'list', value: canonical },
    ]);
  });

  test.each<[EffectRule]>([
    [increment([{ pointer: '/none' }])],
    [set([{ pointer: '/none' }, { topicLevel: 9 }])],
    [{ do: 'append', when: [], field: 'list', value: [{ userProperty: 'none' }] }],
    [{ do: 'advance', when: [], field: 'period', to: [{ pointer: '/none' }] }],
  ])('a value that is missing: %j', (rule) => {
    expect(outcome(planOf(feed(rule), ''))).toBe('value_missing');
  });

  test('a user property that came twice is no value', () => {
    const contract = feed(set([{ userProperty: 'status' }]));
    const message = decodeKeyed(contract, `{${base},"incident":"I"}`, { userProperties: { status: ['a', 'b'] } });
    expect(outcome(message.plan)).toBe('value_unreadable');
  });

  test.each([
    ['', 'field_value_missing'],
    ['"unit":""', 'field_value_missing'],
    ['"unit":null', 'field_invalid'],
    [`"unit":"${'x'.repeat(600)}"`, 'field_too_long'],
  ])('a field with %s', (members, reason) => {
    expect(outcome(planOf(feed({ ...set([{ const: 'x' }]), field: 'units/{/unit}' }), members))).toBe(reason);
  });
});

describe('the incident', () => {
  const contract = feed(set([{ const: 'on' }], [{ pointer: '/type', equals: 'x' }]));

  test.each([
    ['"incident":"I-77"', 'I-77'],
    ['"incident":77', '77'],
    ['"incident":77.0', '77'],
    ['"incident":-7', '-7'],
    ['"incident":9007199254740993', '9007199254740993'],
    [`"incident":"${'x'.repeat(512)}"`, 'x'.repeat(512)],
    ['"incident":null', null],
    ['', null],
  ])('%s is %p', (incident, id) => {
    const message = decode(contract, '', incident);
    expect(message.incidentId).toBe(id);
    expect(outcome(message.plan)).toEqual([]);
  });

  test.each([
    [`"incident":"${'x'.repeat(513)}"`, 'incident_id_too_long'],
    [`"incident":"${'Å'.repeat(257)}"`, 'incident_id_too_long'],
    ['"incident":""', 'incident_id_invalid'],
    ['"incident":"a\\u0000"', 'incident_id_invalid'],
    ['"incident":true', 'incident_id_invalid'],
    ['"incident":{}', 'incident_id_invalid'],
    ['"incident":[]', 'incident_id_invalid'],
    ['"incident":1.5', 'incident_id_invalid'],
    ['"incident":1e38', 'incident_id_invalid'],
  ])('%s fails, needed or not', (incident, reason) => {
    const message = decode(contract, '', incident);
    expect(message.incidentId).toBeNull();
    expect(outcome(message.plan)).toBe(reason);
  });

  test('an effect without an incident fails', () => {
    expect(outcome(planOf(contract, '"type":"x"', ''))).toBe('no_incident');
    expect(outcome(planOf(contract, '"type":"x"', '"incident":null'))).toBe('no_incident');
    expect(outcome(planOf({ ...contract, incident: null }, '"type":"x"'))).toBe('no_incident');
  });

  test('an incident that could be stored is given although its effects fail', () => {
    const message = decode(feed(increment([{ pointer: '/none' }])), '');
    expect(message.incidentId).toBe('I-77');
    expect(message.plan.ok).toBe(false);
  });
});

describe('forwarding', () => {
  const forwarding = (topic: string, effects: FeedContract['effects'] = []): FeedContract =>
    feedContract({ effects, forward: { topic } });

  test("gives the topic and the message's own bytes", () => {
    const text = `{ ${base}, "incident" : "I-77", "n": 1.0 }`;
    const message = decodeKeyed(forwarding('cop/incidents/{incident}'), text);
    if (!message.plan.ok || message.plan.forward === null) throw new Error('a forward expected');
    expect(message.plan.forward.topic).toBe('cop/incidents/I-77');
    expect(Buffer.from(message.plan.forward.payload).toString('utf8')).toBe(text);
  });

  test('a topic that cannot be made fails the message', () => {
    expect(outcome(planOf(forwarding('cop/{incident}'), '', '"incident":"a/b"'))).toBe('forward_topic_invalid');
    expect(outcome(planOf(forwarding('cop/{incident}'), '', ''))).toBe('no_incident');
    expect(outcome(planOf(forwarding('cop/{/none}'), ''))).toBe('forward_topic_invalid');
    expect(outcome(planOf(forwarding('cop/all'), '', ''))).toEqual([]);
  });

  test('effects that are off decide and record only', () => {
    expect(planOf(forwarding('cop/{incident}', 'off'), '')).toEqual({ ok: true, effects: [], forward: null });
  });
});
