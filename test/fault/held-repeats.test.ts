import { refuseRows } from '../support/fault-postgres';
import { expectSoundLedger, query, readIncident, type StoredEntry } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';

const FEED = 'cad-north';
const REPEATS = 10;
const CONTRACT = caseContract({
  rest: 'effects:\n  - { do: increment, field: count, by: [{ pointer: /by }, { const: "1" }] }',
});

interface Held {
  readonly outcome: string;
  readonly reason: string;
  /** What has to have happened before. */
  readonly before: readonly string[];
  readonly payload: string;
}

const KEYED: readonly Held[] = [
  { outcome: 'STALE_OUT_OF_ORDER', reason: 'below_high_water_mark', before: [b(10)], payload: b(5) },
  { outcome: 'KEY_CONFLICT', reason: 'same_key_other_digest', before: [b(10)], payload: b(10, { status: 'OTHER' }) },
  { outcome: 'EFFECT_FAILED', reason: 'not_a_number', before: [b(10)], payload: b(11, { by: 'many' }) },
];

const outcomes = (entries: readonly StoredEntry[]) => entries.map(({ outcome }) => outcome);
const repeats = (outcome: string, count = REPEATS) => Array<string>(count).fill(outcome);

describe.each([
  { how: 'one after the other', oneByOne: true },
  { how: 'in one batch', oneByOne: false },
])('ten replays of a held message, $how', ({ oneByOne }) => {
  it.each(KEYED)('$outcome: it is held once, and the replays are its duplicates', async (held) => {
    const path = await startPipeline({ contract: CONTRACT });
    await path.deliver(...held.before);
    const replays = Array.from({ length: REPEATS + 1 }, () => delivery(held.payload));
    if (oneByOne) await path.deliver(...replays);
    else path.offer(...replays);
    await path.stop();

    const entries = (await expectSoundLedger(path.url, FEED)).slice(held.before.length);
    expect(outcomes(entries)).toEqual([held.outcome, ...repeats('DUPLICATE_SUPPRESSED')]);
    expect(entries[0]).toMatchObject({ held: true, reason: held.reason });
    for (const replay of entries.slice(1)) {
      expect(replay).toMatchObject({ held: false, original: held.before.length, tier: 'WINDOW', claimDigest: null });
    }
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 1 });
    expect(path.acknowledged).toHaveLength(held.before.length + REPEATS + 1);
  });

  it('MALFORMED_REJECTED: each is an entry of its own, and the bytes are stored once', async () => {
    const path = await startPipeline({ contract: CONTRACT });
    const bytes = Buffer.from('{"agency":"NFD","src":"e1","seq":');
    const replays = Array.from({ length: REPEATS }, () => delivery(bytes));
    if (oneByOne) await path.deliver(...replays);
    else path.offer(...replays);
    await path.stop();

    const entries = await expectSoundLedger(path.url, FEED);
    expect(outcomes(entries)).toEqual(repeats('MALFORMED_REJECTED'));
    for (const entry of entries) expect(entry).toMatchObject({ held: true, key: null, original: null });
    const payloads = await query<{ bytes: Buffer; size_bytes: number }>(
      path.url,
      'SELECT bytes, size_bytes FROM payload',
    );
    expect(payloads).toEqual([{ bytes, size_bytes: bytes.length }]);
  });
});

describe('what is held', () => {
  it('stays held when another message conflicts with it, and both are held once', async () => {
    const path = await startPipeline({ contract: CONTRACT });
    const stale = b(5);
    const other = b(5, { status: 'OTHER' });
    const entries = await path.deliver(b(10), stale, other, stale, other, stale);
    expect(outcomes(entries)).toEqual([
      'APPLIED',
      'STALE_OUT_OF_ORDER',
      'KEY_CONFLICT',
      ...repeats('DUPLICATE_SUPPRESSED', 3),
    ]);
    expect(entries.map(({ original }) => original)).toEqual([null, null, 1, 1, 2, 1]);
  });

  it('is a duplicate of itself after the reason is gone: a person decides, not the next replay', async () => {
    const path = await startPipeline({ contract: CONTRACT });
    const allow = await refuseRows(path.url, { table: 'incident_field', when: 'true', sqlState: '22003' });
    const [failed] = await path.deliver(b(1));
    expect(failed).toMatchObject({ outcome: 'EFFECT_FAILED', held: true });
    await allow();
    const [again, next] = await path.deliver(b(1), b(2));
    expect(again).toMatchObject({ outcome: 'DUPLICATE_SUPPRESSED', original: 0 });
    expect(next).toMatchObject({ outcome: 'APPLIED' });
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 1 });
    await expectSoundLedger(path.url, FEED);
  });
});
