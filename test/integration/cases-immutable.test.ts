import type { BatchToWrite, EntryToWrite, LedgerStore } from '../../src/ledger/port';
import { LedgerError } from '../../src/ledger/port';
import { leafHash } from '../../src/ledger/leaf';
import { createLedgerStore } from '../../src/ledger/store';
import { land } from '../support/case-run';
import { query, readEntries } from '../support/ledger';
import { b, startPipeline, type TestPipeline } from '../support/pipeline';

let pipeline: TestPipeline;
let store: LedgerStore;

beforeAll(async () => {
  pipeline = await startPipeline();
  await land(pipeline, b(1), b(1), b(1, { status: 'X' }));
  store = createLedgerStore(pipeline.database.prisma, { transactionTimeoutMs: 10_000 });
});

describe('C091: what was decided stays as it was decided, also for the owner of the tables', () => {
  const columns = { ledger_entry: 'reason', policy_version: 'reason', admin_event: 'actor', feed_contract: 'actor' };

  it.each(Object.entries(columns))('%s refuses UPDATE, DELETE and TRUNCATE', async (table, column) => {
    const before = await query(pipeline.url, `SELECT * FROM ${table}`);
    expect(before.length).toBeGreaterThan(0);
    for (const statement of [
      `UPDATE ${table} SET ${column} = 'x'`,
      `UPDATE ${table} SET ${column} = ${column} WHERE false`,
      `DELETE FROM ${table}`,
      `TRUNCATE ${table}`,
      `TRUNCATE ${table} CASCADE`,
      `INSERT INTO ${table} SELECT * FROM ${table} ON CONFLICT ON CONSTRAINT ${table}_pkey DO UPDATE SET ${column} = 'x'`,
    ]) {
      await expect(query(pipeline.url, statement)).rejects.toMatchObject({ code: '42501' });
    }
    expect(await query(pipeline.url, `SELECT * FROM ${table}`)).toEqual(before);
  });
});

/** Writes what an entry of the ledger was written as, changed a little, at the end. */
async function write(change: (entry: EntryToWrite) => EntryToWrite, batch: Partial<BatchToWrite> = {}): Promise<void> {
  const [stored] = await readEntries(pipeline.url, pipeline.feed.name);
  if (stored === undefined) throw new Error('no entry');
  await store.transact(async (transaction) => {
    const locked = await transaction.read({
      feedId: pipeline.feed.feedId,
      hintTerm: null,
      incidents: [],
      fields: [],
      remembered: [],
      keys: [],
      formerKeys: [],
    });
    const entry = { ...stored, position: locked.size, batchId: crypto.randomUUID() };
    await transaction.write({
      id: entry.batchId,
      feedId: pipeline.feed.feedId,
      term: locked.term,
      termOpened: null,
      firstPosition: locked.size,
      recordedAtMicros: locked.recordedAtMicros,
      received: 1,
      deliveries: 1,
      policyVersion: locked.policy.version,
      contractDigest: locked.contractDigest,
      entries: [change({ entry, leafHash: leafHash(entry), appliedKey: entry.key })],
      sources: [],
      fields: [],
      members: [],
      outbox: [],
      ...batch,
    });
  });
}

const OTHER = 'ab'.repeat(32);
const withColumns =
  (columns: Partial<EntryToWrite['entry']>, appliedKey: string | null) =>
  (one: EntryToWrite): EntryToWrite => ({
    ...one,
    entry: { ...one.entry, ...columns },
    appliedKey,
  });

describe('the database refuses what the decision must never ask for', () => {
  it.each([
    ['a second claim on a key and digest', withColumns({}, null), {}, 'DATA'],
    [
      'a second applied entry of a key',
      (one: EntryToWrite) => ({ ...one, entry: { ...one.entry, claimDigest: OTHER } }),
      {},
      'DATA',
    ],
    [
      'a batch at a place where the head is not',
      withColumns({ key: OTHER, position: 0 }, null),
      { firstPosition: 0 },
      'DATA',
    ],
    ['a batch beyond the head', withColumns({ key: OTHER, position: 99 }, null), { firstPosition: 99 }, 'UNAVAILABLE'],
  ] as const)('%s', async (_, change, batch, code) => {
    const before = await readEntries(pipeline.url, pipeline.feed.name);
    const refusal: unknown = await write(change, batch).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(LedgerError);
    expect(refusal).toMatchObject({ code });
    expect(await readEntries(pipeline.url, pipeline.feed.name)).toEqual(before);
    expect(await query(pipeline.url, 'SELECT size::int FROM feed_head')).toEqual([{ size: before.length }]);
  });

  it('and takes the same batch where key and digest are others', async () => {
    const before = await readEntries(pipeline.url, pipeline.feed.name);
    await write(withColumns({ key: OTHER }, OTHER));
    expect(await readEntries(pipeline.url, pipeline.feed.name)).toHaveLength(before.length + 1);
  });
});
