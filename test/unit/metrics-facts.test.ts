import { RecentFacts } from '../../src/ops/recent-facts';

describe('facts that cost a query', () => {
  function recentFacts(tookMs: number) {
    const state = { nowMs: 0, reads: 0, failing: false };
    const facts = new RecentFacts(
      async () => {
        state.reads += 1;
        state.nowMs += tookMs;
        if (state.failing) throw new Error('away');
        return state.reads;
      },
      { minAgeMs: 5_000, waitMs: 1_000 },
      () => state.nowMs,
    );
    return { facts, state };
  }

  it('are read once for all who ask together, and not again while they are young', async () => {
    const { facts, state } = recentFacts(0);
    const [one, other] = await Promise.all([facts.get(), facts.get()]);
    expect([one?.value, other?.value]).toEqual([1, 1]);
    state.nowMs = 4_999;
    expect(await facts.get()).toEqual({ value: 1, ageMs: 4_999 });
    state.nowMs = 5_000;
    expect((await facts.get())?.value).toBe(2);
  });

  it('rest twenty times as long as they took', async () => {
    const { facts, state } = recentFacts(1_000);
    await facts.get();
    state.nowMs = 19_999;
    expect((await facts.get())?.value).toBe(1);
    state.nowMs = 20_000;
    expect((await facts.get())?.value).toBe(2);
  });

  it('are unknown after a read that failed, and asked for again', async () => {
    const { facts, state } = recentFacts(0);
    await facts.get();
    state.failing = true;
    state.nowMs = 5_000;
    expect(await facts.get()).toBeNull();
    state.failing = false;
    state.nowMs = 10_000;
    expect((await facts.get())?.value).toBe(3);
  });

  it('keep nobody waiting beyond the limit: what was known before is given', async () => {
    let release = (): void => undefined;
    let reads = 0;
    let nowMs = 0;
    const read = async (): Promise<number> => {
      reads += 1;
      if (reads === 2) await new Promise<void>((resolve) => (release = resolve));
      return reads;
    };
    const facts = new RecentFacts(read, { minAgeMs: 10, waitMs: 20 }, () => nowMs);
    expect((await facts.get())?.value).toBe(1);
    nowMs = 50;
    expect(await facts.get()).toEqual({ value: 1, ageMs: 50 });
    release();
    expect((await facts.get())?.value).toBe(2);
  });
});
