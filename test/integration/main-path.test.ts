import { b, delivery, startPipeline } from '../support/pipeline';
import { expectSoundLedger, query, readIncident } from '../support/ledger';

const outcomes = (entries: { outcome: string }[]) => entries.map(({ outcome }) => outcome);

describe('the main path', () => {
  it('applies a message once and suppresses its replay, naming the original', async () => {
    const path = await startPipeline();
    const entries = await path.deliver(b(1), b(1));
    expect(outcomes(entries)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED']);
    expect(entries[1]).toMatchObject({ original: 0, tier: 'WINDOW', held: false });
    expect(await readIncident(path.url, 'I-77')).toEqual({ status: 'ENROUTE' });
    await expectSoundLedger(path.url, path.feed.name);
  });

  it('sees what was decided before it in the same batch', async () => {
    const path = await startPipeline();
    const batch = [b(1), b(1), b(2), b(1, { status: 'X' })].map((payload) => delivery(payload));
    path.offer(...batch);
    await path.stop();
    expect(path.acknowledged).toEqual(batch);
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(outcomes(entries)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED', 'APPLIED', 'KEY_CONFLICT']);
    expect(new Set(entries.map(({ batchId }) => batchId)).size).toBe(1);
  });

  it('takes the steps in their order and acknowledges after the commit', async () => {
    const path = await startPipeline();
    await path.deliver(b(1));
    expect(path.steps).toEqual([
      'looked-up',
      'read',
      'decided',
      'written',
      'committed',
      'recorded',
      'acknowledged',
      'woken',
    ]);
  });

  it('does not repeat what is committed because an observer failed', async () => {
    const path = await startPipeline({
      onCommitted: () => {
        throw new Error('the observer failed');
      },
    });
    await path.deliver(b(1), '{', b(2));
    expect(outcomes(await expectSoundLedger(path.url, path.feed.name))).toEqual([
      'APPLIED',
      'MALFORMED_REJECTED',
      'APPLIED',
    ]);
  });

  it('keeps the bytes that it could not keep before, once the limit allows them', async () => {
    const path = await startPipeline({ maxPayloadBytes: 1024 });
    const large = b(1, { note: 'x'.repeat(2000) });
    expect(outcomes(await path.deliver(large))).toEqual(['MALFORMED_REJECTED']);
    await path.stop();
    const raised = await startPipeline({ url: path.url });
    expect(outcomes(await raised.deliver(large))).toEqual(['APPLIED']);
    expect(await query(path.url, 'SELECT length(bytes) AS bytes FROM payload')).toEqual([{ bytes: large.length }]);
  });
});
