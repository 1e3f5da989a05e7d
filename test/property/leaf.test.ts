import fc from 'fast-check';
import type { LedgerEntry } from '../../src/ledger/entry';
import { leafText } from '../../src/ledger/leaf';

/** RFC 8785 of an object of strings, booleans and null, where it asks for no more than an order of the members. */
function canonical(entry: LedgerEntry): string {
  const members = Object.entries(entry).map(([name, value]): [string, unknown] => {
    return [name, typeof value === 'number' ? String(value) : value];
  });
  return JSON.stringify(Object.fromEntries(members.sort(([left], [right]) => (left < right ? -1 : 1))));
}

const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc
    .array(fc.constantFrom('"', '\\', '/', '\u0000', '\n', '\u001f', '\u007f', '\u2028', 'é', '😀', '","key":"', 'a'))
    .map((all) => all.join('')),
);
const nullable = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(values, { nil: null });
const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
const count = fc.maxSafeNat();
const digits = fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }).map(String);
const time = fc.stringMatching(/^2\d{3}-0[1-9]-1\dT0\d:[0-5]\d:[0-5]\d\.\d{6}Z$/);

const entry: fc.Arbitrary<LedgerEntry> = fc.record({
  feed: hostile,
  position: count,
  term: count,
  encodingVersion: fc.constant(1 as const),
  batchId: fc.uuid(),
  itemIndex: nullable(count),
  outcome: fc.constantFrom('APPLIED', 'DUPLICATE_SUPPRESSED', 'RELEASED'),
  tier: fc.constantFrom('WINDOW', 'NONE'),
  reason: hostile,
  held: fc.boolean(),
  late: fc.boolean(),
  keyVersion: nullable(count),
  key: nullable(hex),
  claimDigest: nullable(fc.oneof(hex, fc.constant(''))),
  payloadDigest: hex,
  bytesDigest: hex,
  agency: nullable(hostile),
  sourceId: nullable(hostile),
  epoch: nullable(hostile),
  sequence: nullable(digits),
  eventId: nullable(fc.array(hostile).map((parts) => JSON.stringify(parts))),
  incidentId: nullable(hostile),
  original: nullable(count),
  resolves: nullable(count),
  actor: nullable(hostile),
  note: nullable(hostile),
  policyVersion: count,
  contractDigest: hex,
  broker: hostile,
  topic: hostile,
  qos: fc.constantFrom(0, 1, 2),
  dup: fc.boolean(),
  retained: fc.boolean(),
  recordedAt: time,
  occurredAt: nullable(time),
});

test('the text of a leaf is what a generic canonicaliser makes of its columns', () => {
  fc.assert(
    fc.property(entry, (columns) => {
      expect(leafText(columns)).toBe(canonical(columns));
    }),
    { numRuns: 2000 },
  );
});
