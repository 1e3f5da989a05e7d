import { createMigratedDatabase } from '../support/database';
import { loseAnswersToCommit, loseCommits, refuseRows, startPostgresProxy } from '../support/fault-postgres';
import { expectSoundLedger, readEntries, readIncident } from '../support/ledger';
import { b, caseContract, delivery, startPipeline, type TestPipeline } from '../support/pipeline';
import type { TcpProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

const FEED = 'cad-north';
/** A message applied twice shows as a number. */
const COUNTING = caseContract({
  rest: 'effects:\n  - { do: increment, field: count, by: { const: "1" } }',
});

interface Proxied {
  /** Around the proxy. */
  readonly url: string;
  readonly proxy: TcpProxy;
  readonly path: TestPipeline;
}

async function startProxied(): Promise<Proxied> {
  const { url } = await createMigratedDatabase();
  const { proxy, proxiedUrl } = await startPostgresProxy(url);
  const path = await startPipeline({ url: proxiedUrl, contract: COUNTING });
  return { url, proxy, path };
}

const outcomes = (entries: { outcome: string }[]) => entries.map(({ outcome }) => outcome);
const times = (steps: readonly string[], step: string) => steps.filter((one) => one === step).length;

describe('the answer to COMMIT is lost', () => {
  it.each([1, 2, 5])('what was committed is not applied again, answers lost %i times in a row', async (losses) => {
    const { url, proxy, path } = await startProxied();
    // The first loss is the batch's own, the others are those of the look-ups whether it was committed.
    const lost = loseAnswersToCommit(proxy, losses);
    const one = delivery(b(1));
    path.offer(one);
    await until(() => path.acknowledged.length > 0, { what: 'the acknowledgement' });
    expect(lost.count).toBe(losses);
    expect(times(path.steps, 'written')).toBe(1);
    await path.deliver(b(2));
    expect(path.acknowledged.filter((d) => d === one)).toHaveLength(1);
    expect(outcomes(await expectSoundLedger(url, FEED))).toEqual(['APPLIED', 'APPLIED']);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 2 });
  });

  it('nothing is acknowledged while it is not known whether it was committed', async () => {
    const { url, proxy, path } = await startProxied();
    loseAnswersToCommit(proxy, 1, () => void proxy.refuse(true));
    path.offer(delivery(b(1)));
    await until(async () => (await readEntries(url, FEED)).length === 1, { what: 'the commit' });
    await sleep(500);
    expect(path.acknowledged).toHaveLength(0);
    await proxy.refuse(false);
    await until(() => path.acknowledged.length === 1, { what: 'the acknowledgement' });
    expect(outcomes(await expectSoundLedger(url, FEED))).toEqual(['APPLIED']);
  });

  it('every batch of a run loses its answer, and each is applied once', async () => {
    const { url, proxy, path } = await startProxied();
    const lost = loseAnswersToCommit(proxy, 12);
    for (let n = 1; n <= 6; n += 1) await path.deliver(delivery(b(n)));
    expect(lost.count).toBe(12);
    expect(outcomes(await expectSoundLedger(url, FEED))).toEqual(Array<string>(6).fill('APPLIED'));
    expect(await readIncident(url, 'I-77')).toEqual({ count: 6 });
  });
});

describe('COMMIT itself is lost', () => {
  it.each([1, 4])('the batch is written again, COMMIT lost %i times in a row', async (losses) => {
    const { url, proxy, path } = await startProxied();
    const lost = loseCommits(proxy, losses);
    path.offer(delivery(b(1)), delivery(b(2)));
    await until(() => path.acknowledged.length === 2, { what: 'the acknowledgements' });
    expect(lost.count).toBe(losses);
    expect(times(path.steps, 'written')).toBeGreaterThan(1);
    expect(outcomes(await expectSoundLedger(url, FEED))).toEqual(['APPLIED', 'APPLIED']);
    expect(await readIncident(url, 'I-77')).toEqual({ count: 2 });
  });
});

describe('C073: COMMIT raises an error', () => {
  const AT_131 = {
    table: 'ledger_entry',
    when: "NEW.outcome = 'APPLIED' AND NEW.sequence = 131",
    deferred: true,
  } as const;

  it('a message that a deferred constraint refuses is held, and those around it are applied', async () => {
    const path = await startPipeline({ contract: COUNTING });
    await refuseRows(path.url, { ...AT_131, sqlState: '23514' });
    const batch = [130, 131, 132].map((n) => delivery(b(n)));
    path.offer(...batch);
    await path.stop();
    expect(path.acknowledged).toEqual(batch);
    const entries = await expectSoundLedger(path.url, FEED);
    expect(outcomes(entries)).toEqual(['APPLIED', 'EFFECT_FAILED', 'APPLIED']);
    expect(entries[1]).toMatchObject({ sequence: '131', held: true, reason: 'refused_by_database' });
    expect(entries[1]?.note).toContain('23514');
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 2 });
  });

  it('an error that is not about data is tried again, unacknowledged, until it is gone', async () => {
    const path = await startPipeline({ contract: COUNTING });
    const allow = await refuseRows(path.url, { ...AT_131, sqlState: 'P0001' });
    path.offer(...[130, 131, 132].map((n) => delivery(b(n))));
    await until(() => times(path.steps, 'written') >= 4, { what: 'four tries' });
    expect(path.acknowledged).toHaveLength(0);
    expect(await path.entries()).toEqual([]);
    await allow();
    await until(() => path.acknowledged.length === 3, { what: 'the acknowledgements' });
    expect(outcomes(await expectSoundLedger(path.url, FEED))).toEqual(['APPLIED', 'APPLIED', 'APPLIED']);
    expect(await readIncident(path.url, 'I-77')).toEqual({ count: 3 });
  });
});
