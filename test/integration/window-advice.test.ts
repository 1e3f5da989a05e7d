/** `feed { window { advice } }`: measured of a ledger, and checked against what is read back of it. */
import { query } from '../support/ledger';
import { b, caseContract, startPipeline } from '../support/pipeline';
import { sleep } from '../support/wait';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import type { Data, TestApi } from './api-fixture';
import { startTestApi } from './api-fixture';
import { appendEntries } from './api-ledger-fixture';

const ADVICE = `query ($since: DateTime) { feed(name: "cad-north") { window { advice(since: $since) {
  replays lagP50Seconds lagP99Seconds lagMaxSeconds entriesPerSecond windowSeconds maxEntries reasons warning } } } }`;
const SHORT = 'delivery: { sessionExpirySeconds: 1, maxReplayDelaySeconds: 0 }\neffects: []';

const advice = async (app: TestApi, since?: string): Promise<Data> =>
  (await app.data(ADVICE, { since })).feed.window.advice as Data;

describe('advice', () => {
  it('measures how late replays come, and which found their original pushed out', async () => {
    const path = await startPipeline({ contract: caseContract({ dedup: '{ windowSeconds: 600, maxEntries: 2 }' }) });
    await path.deliver(b(1), b(2), b(2));
    await sleep(200);
    await path.deliver(b(1), b(2), b(3), b(3));
    const entries = await path.entries();
    const lags = entries
      .filter(({ outcome }) => outcome === 'DUPLICATE_SUPPRESSED')
      .map(({ recordedAt, original }) => Date.parse(recordedAt) - Date.parse(entries[original ?? 0]?.recordedAt ?? ''))
      .sort((one, other) => one - other)
      // Dates have milliseconds, the ledger has microseconds.
      .map((milliseconds) => expect.closeTo(milliseconds / 1000, 2) as number);
    const app = await startTestApi({ database: path.database });
    expect(await advice(app)).toEqual({
      ...{ replays: '4', lagP50Seconds: lags[1], lagP99Seconds: lags[3], lagMaxSeconds: lags[3] },
      ...{ entriesPerSecond: expect.any(Number) as number, windowSeconds: 421, maxEntries: 9 },
      reasons: [
        expect.stringMatching(/^the contract says that replays can come 420 s late; 99 % of 4 replays came within/),
        'up to 7 entries came within 421 s; a quarter more for bursts',
      ],
      warning:
        'entries leave by count before their time: up to 7 came within windowSeconds 600, and maxEntries keeps 2; ' +
        '2 replays came in time and found their original gone',
    });
    expect(await advice(app, '2999-01-01T00:00:00Z')).toMatchObject({
      replays: '0',
      lagMaxSeconds: null,
      warning: null,
    });
  });

  it('takes the busiest seconds, and rates since the feed exists', async () => {
    const dedup = '{ windowSeconds: 3, maxEntries: 1000 }';
    const path = await startPipeline({ contract: caseContract({ dedup, rest: SHORT }) });
    await query(path.url, "UPDATE feed SET created_at = now() - interval '100 seconds'");
    // 500 a second for twenty seconds; replays follow their original at once.
    const startsAt = new Date(Date.now() - 60_000).toISOString();
    await appendEntries(path.url, { feedId: path.feed.feedId, first: 0, count: 10_000, startsAt });
    const app = await startTestApi({ database: path.database });
    const found = await advice(app);
    // Three batches lie within two seconds, four within three.
    expect(found).toMatchObject({
      ...{ replays: '1000', windowSeconds: 2, maxEntries: 1875 },
      reasons: [expect.stringContaining('1 s late'), 'up to 1500 entries came within 2 s; a quarter more for bursts'],
      warning: expect.stringContaining('up to 2000 came within windowSeconds 3') as string,
    });
    expect(found.entriesPerSecond).toBeGreaterThan(10);
    expect(found.entriesPerSecond).toBeLessThanOrEqual(100);
  });

  it('is not given to a reader of some agencies', async () => {
    const path = await startPipeline();
    await path.deliver(b(1), b(1));
    const tokens = makeTokens();
    const token = tokens.add({ name: 'north', role: 'reviewer', agencies: ['NFD'] });
    const app = await startTestApi({ database: path.database, tokens: openTokenFile(tokens.path) });
    expect((await asking(app, token)(ADVICE)).data).toEqual({ feed: { window: { advice: null } } });
  });
});
