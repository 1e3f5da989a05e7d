import { Client } from 'pg';
import type { ReadRequest, WantedKey } from '../../src/ledger/port';
import { requestJson } from '../../src/ledger/wire';
import { onCleanup } from '../support/cleanup';
import type { StoredEntry } from '../support/ledger';
import { b, delivery, startPipeline } from '../support/pipeline';

const ENTRIES = 2000;
const WANTED = 10;

function wantedKey(entry: StoredEntry, hint: number | null): WantedKey {
  const { keyVersion, key, claimDigest, agency, sourceId, sequence } = entry;
  return {
    keyVersion: keyVersion ?? 0,
    key: key ?? '',
    claimDigest: claimDigest ?? '',
    agency: agency ?? '',
    sourceId: sourceId ?? '',
    epoch: '',
    sequence,
    hint,
  };
}

describe('read_batch on a ledger of many entries', () => {
  let client: Client;
  let feedId: number;
  let entries: readonly StoredEntry[];

  beforeAll(async () => {
    const path = await startPipeline({ batchMaxDeliveries: 500 });
    path.offer(...Array.from({ length: ENTRIES }, (_, index) => delivery(b(index + 1))));
    await path.stop();
    entries = await path.entries();
    ({ feedId } = path.feed);
    client = new Client({ connectionString: path.url });
    await client.connect();
    onCleanup(() => client.end());
  });

  /** Rows of the ledger that this connection has touched; what was reported to the server already is not in it. */
  async function counted(): Promise<number> {
    const { rows } = await client.query<{ read: number }>(
      `SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS read
       FROM pg_stat_xact_user_tables WHERE relname = 'ledger_entry'`,
    );
    return rows[0]?.read ?? NaN;
  }

  async function rowsRead(keys: readonly WantedKey[]): Promise<number> {
    const request: ReadRequest = {
      feedId,
      hintTerm: 1,
      incidents: ['I-77'],
      fields: [{ incidentId: 'I-77', field: 'status' }],
      remembered: [ENTRIES, ENTRIES / 2],
      keys,
      formerKeys: [],
    };
    await client.query('BEGIN');
    const before = await counted();
    const documents = requestJson(request);
    const { rows: answers } = await client.query<{ state: { claims: { p: unknown[] }; leaves: unknown[] } }>(
      'SELECT read_batch($1::integer, $2::json, $3::json) AS state',
      [feedId, documents.request, documents.keys],
    );
    const read = (await counted()) - before;
    await client.query('ROLLBACK');
    expect(answers[0]?.state.claims.p).toHaveLength(keys.length);
    expect(answers[0]?.state.leaves).toHaveLength(request.remembered.length);
    return read;
  }

  it.each([
    ['without statistics', null],
    ['with statistics', 'ANALYZE'],
  ])('reads a row a key and a row a remembered size, %s', async (_name, statement) => {
    if (statement !== null) await client.query(statement);
    const some = entries.filter(({ position }) => position % (ENTRIES / WANTED) === 0);
    expect(await rowsRead(some.map((entry) => wantedKey(entry, entry.position)))).toBe(WANTED + 2);
    expect(await rowsRead(some.map((entry) => wantedKey(entry, null)))).toBe(WANTED + 2);
  });
});
