import { compileContract } from '../../src/contract/decode';
import type {
  Delivery,
  FeedContract,
  FormerClaim,
  FormerReading,
  IdentityRule,
  Message,
} from '../../src/contract/types';
import { decodeAll, decodeKeyed, delivery, epochContract, eventIdContract, feedContract } from '../support/decode-feed';

/** A contract whose identity has that version. */
function version(number: number, contract: FeedContract): FeedContract {
  return { ...contract, identity: { ...contract.identity, version: number } };
}

const before = version(1, feedContract());
const after = version(2, epochContract());
const PAYLOAD = '{"agency":"NFD","src":"e1","boot":"b7","seq":41,"incident":"I-77"}';

function formerOf(
  current: FeedContract,
  history: readonly FeedContract[],
  payload: string | Uint8Array,
  overrides: Partial<Delivery> = {},
): (readonly FormerReading[] | null)[] {
  const messages = compileContract(current, {}, history).decode(delivery(payload, overrides));
  return messages.map((message) => (message.kind === 'keyed' ? message.former : null));
}

/** Each of these proves. */
function proofs(...claims: FormerClaim[]): FormerReading[] {
  return claims.map((claim) => ({ claims: [claim], proves: true }));
}

/** The claim that the contract makes of the only message of the payload. */
function claimOf(contract: FeedContract, payload: string, overrides: Partial<Delivery> = {}) {
  const { keyVersion, key, claimDigest, identity } = decodeKeyed(contract, payload, overrides);
  return { keyVersion, key, claimDigest, identity };
}

const batchOf = (...items: string[]): string =>
  `{"agency":"NFD","src":"e1","seq":7,"boot":"b7","events":[${items.join()}]}`;
const ITEMS = ['{"agency":"NFD","src":"e1","seq":1}', '{"agency":"NFD","src":"e1","seq":2}'] as const;
const batch = (contract: FeedContract): FeedContract => ({ ...contract, items: '/events' });

describe('a message under a raised identity version', () => {
  test('has its own key, and what it was before', () => {
    const [message] = compileContract(after, {}, [before]).decode(delivery(PAYLOAD));
    expect(message).toEqual({ ...decodeKeyed(after, PAYLOAD), former: proofs(claimOf(before, PAYLOAD)) });
    expect(message).toMatchObject({ keyVersion: 2, identity: { epoch: 'b7' } });
    expect(claimOf(before, PAYLOAD)).toMatchObject({ keyVersion: 1, identity: { epoch: null, sequence: '41' } });
  });

  test('was nothing where no lower version decided anything', () => {
    for (const history of [[], [after], [version(3, feedContract())]]) {
      expect(formerOf(after, history, PAYLOAD)).toEqual([[]]);
    }
  });

  test('is read by all lower versions, oldest first, and by equal contracts once', () => {
    const second = version(2, eventIdContract('/incident'));
    const third = version(3, epochContract());
    const history = [before, { ...before, description: 'another' }, second, { ...before, effects: [] }];
    expect(formerOf(third, history, PAYLOAD)).toEqual([proofs(claimOf(before, PAYLOAD), claimOf(second, PAYLOAD))]);
  });

  test('was nothing where the rules of before cannot read it', () => {
    const noSequence = version(2, eventIdContract('/incident'));
    expect(formerOf(noSequence, [before], '{"agency":"N","src":"e","incident":"I"}')).toEqual([[]]);
    expect(formerOf(noSequence, [before], '{"agency":"N","src":"e","incident":"I","seq":1.5}')).toEqual([[]]);
  });

  test('was nothing on a topic that was not taken, by any contract of before', () => {
    const [a, b] = [
      { ...before, topics: ['a/1'] },
      { ...before, topics: ['b/1'] },
    ] as const;
    const current = { ...after, topics: ['+/1'] };
    const on = (topic: string) => formerOf(current, [a, b], PAYLOAD, { topic });
    expect([on('a/1'), on('b/1')]).toEqual([
      [proofs(claimOf(a, PAYLOAD, { topic: 'a/1' }))],
      [proofs(claimOf(b, PAYLOAD, { topic: 'b/1' }))],
    ]);
    expect(on('c/1')).toEqual([[]]);
  });

  test('malformed and ignored messages were nothing', () => {
    expect(formerOf(after, [before], '{"agency":"NFD","src":"e1","seq":41}')).toEqual([null]);
    expect(formerOf(after, [before], '')).toEqual([null]);
  });
});

