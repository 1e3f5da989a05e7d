import { createHash } from 'node:crypto';
import type { FeedContract, Message } from '../../src/contract/types';
import { decodeAll, decodeOne, feedContract } from '../support/decode-feed';

/** Sets a field of its own for each item to what `/big` of the envelope holds. */
const contract: FeedContract = feedContract({
  items: '/events',
  incident: [{ const: 'I-77' }],
  effects: [{ do: 'set', when: [], field: 'seen/{/seq}', to: [{ envelope: '/big' }] }],
});

function payload(bigBytes: number, items: number, character = 'x'): string {
  const events = Array.from({ length: items }, (_, index) => `{"agency":"N","src":"e","seq":${index}}`);
  return `{"big":"${character.repeat(bigBytes)}","events":[${events.join(',')}]}`;
}

function summary(messages: readonly Message[]): string[] {
  return messages.map((message) => {
    if (message.kind !== 'keyed') return message.reason;
    return message.plan.ok ? 'planned' : message.plan.reason;
  });
}

describe('what a delivery may become', () => {
  test.each([
    ['1200 items with 500 kB', 500_000, 1_200],
    ['15 000 items with 500 kB', 500_000, 15_000],
    ['2000 items with 60 kB, each of which might be written', 60_000, 2_000],
  ])('%s outside are one malformed message', (_, bigBytes, items) => {
    const messages = decodeAll(contract, payload(bigBytes, items));
    expect(messages).toMatchObject([{ kind: 'malformed', itemIndex: null, reason: 'delivery_too_large' }]);
  });

  test('a few items with too large a value fail one by one', () => {
    expect(summary(decodeAll(contract, payload(500_000, 3)))).toEqual(Array(3).fill('value_too_large'));
  });

  test('what an honest delivery repeats is far below the bound', () => {
    expect(summary(decodeAll(contract, payload(1_000, 200)))).toEqual(Array(200).fill('planned'));
    expect(summary(decodeAll(contract, payload(60, 20_000)))).toEqual(Array(20_000).fill('planned'));
  });

  test.each<[string, Partial<FeedContract>, Parameters<typeof decodeAll>[2]]>([
    ['a topic, which is in every entry', {}, { topic: `cad/${'x'.repeat(60_000)}/e1/incident` }],
    [
      'a user property',
      { effects: [{ do: 'set', when: [], field: 'seen/{/seq}', to: [{ userProperty: 'p' }] }] },
      { userProperties: { p: 'x'.repeat(60_000) } },
    ],
    [
      'a text that identity refuses',
      { identity: { ...contract.identity, agency: [{ userProperty: 'p' }] } },
      { userProperties: { p: 'x'.repeat(60_000) } },
    ],
  ])('%s counts for every item', (_, changes, overrides) => {
    const messages = decodeAll({ ...contract, effects: [], ...changes }, payload(1, 2_000), overrides);
    expect(summary(messages)).toEqual(['delivery_too_large']);
  });

  test('a topic counts for malformed items too', () => {
    const broken = `{"events":[${Array(2_000).fill('0').join(',')}]}`;
    const topic = `cad/${'x'.repeat(60_000)}/e1/incident`;
    expect(summary(decodeAll(contract, broken, { topic }))).toEqual(['delivery_too_large']);
    expect(summary(decodeAll(contract, broken))).toEqual(Array(2_000).fill('agency_missing'));
  });

  test('one message that many rules write is bounded as well', () => {
    const effects = Array.from({ length: 40 }, (_, index) => ({
      do: 'set' as const,
      when: [],
      field: `f${index}`,
      to: [{ pointer: '/big' }],
    }));
    const message = `{"agency":"N","src":"e","seq":1,"big":"${'x'.repeat(50_000)}"}`;
    const one = { ...contract, items: null };
    expect(summary([decodeOne({ ...one, effects: effects.slice(0, 15) }, message)])).toEqual(['planned']);
    expect(summary([decodeOne({ ...one, effects }, message)])).toEqual(['delivery_too_large']);
  });
});

describe('a value outside the items', () => {
  test('is written once a delivery, and is in the digest of each item as ever', () => {
    const big = 'é'.repeat(100); // Plain ASCII would not need JSON.stringify.
    const written = jest.spyOn(JSON, 'stringify');
    const messages = decodeAll(contract, payload(big.length, 50, 'é'));
    const times = written.mock.calls.filter(([value]) => value === big).length;
    written.mockRestore();
    expect(times).toBe(1);
    messages.forEach((message, seq) => {
      const text = `{"agency":"N","seq":${seq},"src":"e"}\n{"envelope:/big":"${big}"}`;
      const digest = createHash('sha256').update(text).digest('hex');
      expect(message).toMatchObject({ payloadDigest: digest, plan: { ok: true, effects: [{ to: `"${big}"` }] } });
    });
  });
});
