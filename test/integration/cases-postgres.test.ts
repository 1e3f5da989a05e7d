import { Client } from 'pg';
import { caseTitle, countDecisions, decisionsOf, land, range } from '../support/case-run';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { expectSoundLedger, query, readIncident } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { sleep, until } from '../support/wait';

const COUNTING = 'effects:\n  - { do: increment, field: n, by: { const: "1" } }';
const ITEMS = 'items: /items\neffects:\n  - { do: increment, field: n, by: { const: "1" } }';

describe('Postgres and Prisma', () => {
  it(caseTitle('C071'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: COUNTING }) });
    await land(pipeline, b(130));
    await land(pipeline, b(130));
    // `query` opens a connection of its own.
    const counts = await query(
      pipeline.url,
      'SELECT outcome::text, count(*)::int FROM ledger_entry GROUP BY 1 ORDER BY 1',
    );
    expect(counts).toEqual([
      { outcome: 'APPLIED', count: 1 },
      { outcome: 'DUPLICATE_SUPPRESSED', count: 1 },
    ]);
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 1 });
  });

  it(caseTitle('C074'), async () => {
    const { url } = await createMigratedDatabase();
    const pipeline = await startPipeline({
      url,
      contract: caseContract({ rest: COUNTING }),
      transactionTimeoutMs: 300,
    });
    await query(
      url,
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END $$;
       CREATE TRIGGER slow BEFORE INSERT ON incident_field FOR EACH ROW EXECUTE FUNCTION slow()`,
    );
    pipeline.offer(delivery(b(132)));
    await until(() => pipeline.steps.filter((step) => step === 'read').length >= 2, { what: 'a second try' });
    expect(pipeline.acknowledged).toEqual([]);
    expect(await pipeline.entries()).toEqual([]);
    expect(await query(url, 'SELECT * FROM applied_key')).toEqual([]);
    await query(url, 'DROP TRIGGER slow ON incident_field');
    await until(() => pipeline.acknowledged.length === 1, { what: 'the acknowledgement' });
    expect(decisionsOf(await expectSoundLedger(url, pipeline.feed.name))).toEqual(['APPLIED']);
    expect(await readIncident(url, 'I-77')).toEqual({ n: 1 });
  });

  it(`${caseTitle('C074')} (waiting for the head)`, async () => {
    const pipeline = await startPipeline({ transactionTimeoutMs: 300 });
    const blocker = new Client({ connectionString: pipeline.url });
    await blocker.connect();
    onCleanup(() => blocker.end());
    await blocker.query('BEGIN; SELECT * FROM feed_head FOR UPDATE');
    pipeline.offer(delivery(b(133)));
    await sleep(1000);
    expect(pipeline.acknowledged).toEqual([]);
    await blocker.query('ROLLBACK');
    await until(() => pipeline.acknowledged.length === 1, { what: 'the acknowledgement' });
    expect(decisionsOf(await expectSoundLedger(pipeline.url, pipeline.feed.name))).toEqual(['APPLIED']);
  });

  it(
    caseTitle('C075'),
    async () => {
      const contract = caseContract({ rest: COUNTING });
      // Small batches, so many transactions, on a pool that others queue for.
      const pipeline = await startPipeline({
        contract,
        poolSize: 5,
        batchMaxDeliveries: 5,
        transactionTimeoutMs: 2000,
      });
      pipeline.offer(...range(1, 500).map((n) => delivery(b(n))));
      let answered = 0;
      const ask = async (): Promise<void> => {
        while (pipeline.acknowledged.length < 500) {
          await pipeline.database.prisma.ledgerEntry.count({ where: { outcome: 'APPLIED' } });
          answered += 1;
        }
      };
      await Promise.all(Array.from({ length: 20 }, ask));
      expect(answered).toBeGreaterThanOrEqual(20);
      expect(countDecisions(await expectSoundLedger(pipeline.url, pipeline.feed.name))).toEqual({ APPLIED: 500 });
      expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 500 });
    },
    120_000,
  );

  it(`${caseTitle('C077')} (30 pairs)`, async () => {
    const { url } = await createMigratedDatabase();
    const contract = (feed: string): string => caseContract({ feed, topics: `["${feed}"]`, rest: ITEMS });
    const [one, other] = [
      await startPipeline({ url, contract: contract('one') }),
      await startPipeline({ url, contract: contract('other') }),
    ];
    const items = (n: number, incidents: readonly string[]): string =>
      `{"items":[${incidents.map((incident) => b(n, { src: incident, incident })).join(',')}]}`;
    for (const n of range(1, 30)) {
      one.offer(delivery(items(n, ['A', 'B', 'a', 'Ä']), { topic: 'one' }));
      other.offer(delivery(items(n, ['Ä', 'a', 'B', 'A']), { topic: 'other' }));
    }
    await until(() => one.acknowledged.length === 30 && other.acknowledged.length === 30, { what: 'all pairs' });
    for (const incident of ['A', 'B', 'a', 'Ä']) expect(await readIncident(url, incident)).toEqual({ n: 60 });
    const rows = await query(url, 'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()');
    expect(rows).toEqual([{ deadlocks: 0 }]);
  });

  it(caseTitle('C078'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: ITEMS }) });
    // Enough rows that a parameter a column would pass the bound of the protocol several times over.
    const payload = `{"items":[${range(1, 5000)
      .map((n) => b(n, { incident: `I-${n % 700}` }))
      .join(',')}]}`;
    const entries = await land(pipeline, payload);
    expect(countDecisions(entries)).toEqual({ APPLIED: 5000 });
    expect(new Set(entries.map(({ batchId }) => batchId)).size).toBe(1);
    expect(countDecisions(await land(pipeline, `${payload} `))).toEqual({
      'DUPLICATE_SUPPRESSED LEDGER': 5000,
    });
  });

  it(caseTitle('C079'), async () => {
    const rest =
      'effects:\n  - { do: set, field: note, to: { pointer: /note } }\n  - { do: append, field: notes, value: { pointer: /note } }';
    const pipeline = await startPipeline({ contract: caseContract({ rest }) });
    const nul = '{"agency":"NFD","src":"e1","seq":140,"incident":"I-1","note":"a\\u0000b"}';
    const entries = await land(
      pipeline,
      nul,
      nul,
      '{"agency":"N\\u0000FD","src":"e1","seq":141,"incident":"I-1","note":""}',
      b(142, { incident: 'I\u0000', note: 'x' }),
      delivery(b(143), { topic: 'cad/\u0000/incident' }),
    );
    expect(decisionsOf(entries)).toEqual([
      'APPLIED',
      'DUPLICATE_SUPPRESSED WINDOW',
      'MALFORMED_REJECTED',
      'EFFECT_FAILED',
      'MALFORMED_REJECTED',
    ]);
    expect(entries[2]?.reason).toBe('agency_nul');
    expect(await readIncident(pipeline.url, 'I-1')).toEqual({ note: 'a\u0000b', notes: ['a\u0000b'] });
    const [stored] = await query<{ bytes: Buffer }>(
      pipeline.url,
      "SELECT bytes FROM payload WHERE bytes_digest = decode($1, 'hex')",
      [entries[0]?.bytesDigest],
    );
    expect(stored?.bytes.toString()).toBe(nul);
  });

  it('C079: every other character that JSON can carry, in every text that is stored', async () => {
    const rest = 'effects:\n  - { do: set, field: "{/status}", to: { pointer: /status } }';
    const pipeline = await startPipeline({ contract: caseContract({ rest }) });
    const texts = [
      '\u0001\u001f',
      '\u2028\u2029',
      '\ufffe\uffff',
      '😀',
      '"\\\'$1%s',
      '\u0085\u200b',
      "'; DROP TABLE feed; --",
    ];
    const entries = await land(
      pipeline,
      ...texts.map((text) => JSON.stringify({ agency: text, src: text, seq: 1, incident: text, status: text })),
    );
    // A field's name is shown to people: what no one can see in it is refused, and the message is held.
    expect(entries.every(({ outcome }) => outcome === 'APPLIED' || outcome === 'EFFECT_FAILED')).toBe(true);
    expect(entries.map(({ agency, incidentId }) => [agency, incidentId])).toEqual(texts.map((text) => [text, text]));
    expect(countDecisions(entries).APPLIED).toBeGreaterThan(3);
  });
});
