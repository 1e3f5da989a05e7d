import { adviseEntries, adviseSeconds, warnOfCount } from '../../src/api/model/advice';

const lags = (replays: number, p50: number | null, p99: number | null, max: number | null) => ({
  replays,
  p50,
  p99,
  max,
});

describe('adviseSeconds', () => {
  it('exceeds what the contract says that replays can come late by', () => {
    expect(adviseSeconds(lags(0, null, null, null), 420)).toEqual({
      value: 421,
      reason: 'the contract says that replays can come 420 s late; no replay came',
    });
    expect(adviseSeconds(lags(5, 1, 200, 250), 420)).toEqual({
      value: 421,
      reason: 'the contract says that replays can come 420 s late; 99 % of 5 replays came within 200 s',
    });
  });

  it('covers 99 % of what was measured and a half more, where that is longer', () => {
    expect(adviseSeconds(lags(1000, 3, 400.25, 500), 420)).toEqual({
      value: 601,
      reason: '99 % of 1000 replays came within 400.25 s; a half more for what is to come',
    });
  });

  it('is not moved by the latest of all, and says so', () => {
    const { value, reason } = adviseSeconds(lags(1000, 3, 400, 86_400), 420);
    expect(value).toBe(600);
    expect(reason).toMatch(/; the latest came after 86400 s, and the ledger proves such ones$/);
  });

  it('never leaves the bounds of a contract', () => {
    expect(adviseSeconds(lags(1, 4e7, 4e7, 4e7), 420).value).toBe(31_536_000);
    expect(adviseSeconds(lags(0, null, null, null), null)).toEqual({
      value: 1,
      reason: 'the contract cannot be read; no replay came',
    });
  });
});

describe('adviseEntries', () => {
  it('has room for the most that came, and a quarter more', () => {
    expect(adviseEntries(421, 1001)).toEqual({
      value: 1252,
      reason: 'up to 1001 entries came within 421 s; a quarter more for bursts',
    });
    expect(adviseEntries(421, 0).value).toBe(1);
    expect(adviseEntries(421, 9_000_000).value).toBe(10_000_000);
  });
});

describe('warnOfCount', () => {
  it('speaks when more came within the seconds than the entries keep', () => {
    const window = { windowSeconds: 600, maxEntries: 1000, peak: 1000, pushedOut: 0 };
    expect(warnOfCount(window)).toBeNull();
    expect(warnOfCount({ ...window, peak: 1001 })).toBe(
      'entries leave by count before their time: up to 1001 came within windowSeconds 600, and maxEntries keeps 1000',
    );
    expect(warnOfCount({ ...window, peak: 1001, pushedOut: 7 })).toMatch(/; 7 replays came in time and found/);
  });
});
