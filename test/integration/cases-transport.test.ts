import { query, readIncident } from '../support/ledger';
import { caseTitle, countDecisions, decisionsOf, land, range } from '../support/case-run';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { sleep } from '../support/wait';

const TOLERANT = '{ windowSeconds: 600, maxEntries: 1000, ordering: tolerant }';
/** A window of two seconds, and a broker and producers that replay nothing later. */
const BRIEF = {
  dedup: '{ windowSeconds: 2, maxEntries: 1000 }',
  rest: 'delivery: { sessionExpirySeconds: 1, maxReplayDelaySeconds: 0 }\neffects:\n  - { do: increment, field: n, by: { const: "1" } }',
};
const COUNTING = 'effects:\n  - { do: increment, field: n, by: { const: "1" } }';

describe('redelivery', () => {
  it(caseTitle('C002'), async () => {
    const pipeline = await startPipeline();
    const entries = await land(pipeline, delivery(b(2001), { dup: true }));
    expect(entries).toMatchObject([{ outcome: 'APPLIED', dup: true }]);
  });

  it.each([
    ['C001', false, false],
    ['C004', false, false],
    ['C001', true, false],
    ['C004', false, true],
  ])('%s: the flag DUP is written down and decides nothing (%s, then %s)', async (_, first, second) => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: COUNTING }) });
    const entries = await land(pipeline, delivery(b(1041), { dup: first }), delivery(b(1041), { dup: second, qos: 0 }));
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW']);
    expect(entries.map(({ dup }) => dup)).toEqual([first, second]);
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 1 });
  });

  it(caseTitle('C007'), async () => {
    const pipeline = await startPipeline();
    const onScene = b(500, { incident: 'I-9', status: 'ONSCENE' });
    const cleared = b(500, { incident: 'I-9', status: 'CLEARED' });
    const [applied, conflict, replay, other] = await land(pipeline, onScene, cleared, cleared, onScene);
    expect(applied?.outcome).toBe('APPLIED');
    expect(conflict).toMatchObject({ outcome: 'KEY_CONFLICT', held: true, original: 0, key: applied?.key });
    expect(conflict?.payloadDigest).not.toBe(applied?.payloadDigest);
    expect(replay).toMatchObject({ outcome: 'DUPLICATE_SUPPRESSED', original: 1, held: false });
    expect(other).toMatchObject({ outcome: 'DUPLICATE_SUPPRESSED', original: 0 });
    expect(await readIncident(pipeline.url, 'I-9')).toEqual({ status: 'ONSCENE' });
  });

  it('C007: the same message in other bytes (spaces, order of members, escapes) is a replay, not a conflict', async () => {
    const pipeline = await startPipeline();
    const other = '{ "status":"\\u0045NROUTE", "seq":1.0, "src":"e1", "incident":"I-77", "agency":"NFD" }';
    const entries = await land(pipeline, b(1), other);
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW']);
    expect(entries[0]?.payloadDigest).toBe(entries[1]?.payloadDigest);
    expect(entries[0]?.bytesDigest).not.toBe(entries[1]?.bytesDigest);
  });
});

