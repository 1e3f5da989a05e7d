import { createHash } from 'node:crypto';
import { canonicalJson } from '../../src/contract/canonical';
import { parseJson } from '../../src/contract/json';
import type { LedgerEntry } from '../../src/ledger/entry';
import { timeText } from '../../src/ledger/entry';
import { leafHash, leafText } from '../../src/ledger/leaf';
import { caseById } from '../support/cases';
import { query, readEntries, type StoredEntry } from '../support/ledger';
import { b, delivery, startPipeline } from '../support/pipeline';

const ENTRY: LedgerEntry = {
  feed: 'cad-north',
  position: 9007199254740991,
  term: 1,
  encodingVersion: 1,
  batchId: '0190c3a5-0000-7000-8000-000000000000',
  itemIndex: null,
  outcome: 'APPLIED',
  tier: 'NONE',
  reason: 'applied',
  held: false,
  late: true,
  keyVersion: 1,
  key: 'ab'.repeat(32),
  claimDigest: '',
  payloadDigest: 'cd'.repeat(32),
  bytesDigest: 'ef'.repeat(32),
  agency: 'Å"\\\u2028/\u0001',
  sourceId: '€😀',
  epoch: null,
  sequence: '9'.repeat(38),
  eventId: '["a","b"]',
  incidentId: 'I-77',
  original: 0,
  resolves: null,
  actor: null,
  note: null,
  policyVersion: 1,
  contractDigest: '01'.repeat(32),
  broker: 'default',
  topic: 'cad/north/e1/incident',
  qos: 1,
  dup: false,
  retained: false,
  recordedAt: '2023-11-14T22:13:20.123456Z',
  occurredAt: null,
};

function parsed(text: string) {
  const parse = parseJson(Buffer.from(text));
  if (!parse.ok) throw new Error(parse.fault.detail);
  return parse.document.value;
}

function withoutHash({ leafHash: _, ...columns }: StoredEntry): LedgerEntry {
  return columns;
}

describe('the leaf of an entry', () => {
  it('is RFC 8785 canonical JSON of every column, numbers as strings', () => {
    const text = leafText(ENTRY);
    expect(text).toBe(canonicalJson(parsed(text)));
    const strings = Object.entries(ENTRY).map(([name, value]) => [
      name,
      typeof value === 'number' ? String(value) : value,
    ]);
    expect(JSON.parse(text)).toEqual(Object.fromEntries(strings));
  });

  it('is hashed with the prefix of RFC 6962 section 2.1, over its UTF-8', () => {
    const bytes = Buffer.concat([Buffer.from([0]), Buffer.from(leafText(ENTRY), 'utf8')]);
    expect(leafHash(ENTRY)).toBe(createHash('sha256').update(bytes).digest('hex'));
  });

  it('has another hash whichever column changes', () => {
    const other = (value: unknown): unknown =>
      typeof value === 'number'
        ? value + 1
        : typeof value === 'boolean'
          ? !value
          : value === null
            ? ''
            : `${String(value)} `;
    const hashes = Object.entries(ENTRY).map(([name, value]) => leafHash({ ...ENTRY, [name]: other(value) }));
    expect(new Set([leafHash(ENTRY), ...hashes]).size).toBe(Object.keys(ENTRY).length + 1);
  });

  it('C087: verifies when read back over a fresh connection, with microseconds, and not with one byte flipped', async () => {
    expect(caseById('C087').expected).toContain('flip one byte -> false');
    const { url, feed, deliver } = await startPipeline();
    await deliver(
      b(1),
      b(1),
      b(1, { status: 'CLEARED' }),
      '{',
      '',
      delivery(b(2), { topic: 'cad/\u0000/\ud800/incident' }),
    );
    const stored = await readEntries(url, feed.name);
    expect(stored).toHaveLength(6);
    for (const entry of stored) expect(leafHash(withoutHash(entry))).toBe(entry.leafHash);

    // The owner of the database bypasses the trigger; the hash notices.
    const flip = (sql: string): Promise<unknown> =>
      query(url, `BEGIN; SET LOCAL session_replication_role = replica; ${sql}; COMMIT`);
    await flip("UPDATE ledger_entry SET recorded_at = recorded_at + interval '1 microsecond' WHERE position = 0");
    await flip(
      'UPDATE ledger_entry SET payload_digest = set_byte(payload_digest, 31, get_byte(payload_digest, 31) # 1) WHERE position = 1',
    );
    await flip("UPDATE ledger_entry SET reason = reason || ' ' WHERE position = 2");
    const changed = await readEntries(url, feed.name);
    expect(changed.map((entry) => leafHash(withoutHash(entry)) === entry.leafHash)).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
    ]);
  });
});

describe('timeText', () => {
  it.each([
    [0, '1970-01-01T00:00:00.000000Z'],
    [1_700_000_000_000_001, '2023-11-14T22:13:20.000001Z'],
    [1_700_000_000_999_999, '2023-11-14T22:13:20.999999Z'],
    [-1, '1969-12-31T23:59:59.999999Z'],
  ])('%i microseconds are %s', (micros, text) => {
    expect(timeText(micros)).toBe(text);
  });
});
