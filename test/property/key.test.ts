import fc from 'fast-check';
import { derivedKey, idempotencyKey } from '../../src/contract/key';
import type { Identity } from '../../src/contract/types';

const RUNS = { numRuns: 5000 };

/** What the encoding uses itself, what looks alike, and what joins or splits in other encodings. */
const HOSTILE = [
  '|',
  '\\',
  'e',
  'c',
  '|',
  '\\',
  '\u0001',
  '\n',
  '\u001f',
  'Å',
  'A\u030a',
  '\u030a',
  '\u{1f692}',
  '0',
  '1',
  '41',
];
const part = fc.string({ unit: fc.constantFrom(...HOSTILE), minLength: 1, maxLength: 4 });
const sequence = fc.constantFrom('0', '1', '41', '101');

const sequenced: fc.Arbitrary<Identity> = fc.record({
  agency: part,
  sourceId: part,
  epoch: fc.option(part, { nil: null }),
  sequence,
  eventId: fc.constant(null),
});
const event: fc.Arbitrary<Identity> = fc.record({
  agency: part,
  sourceId: part,
  epoch: fc.constant(null),
  sequence: fc.constant(null),
  eventId: fc.array(fc.oneof(part, sequence), { minLength: 1, maxLength: 3 }),
});
const identity = fc.oneof(sequenced, event);

/** A second identity near the first: what a wrong encoding would confuse with it. */
const pair = identity.chain((left) =>
  fc.tuple(fc.constant(left), fc.oneof(fc.constant({ ...left }), identity, resplit(left))),
);

/** The same raw join, cut at other places. */
function resplit({ agency, sourceId, epoch, sequence: count, eventId }: Identity): fc.Arbitrary<Identity> {
  const joined = [agency, sourceId, ...(epoch === null ? [] : [epoch]), ...(eventId ?? [count ?? ''])].join('|');
  const pieces = joined.split('|').map((piece) => (piece === '' ? '|' : piece));
  const at = (index: number): string => pieces[index] ?? '\\';
  return fc.constantFrom<Identity>(
    { agency: at(0), sourceId: at(1), epoch: null, sequence: '1', eventId: null },
    { agency: at(0), sourceId: at(1), epoch: at(2), sequence: '1', eventId: null },
    { agency: pieces.slice(0, 2).join('|'), sourceId: at(2), epoch: null, sequence: '1', eventId: null },
    { agency: at(0), sourceId: pieces.slice(1, 3).join('|'), epoch: null, sequence: '1', eventId: null },
    { agency: '\\e', sourceId: agency, epoch: sourceId, sequence: '1', eventId: null },
    { agency: at(0), sourceId: at(1), epoch: null, sequence: null, eventId: pieces.slice(2).concat('1') },
  );
}

test('keys are equal if and only if the identities are', () => {
  fc.assert(
    fc.property(pair, ([left, right]) => {
      const sameIdentity = JSON.stringify(left) === JSON.stringify(right);
      expect(idempotencyKey(left) === idempotencyKey(right)).toBe(sameIdentity);
    }),
    RUNS,
  );
});

test('the key of a released conflict never equals the key of an identity', () => {
  const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 });
  fc.assert(
    fc.property(hex, hex, (key, digest) => {
      const imitations: Identity[] = [
        { agency: '\\c', sourceId: key, epoch: null, sequence: digest, eventId: null },
        { agency: 'c', sourceId: key, epoch: null, sequence: null, eventId: [digest] },
        { agency: '\\c', sourceId: key, epoch: null, sequence: null, eventId: [digest] },
      ];
      expect(imitations.map(idempotencyKey)).not.toContain(derivedKey(key, digest));
    }),
    { numRuns: 500 },
  );
});