describe('ordering', () => {
  it(`${caseTitle('C013')} (tolerant)`, async () => {
    const pipeline = await startPipeline({ contract: caseContract({ dedup: TOLERANT }) });
    await land(pipeline, b(1), b(3), b(5), b(7));
    const late = await land(pipeline, ...[2, 4, 6].map((n) => b(n, { status: `S${n}` })));
    expect(decisionsOf(late)).toEqual(['APPLIED late', 'APPLIED late', 'APPLIED late']);
    // 7 stands: what is late undoes nothing newer.
    expect(late.map(({ reason }) => reason)).toEqual(['superseded', 'superseded', 'superseded']);
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ status: 'ENROUTE' });
    expect(await query(pipeline.url, 'SELECT mark::text FROM source_head')).toEqual([{ mark: '7' }]);
    expect(decisionsOf(await land(pipeline, b(8)))).toEqual(['APPLIED']);
  });

  it(`${caseTitle('C013')} (strict)`, async () => {
    const pipeline = await startPipeline();
    await land(pipeline, b(1), b(3), b(5), b(7));
    const late = await land(pipeline, b(2), b(4), b(6), b(6));
    expect(decisionsOf(late)).toEqual([
      ...Array<string>(3).fill('STALE_OUT_OF_ORDER HIGH_WATER_MARK'),
      'DUPLICATE_SUPPRESSED WINDOW',
    ]);
    expect(late.map(({ held }) => held)).toEqual([true, true, true, false]);
    expect(await query(pipeline.url, 'SELECT mark::text FROM source_head')).toEqual([{ mark: '7' }]);
  });

  it('C013: marks are of a source: another source, or another agency, begins anew', async () => {
    const pipeline = await startPipeline();
    const entries = await land(pipeline, b(7), b(1, { src: 'e2' }), b(1, { agency: 'N' }), b(1));
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'APPLIED', 'APPLIED', 'STALE_OUT_OF_ORDER HIGH_WATER_MARK']);
  });

  it(caseTitle('C016'), async () => {
    const pipeline = await startPipeline({ contract: caseContract(BRIEF) });
    const messages = range(1, 50).map((n) => b(n));
    await land(pipeline, ...messages);
    await sleep(2100);
    const replays = await land(pipeline, ...messages);
    expect(countDecisions(replays)).toEqual({ 'DUPLICATE_SUPPRESSED LEDGER': 50 });
    expect(replays.map(({ original }) => original)).toEqual(range(0, 49));
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 50 });
  });
});

describe('retained', () => {
  it(caseTitle('C017'), async () => {
    const pipeline = await startPipeline({ contract: caseContract(BRIEF) });
    const retained = (): ReturnType<typeof delivery> => delivery(b(5), { retained: true });
    const soon = await land(pipeline, retained(), retained(), retained());
    await sleep(2100);
    const later = await land(pipeline, retained(), retained(), retained());
    expect(decisionsOf([...soon, ...later])).toEqual([
      'APPLIED',
      ...Array<string>(2).fill('DUPLICATE_SUPPRESSED WINDOW'),
      ...Array<string>(3).fill('DUPLICATE_SUPPRESSED LEDGER'),
    ]);
    expect(new Set([...soon, ...later].map((entry) => entry.retained))).toEqual(new Set([true]));
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 1 });
  });

  it('C017: a retained message is cleared, which is ignored, and set anew', async () => {
    const pipeline = await startPipeline();
    const entries = await land(pipeline, delivery(b(5), { retained: true }), delivery(''), delivery(''), b(6));
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'IGNORED', 'IGNORED', 'APPLIED']);
    expect(entries[1]).toMatchObject({ held: false, key: null, reason: 'empty_payload' });
  });
});

describe('bridges', () => {
  it(`${caseTitle('C019')} (2000 rounds)`, async () => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: COUNTING }) });
    const echoes = Array.from({ length: 2000 }, () => delivery(b(9)));
    expect(countDecisions(await land(pipeline, ...echoes))).toEqual({
      APPLIED: 1,
      'DUPLICATE_SUPPRESSED WINDOW': 1000,
      'DUPLICATE_SUPPRESSED LEDGER': 999,
    });
    // What a broker delivers outside the filters is never applied, with the identity of another level or at all.
    const prefixed = await land(
      pipeline,
      delivery(b(10), { topic: 'aws/cad/north/e1/incident' }),
      delivery(b(10), { topic: 'aws/aws/cad/north/e1/incident' }),
    );
    expect(prefixed.map(({ outcome, reason }) => [outcome, reason])).toEqual(
      Array(2).fill(['MALFORMED_REJECTED', 'topic_not_in_contract']),
    );
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ n: 1 });
    expect(await query(pipeline.url, 'SELECT 1 FROM payload')).toHaveLength(2);
  });
});

