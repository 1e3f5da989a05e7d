import fc from 'fast-check';
import { compileContract } from '../../src/contract/decode';
import type { FeedContract, Message } from '../../src/contract/types';
import { delivery, feedContract } from '../support/decode-feed';

/** Reads everything that can be read, from everywhere. */
const single: FeedContract = feedContract({
  topics: ['#'],
  identity: {
    version: 1,
    mode: 'sequence',
    agency: [{ pointer: '/a' }, { topicLevel: 1 }],
    source: [{ userProperty: 's' }, { pointer: '/a' }],
    epoch: { value: [{ pointer: '/e' }, { const: '1' }], order: 'opaque' },
    sequence: [{ pointer: '/n' }, { userProperty: 'n' }],
  },
  incident: [{ envelope: '/i' }, { pointer: '/i' }, { topicLevel: 0 }],
  occurredAt: [{ pointer: '/t' }],
  digest: { ignore: ['/resend'] },
  effects: [
    { do: 'set', when: [{ pointer: '/a', equals: 1 }], field: 'u/{/n}/{topic[1]}', to: [{ userProperty: 'v' }] },
    { do: 'increment', when: [{ pointer: '/i', equals: 'x' }], field: 'n', by: [{ pointer: '/n' }] },
    { do: 'append', when: [], field: 'seen/{agency}', value: [{ pointer: '/a' }, { const: '-' }] },
  ],
  forward: { topic: 'cop/{incident}/{/e}' },
});
const batch: FeedContract = { ...single, items: '/items' };

const text = fc.constantFrom('x', '1', '2', '', 'a/b', 'a\0', '\ufffd', 'Å', '#', '\\|');
const scalar = fc.oneof(text, fc.constantFrom(0, 1, -1, 1.5, null, true), fc.constant([]), fc.constant({}));
const message = fc.record({ a: scalar, e: scalar, n: scalar, i: scalar, resend: scalar }, { requiredKeys: [] });
const topic = fc.constantFrom('x', 'x/1', '1/x', '/', 'x//y', 'x/1/2', '\ufffd/1');
const userProperties = fc.record(
  { s: text, n: text, v: fc.oneof(text, fc.array(text, { maxLength: 2 })) },
  { requiredKeys: [], noNullPrototype: true },
);
const around = fc.record({ topic, userProperties });

function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  return Object.values(value).flatMap(texts);
}

/** What the ledger stores as text: Postgres takes neither NUL nor lone surrogates. */
function expectStorable(messages: readonly Message[]): void {
  expect(messages.length).toBeGreaterThan(0);
  for (const each of messages) {
    if (each.kind === 'malformed') expect(each.detail.length).toBeLessThanOrEqual(200);
  }
  expect(texts(messages).filter((part) => /\0|\p{Cs}/u.test(part))).toEqual([]);
}

test('whatever arrives becomes at least one message that can be stored', () => {
  const decoders = [compileContract(single), compileContract(batch)];
  const anything = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.json({ stringUnit: 'binary' }).map((json) => Buffer.from(json)),
    message.map((value) => Buffer.from(JSON.stringify(value))),
    fc.array(message).map((items) => Buffer.from(JSON.stringify({ items }))),
    fc
      .constantFrom('{"a":"\\ud800"}', '{"\\u0000":1,"\\u0000":2}', '{"items":[{"a":1,"a":1}]}')
      .map((raw) => Buffer.from(raw)),
  );
  fc.assert(
    fc.property(anything, around, (payload, overrides) => {
      for (const decoder of decoders) expectStorable(decoder.decode(delivery(payload, overrides)));
    }),
    { numRuns: 2000 },
  );
});

test('equal key and digest mean equal identity, incident and effects', () => {
  const decoder = compileContract(batch);
  // Mostly messages that have an identity, and few different ones, so that many pairs agree in key and digest.
  const keyed = fc.record(
    { a: fc.constantFrom('x', 1), n: fc.constantFrom(1, '1', '01'), i: fc.constantFrom('x', 7, null), e: text },
    { requiredKeys: ['a', 'n'] },
  );
  const near = fc.tuple(keyed, around, fc.constantFrom('x', '1', 7, null)).chain((first) =>
    fc.tuple(
      fc.constant(first),
      fc.tuple(
        fc.oneof(
          fc.constant(first[0]),
          scalar.map((resend) => ({ ...first[0], resend })),
          message,
        ),
        fc.oneof(fc.constant(first[1]), around),
        fc.oneof(fc.constant(first[2]), fc.constantFrom('x', '1', 7, null)),
      ),
    ),
  );
  let equal = 0;
  fc.assert(
    fc.property(near, (pair) => {
      const [left, right] = pair.map(([item, overrides, i]) => {
        const payload = JSON.stringify({ i, items: [item] });
        const [decoded] = decoder.decode(delivery(payload, overrides));
        return decoded;
      });
      if (left?.kind !== 'keyed' || right?.kind !== 'keyed') return;
      if (left.key !== right.key || left.claimDigest !== right.claimDigest) return;
      equal += 1;
      const meaning = ({ identity, incidentId, plan }: typeof left): unknown => ({
        identity,
        incidentId,
        plan: plan.ok ? { effects: plan.effects, topic: plan.forward?.topic } : plan,
      });
      expect(meaning(right)).toEqual(meaning(left));
    }),
    { numRuns: 5000 },
  );
  // Without pairs that agree nothing would have been shown.
  expect(equal).toBeGreaterThan(50);
});
