/**
 * Producers that are stuck or restart for ever: what one message costs must not grow with how often that happened. Rows
 * are counted by Postgres; nothing is timed.
 */
import { Client } from 'pg';
import { onCleanup } from '../support/cleanup';
import { expectSoundLedger, query } from '../support/ledger';
import { b, caseContract, delivery, startPipeline, type TestPipeline } from '../support/pipeline';

const EPOCHS =
  '{ agency: { pointer: /agency }, source: { pointer: /src }, epoch: { pointer: /boot }, sequence: { pointer: /seq } }';

/** Rows of a table that all connections of the database fetched by an index or a scan so far. */
async function rowsFetched(url: string, table: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onCleanup(() => client.end());
  const { rows } = await client.query<{ read: string }>(
    'SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::text AS read FROM pg_stat_user_tables WHERE relname = $1',
    [table],
  );
  return Number(rows[0]?.read ?? NaN);
}

/** Ends the pipeline's sessions, so that they report what they read, and answers the growth that one message caused. */
async function costOf(path: TestPipeline, payload: string, table: string): Promise<number> {
  await path.stop();
  await path.database.close();
  const before = await rowsFetched(path.url, table);
  const next = await startPipeline({
    url: path.url,
    contract:
      path.feed.active.contract.identity.mode === 'sequence' && path.feed.active.contract.identity.epoch !== null
        ? caseContract({ identity: EPOCHS })
        : caseContract(),
  });
  next.offer(delivery(payload));
  await next.stop();
  await next.database.close();
  return (await rowsFetched(path.url, table)) - before;
}

describe('a stuck sequence', () => {
  it('costs the same after a thousand conflicts, and names the first claim', async () => {
    const path = await startPipeline();
    const conflicts = Array.from({ length: 1000 }, (_, index) => delivery(b(1, { status: `S${index}` })));
    path.offer(...conflicts);
    expect(await costOf(path, b(1, { status: 'new' }), 'ledger_entry')).toBeLessThan(50);
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries).toHaveLength(1001);
    expect(entries.slice(1).map(({ outcome, original }) => `${outcome} ${original}`)).toEqual(
      Array.from({ length: 1000 }, () => 'KEY_CONFLICT 0'),
    );
  });

  it('in one batch of many payloads under the same key is decided like any other', async () => {
    const path = await startPipeline({
      contract: caseContract({ rest: 'items: /events\neffects: []' }),
    });
    const items = Array.from({ length: 20_000 }, (_, index) => `{"agency":"A","src":"s","seq":1,"v":${index}}`);
    path.offer(delivery(`{"events":[${items.join(',')}]}`));
    await path.stop();
    const rows = await query<{ outcome: string; count: number }>(
      path.url,
      'SELECT outcome::text, count(*)::int AS count FROM ledger_entry GROUP BY 1 ORDER BY 1',
    );
    expect(rows).toEqual(
      [
        { outcome: 'APPLIED', count: 1 },
        { outcome: 'KEY_CONFLICT', count: 19_999 },
      ].sort((x, y) => (x.outcome < y.outcome ? -1 : 1)),
    );
    expect(path.acknowledged).toHaveLength(1);
    const [{ batches } = { batches: 0 }] = await query<{ batches: number }>(
      path.url,
      'SELECT count(*)::int AS batches FROM batch',
    );
    expect(batches).toBeGreaterThan(1);
  });
});

describe('a source with a new epoch for every message', () => {
  it('costs the same after a thousand epochs', async () => {
    const path = await startPipeline({ contract: caseContract({ identity: EPOCHS }) });
    path.offer(...Array.from({ length: 1000 }, (_, index) => delivery(b(1, { boot: `b${index}` }))));
    expect(await costOf(path, b(1, { boot: 'next' }), 'source_head')).toBeLessThan(50);
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries.every(({ outcome }) => outcome === 'APPLIED')).toBe(true);
  });
});

describe('an incident with large values', () => {
  it('is read without them: what is decided needs numbers alone', async () => {
    const path = await startPipeline();
    await path.deliver(b(1, { status: 'x'.repeat(60_000) }));
    const client = new Client({ connectionString: path.url });
    await client.connect();
    onCleanup(() => client.end());
    const request = {
      incidents: [],
      fields: [{ i: 'I-77', f: 'status' }],
      sources: [],
      remembered: [],
    };
    const { rows } = await client.query<{ length: number }>(
      "SELECT length(read_batch($1::integer, $2::json, '[]'::json)::text) AS length",
      [path.feed.feedId, JSON.stringify(request)],
    );
    expect(rows[0]?.length).toBeLessThan(1000);
    expect(await path.deliver(b(2, { status: 'y' }))).toMatchObject([{ outcome: 'APPLIED' }]);
  });
});

describe('a batch that takes too long', () => {
  it('is tried in halves, and lands', async () => {
    const path = await startPipeline({ transactionTimeoutMs: 2_000 });
    // Slow by the number of rows, as an unforeseen case would be: eight at once exceed the time, two do not.
    await query(
      path.url,
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.4); RETURN NEW; END $$`,
    );
    await query(path.url, 'CREATE TRIGGER slow BEFORE INSERT ON ledger_entry FOR EACH ROW EXECUTE FUNCTION slow()');
    path.offer(...Array.from({ length: 8 }, (_, index) => delivery(b(index + 1))));
    await path.stop();
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 8 }, () => 'APPLIED'));
  });
});