describe('the digest of before', () => {
  test('leaves out what was ignored then', () => {
    const ignoring: FeedContract = { ...before, digest: { ignore: ['/retry'] } };
    const [first, second] = ['1', '2'].map((retry) => `${PAYLOAD.slice(0, -1)},"retry":${retry}}`) as [string, string];
    expect(formerOf(after, [ignoring], first)).toEqual(formerOf(after, [ignoring], second));
    expect(formerOf(after, [before], first)).not.toEqual(formerOf(after, [before], second));
  });

  test('is empty where the key alone was trusted', () => {
    const trusting: FeedContract = { ...before, digest: 'off' };
    expect(formerOf(after, [trusting], PAYLOAD)).toEqual([proofs({ ...claimOf(before, PAYLOAD), claimDigest: '' })]);
  });

  test.each<[string, Partial<FeedContract>]>([
    ['the incident', { incident: [{ topicLevel: 1 }] }],
    ['an effect', { effects: [{ do: 'set', when: [], field: 'f', to: [{ userProperty: 'unit' }] }] }],
    ['a field', { effects: [{ do: 'set', when: [], field: '{topic[2]}', to: [{ pointer: '/seq' }] }] }],
    ['the topic of forwarding', { forward: { topic: 'cop/{topic}' } }],
  ])('holds what %s read outside the message, by each contract of that version', (_, outside) => {
    const reading: FeedContract = { ...before, ...outside };
    const properties = { userProperties: { unit: 'E7' } };
    const plain = claimOf(before, PAYLOAD, properties);
    const outer = claimOf(reading, PAYLOAD, properties);
    expect(outer.claimDigest).not.toBe(plain.claimDigest);
    expect(formerOf(after, [before, reading], PAYLOAD, properties)).toEqual([proofs(plain, outer)]);
  });

  test('does not depend on effects that read the message alone, or what identity reads', () => {
    const effects: FeedContract['effects'] = [
      { do: 'set', when: [], field: '{agency}/{/src}', to: [{ pointer: '/seq' }, { const: 'none' }] },
    ];
    const onTopic: FeedContract = { ...before, identity: { ...before.identity, source: [{ topicLevel: 2 }] } };
    const reading: FeedContract = { ...onTopic, incident: [{ topicLevel: 2 }] };
    const claim = claimOf(reading, PAYLOAD);
    expect(claim).toEqual(claimOf(onTopic, PAYLOAD));
    expect(formerOf(after, [onTopic, reading], PAYLOAD)).toEqual([proofs(claim)]);
    expect(formerOf(after, [before, { ...before, effects }], PAYLOAD)).toEqual([proofs(claimOf(before, PAYLOAD))]);
  });
});

describe('items', () => {
  const keyed = (messages: Message[]) =>
    messages.flatMap((m) =>
      m.kind === 'keyed'
        ? [{ keyVersion: m.keyVersion, key: m.key, claimDigest: m.claimDigest, identity: m.identity }]
        : [],
    );

  test('as before: the item at the same place', () => {
    const current = batch(version(2, eventIdContract('/seq')));
    const [first, second] = keyed(decodeAll(batch(before), batchOf(...ITEMS))).map((claim) => proofs(claim));
    expect(formerOf(current, [batch(before)], batchOf(...ITEMS))).toEqual([first, second]);
    // An item that is broken today, or was nothing before, does not move the others.
    expect(formerOf(current, [batch(before)], batchOf('7', ITEMS[0]))).toEqual([null, first]);
    const noSequence = '{"agency":"NFD","src":"e1","seq":"x"}';
    expect(formerOf(current, [batch(before)], batchOf(noSequence, ITEMS[0]))).toEqual([[], first]);
  });

  test('new: each is part of what was one message', () => {
    const claim = claimOf(before, batchOf(...ITEMS));
    const whole = proofs(claim);
    const current = batch(version(2, feedContract()));
    expect(formerOf(current, [before], batchOf(...ITEMS))).toEqual([whole, whole]);
    // What the digest left out was never compared: it may be the same.
    for (const pointer of ['/events', '/events/0', '/events/0/retry']) {
      const ignoring: FeedContract = { ...before, digest: { ignore: [pointer] } };
      const likely = [{ claims: [claimOf(ignoring, batchOf(...ITEMS))], proves: false }];
      expect(formerOf(current, [ignoring], batchOf(...ITEMS))).toEqual([likely, likely]);
    }
    const beside: FeedContract = { ...before, digest: { ignore: ['/event', '/events2'] } };
    expect(formerOf(current, [beside], batchOf(...ITEMS))).toEqual([whole, whole]);
    const trusted = proofs({ ...claim, claimDigest: '' });
    expect(formerOf(current, [{ ...before, digest: 'off' }], batchOf(...ITEMS))).toEqual([trusted, trusted]);
  });

  test('gone: the message holds all of what were several, and something around them', () => {
    const current = version(2, feedContract());
    const claims = keyed(decodeAll(batch(before), batchOf(...ITEMS)));
    expect(claims).toHaveLength(2);
    expect(formerOf(current, [batch(before)], batchOf(...ITEMS))).toEqual([[{ claims, proves: false }]]);
    // One of them was never decided under a key, and there were none.
    for (const payload of [batchOf(...ITEMS, '7'), batchOf()]) {
      expect(formerOf(current, [batch(before)], payload)).toEqual([[]]);
    }
  });

  test('elsewhere: none', () => {
    const current: FeedContract = { ...version(2, feedContract()), items: '/others' };
    const payload = `{"events":[${ITEMS.join()}],"others":[${ITEMS.join()}]}`;
    expect(formerOf(current, [batch(before)], payload)).toEqual([[], []]);
  });
});

test('a rule without sequence is read as it was', () => {
  const identity: IdentityRule = { ...eventIdContract('/incident', '/seq').identity, version: 1 };
  const former = { ...feedContract(), identity };
  expect(formerOf(after, [former], PAYLOAD)).toEqual([proofs(claimOf(former, PAYLOAD))]);
  expect(claimOf(former, PAYLOAD).identity).toMatchObject({ sequence: null, eventId: ['I-77', '41'] });
});
