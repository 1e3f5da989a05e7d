import { refuseRows } from '../support/fault-postgres';
import { expectSoundLedger, readIncident } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';

const FEED = 'cad-north';
/** A field a message: within a batch only the last value of a field is written. */
const EFFECTS = `effects:
  - { do: increment, field: count, by: { const: "1" } }
  - { do: set, field: "status/{/seq}", to: { pointer: /status } }`;
const BAD_STATUS = { table: 'incident_field', when: `NEW.value = '"BAD"'`, sqlState: '22023' } as const;

const ITEMS = caseContract({
  identity: '{ agency: { pointer: /agency }, source: { envelope: /src }, sequence: { pointer: /seq } }',
  rest: `items: /items\n${EFFECTS}`,
});

/** Elements of one delivery, `BAD` in the given places. */
function items(bad: readonly number[], count = 6): string {
  const list = Array.from({ length: count }, (_, index) => ({
    agency: 'NFD',
    seq: index + 1,
    incident: 'I-77',
    status: bad.includes(index) ? 'BAD' : `S${index}`,
  }));
  return JSON.stringify({ src: 'gateway', items: list });
}

/** What these elements write. */
function statuses(...indexes: number[]): Record<string, string> {
  return Object.fromEntries(indexes.map((index) => [`status/${index + 1}`, `S${index}`]));
}

const outcomes = (entries: { outcome: string }[]) => entries.map(({ outcome }) => outcome);

describe('the database refuses the effect of one message', () => {
  it('in the middle of a batch: it alone is held, the rest is applied in order, all is acknowledged', async () => {
    const path = await startPipeline({ contract: caseContract({ rest: EFFECTS }) });
    await refuseRows(path.url, BAD_STATUS);
    const batch = [b(1), b(2, { status: 'A' }), b(3, { status: 'BAD' }), b(4, { status: 'B' }), b(4, { status: 'B' })];
    const deliveries = batch.map((payload) => delivery(payload));
    path.offer(...deliveries);
    await path.stop();
    expect(path.acknowledged).toEqual(deliveries);
    const entries = await expectSoundLedger(path.url, FEED);
    expect(outcomes(entries)).toEqual(['APPLIED', 'APPLIED', 'EFFECT_FAILED', 'APPLIED', 'DUPLICATE_SUPPRESSED']);
    expect(entries[2]).toMatchObject({ held: true, reason: 'refused_by_database', sequence: '3', incidentId: 'I-77' });
    expect(entries[2]?.note).toContain('22023');
    expect(await readIncident(path.url, 'I-77')).toEqual({
      count: 3,
      'status/1': 'ENROUTE',
      'status/2': 'A',
      'status/4': 'B',
    });
  });

  it('is held once, however often it comes again, and does not stop what follows', async () => {
    const path = await startPipeline({ contract: caseContract({ rest: EFFECTS }) });
    await refuseRows(path.url, BAD_STATUS);
    const bad = b(1, { status: 'BAD' });
    const entries = await path.deliver(bad, bad, b(2), bad);
    expect(outcomes(entries)).toEqual(['EFFECT_FAILED', 'DUPLICATE_SUPPRESSED', 'APPLIED', 'DUPLICATE_SUPPRESSED']);
    expect(entries.map(({ original }) => original)).toEqual([null, 0, null, 0]);
    await expectSoundLedger(path.url, FEED);
  });

  it('inside one delivery of many: the items are decided one by one, and the delivery is acknowledged once', async () => {
    const path = await startPipeline({ contract: ITEMS });
    await refuseRows(path.url, BAD_STATUS);
    const one = delivery(items([1, 4]));
    const entries = await path.deliver(one);
    expect(path.acknowledged).toEqual([one]);
    expect(outcomes(entries)).toEqual(['APPLIED', 'EFFECT_FAILED', 'APPLIED', 'APPLIED', 'EFFECT_FAILED', 'APPLIED']);
    expect(entries.map(({ itemIndex }) => itemIndex)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 4, ...statuses(0, 2, 3, 5) });
    await expectSoundLedger(path.url, FEED);
  });

  it('and the instance ends between two items: the next one finishes what the first began', async () => {
    let commits = 0;
    const first = await startPipeline({
      contract: ITEMS,
      onStep: (step) => {
        if (step === 'recorded' && (commits += 1) === 2) first.abandon();
        // As a killed process would: nothing after the second commit happens.
        if (step === 'looked-up' && commits >= 2) throw new Error('ended');
      },
    });
    await refuseRows(first.url, BAD_STATUS);
    first.offer(delivery(items([3])));
    await expect(first.stop()).resolves.toBeUndefined();
    expect(first.acknowledged).toHaveLength(0);
    expect(outcomes(await first.entries())).toEqual(['APPLIED', 'APPLIED']);

    const second = await startPipeline({ contract: ITEMS, url: first.url });
    const again = await second.deliver(items([3]));
    expect(outcomes(again)).toEqual([
      ...['DUPLICATE_SUPPRESSED', 'DUPLICATE_SUPPRESSED'],
      ...['APPLIED', 'EFFECT_FAILED', 'APPLIED', 'APPLIED'],
    ]);
    expect(await readIncident(first.url, 'I-77')).toEqual({ count: 5, ...statuses(0, 1, 2, 4, 5) });
    await expectSoundLedger(first.url, FEED);
  });
});

describe('the database refuses an incident', () => {
  it('the message is held without it, in its place', async () => {
    const path = await startPipeline({ contract: caseContract({ rest: EFFECTS }) });
    await refuseRows(path.url, { table: 'incident', when: "NEW.id = 'I-BAD'", sqlState: '22023' });
    const batch = [b(1), b(2, { incident: 'I-BAD' }), b(3), b(2, { incident: 'I-BAD' })].map((payload) =>
      delivery(payload),
    );
    path.offer(...batch);
    await path.stop();
    expect(path.acknowledged).toEqual(batch);
    const entries = await expectSoundLedger(path.url, FEED);
    expect(outcomes(entries)).toEqual(['APPLIED', 'EFFECT_FAILED', 'APPLIED', 'DUPLICATE_SUPPRESSED']);
    expect(entries[1]).toMatchObject({ incidentId: null, held: true, reason: 'refused_by_database' });
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 2, 'status/1': 'ENROUTE', 'status/3': 'ENROUTE' });
    expect(await readIncident(path.url, 'I-BAD')).toEqual({});
  });
});