describe('sizes and encodings', () => {
  const FEATURES = {
    identity:
      '{ mode: eventId, agency: { const: NIFC }, source: { const: irwin }, eventId: [{ pointer: /properties/IrwinID }, { pointer: /properties/ModifiedOnDateTime_dt }] }',
    rest: 'items: /features\neffects: off',
  };
  const features = (ids: readonly number[]): string =>
    JSON.stringify({ features: ids.map((n) => ({ properties: { IrwinID: `a${n}`, ModifiedOnDateTime_dt: 1 } })) });

  it(caseTitle('C025'), async () => {
    const pipeline = await startPipeline({ contract: caseContract(FEATURES) });
    const first = await land(pipeline, features(range(1, 2500)));
    expect(countDecisions(first)).toEqual({ APPLIED: 2500 });
    expect(first.map(({ itemIndex }) => itemIndex)).toEqual(range(0, 2499));
    // Sent again with one that changed its place and one that is new: each is decided on its own.
    const second = await land(pipeline, features([2500, ...range(2, 2499), 9999]));
    expect(countDecisions(second)).toMatchObject({ APPLIED: 1 });
    expect(second.filter(({ outcome }) => outcome === 'DUPLICATE_SUPPRESSED')).toHaveLength(2499);
    expect(await query(pipeline.url, 'SELECT entries, received, deliveries FROM batch')).toEqual(
      Array(2).fill({ entries: 2500, received: 2500, deliveries: 1 }),
    );

    const huge = Buffer.alloc(20 * 1024 * 1024, 0x20);
    const [held] = await land(pipeline, huge);
    expect(held).toMatchObject({ outcome: 'MALFORMED_REJECTED', reason: 'payload_too_large', held: true });
    const stored = await query(
      pipeline.url,
      "SELECT bytes IS NULL AS gone, size_bytes AS size FROM payload WHERE bytes_digest = decode($1, 'hex')",
      [held?.bytesDigest],
    );
    expect(stored).toEqual([{ gone: true, size: huge.byteLength }]);
  });

  it('C025: a bad item is held alone, and no items at all are one entry', async () => {
    const pipeline = await startPipeline({ contract: caseContract(FEATURES) });
    const good = '{"properties":{"IrwinID":"a1","ModifiedOnDateTime_dt":1}}';
    const entries = await land(
      pipeline,
      `{"features":[${good},{"properties":{}},7,${good}]}`,
      '{"features":[]}',
      '{"features":7}',
      '{}',
    );
    expect(decisionsOf(entries)).toEqual([
      'APPLIED',
      'MALFORMED_REJECTED',
      'MALFORMED_REJECTED',
      'DUPLICATE_SUPPRESSED WINDOW',
      'IGNORED',
      'MALFORMED_REJECTED',
      'MALFORMED_REJECTED',
    ]);
    expect(entries.map(({ itemIndex }) => itemIndex)).toEqual([0, 1, 2, 3, null, null, null]);
  });

  it(caseTitle('C026'), async () => {
    const pipeline = await startPipeline();
    const [before = '', after = ''] = b(1).split('NFD');
    const broken = [0xff, 0xfe].map((byte) =>
      Buffer.concat([Buffer.from(`${before}N`), Buffer.from([byte]), Buffer.from(after)]),
    );
    const entries = await land(pipeline, ...broken);
    expect(entries.map(({ outcome, reason, key }) => [outcome, reason, key])).toEqual(
      Array(2).fill(['MALFORMED_REJECTED', 'invalid_utf8', null]),
    );
    const rows = await query<{ bytes: Buffer }>(pipeline.url, 'SELECT bytes FROM payload');
    expect(rows.map(({ bytes }) => bytes.toString('hex')).sort()).toEqual(
      broken.map((bytes) => bytes.toString('hex')).sort(),
    );
  });
});
