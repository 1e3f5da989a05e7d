/** `policyPreview`: what another policy would have made of what was recorded, by the production decision function. */
import { readRecorded } from '../../src/api/read/preview';
import { redecide } from '../../src/dedup/redecide';
import { updatePolicy } from '../../src/ledger/policy';
import type { DedupPolicy, EpochOrder } from '../../src/contract/types';
import type { StoredEntry } from '../support/ledger';
import { query } from '../support/ledger';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, startPipeline } from '../support/pipeline';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import type { Data, TestApi } from './api-fixture';
import { startTestApi } from './api-fixture';
import { deliverAll } from './api-subscription-fixture';

const COUNTS = 'caughtByWindow caughtByLedger expectedKeys expectedBytes';
const DECISION = 'outcome late reason';
const PREVIEW = `query ($feed: ID!, $policy: DedupPolicyInput!, $since: DateTime) {
  policyPreview(feed: $feed, policy: $policy, since: $since) {
    feed { name } problems replays inForce { ${COUNTS} } previewed { ${COUNTS} }
    windowSamples { position } ledgerSamples { position } decidedAgainFrom differenceCount
    differences { decision { position outcome } inForce { ${DECISION} } previewed { ${DECISION} } } } }`;
const FEED = 'cad-north';
const identity = (order: EpochOrder) =>
  `{ agency: { pointer: /agency }, source: { pointer: /src }, epoch: { pointer: /boot, order: ${order} }, sequence: { pointer: /seq } }`;

/** The same numbers on every run: a linear congruential generator. */
function randomness(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
}

/** Sources that go on, fall back, jump, repeat themselves, reuse numbers, start again, and send what cannot be applied. */
function traffic(seed: number, count: number): string[] {
  const random = randomness(seed);
  const heads = new Map<string, number>();
  return Array.from({ length: count }, () => {
    const src = `e${random(3)}`;
    const boot = String(1 + random(3));
    const last = heads.get(src + boot) ?? 0;
    const sequence = [last + 1, last + 2, Math.max(0, last - random(6)), last + 1 + random(60)][random(4)] ?? 0;
    // What jumps too far is an accident: the source goes on where it was.
    if (sequence - last <= 40) heads.set(src + boot, Math.max(last, sequence));
    const by = random(12) === 0 ? 'many' : random(2);
    return b(sequence, { src, boot, by, incident: `I-${src}` });
  });
}

const EFFECTS = 'effects:\n  - { do: increment, field: count, by: { pointer: /by } }';
const contractOf = (order: EpochOrder, ordering: string) =>
  caseContract({
    identity: identity(order),
    rest: EFFECTS,
    dedup: `{ windowSeconds: 600, maxEntries: 40, ordering: ${ordering}, maxSequenceJump: 40 }`,
  });

const preview = async (app: TestApi, policy: object, since = '2000-01-01T00:00:00Z'): Promise<Data> =>
  (await app.data(PREVIEW, { feed: FEED, policy, since })).policyPreview as Data;

async function change(path: TestPipeline, expectedVersion: number, changes: Partial<DedupPolicy>): Promise<void> {
  const attempt = { feed: FEED, expectedVersion, changes, actor: 'test', reason: 'test' };
  expect(await updatePolicy(path.database.prisma, attempt)).toMatchObject({ result: 'updated' });
}

const BY_POLICY = ['APPLIED', 'STALE_OUT_OF_ORDER', 'EFFECT_FAILED'];
const decided = (entries: readonly StoredEntry[]) =>
  entries
    .filter(({ outcome }) => BY_POLICY.includes(outcome))
    .map(({ position, outcome, late, reason }) => [position, outcome, late, outcome === 'APPLIED' ? null : reason]);

describe('policyPreview', () => {
  it.each(['opaque', 'numeric'] as const)(
    'decides again as it was decided, from any moment on, with %s epochs',
    async (order) => {
      const path = await startPipeline({ contract: contractOf(order, 'strict'), batchMaxDeliveries: 7 });
      await deliverAll(path, traffic(1, 200));
      await change(path, 1, { ordering: 'tolerant' });
      await deliverAll(path, traffic(2, 150));
      await change(path, 2, { maxSequenceJump: '5' });
      await deliverAll(path, traffic(3, 150));
      const entries = await path.entries();
      const base: DedupPolicy = {
        ...{ windowSeconds: 600, maxEntries: 40, ordering: 'strict', contiguous: false, maxSequenceJump: '40' },
      };
      const policies = [
        base,
        { ...base, ordering: 'tolerant' },
        { ...base, ordering: 'tolerant', maxSequenceJump: '5' },
      ];
      for (const [index, policy] of (policies as DedupPolicy[]).entries()) {
        const own = entries.filter(({ policyVersion }) => policyVersion === index + 1);
        for (const skipped of [0, 1, own.length >> 1]) {
          const from = own[skipped]?.position ?? 0;
          const { start, entries: all } = await readRecorded(
            path.database.prisma,
            { feedId: path.feed.feedId, from: BigInt(from) },
            order,
          );
          const recorded = all.filter(({ position }) => position <= (own.at(-1)?.position ?? 0));
          const again = redecide(start, recorded, policy, order).map(({ position, outcome, late, reason }) => [
            ...[position, outcome, late, outcome === 'APPLIED' ? null : reason],
          ]);
          expect(again).toEqual(decided(own.slice(skipped)));
          expect(again.length).toBeGreaterThan(20);
        }
      }
      const seen = new Set(entries.map(({ reason }) => reason));
      for (const reason of ['below_high_water_mark', 'epoch_left', 'sequence_jump', 'same_key_and_digest']) {
        expect(seen).toContain(reason);
      }
    },
  );

  it('foretells what a ledger under the other ordering comes to', async () => {
    const messages = traffic(4, 250);
    const strict = await startPipeline({ contract: contractOf('opaque', 'strict') });
    const tolerant = await startPipeline({ contract: contractOf('opaque', 'tolerant') });
    await deliverAll(strict, messages);
    await deliverAll(tolerant, messages);
    const app = await startTestApi({ database: strict.database });
    const answer = await preview(app, { ordering: 'TOLERANT' });
    const [was, became] = [decided(await strict.entries()), decided(await tolerant.entries())];
    const differing = became.filter((one, index) => JSON.stringify(one) !== JSON.stringify(was[index]));
    expect(answer.differenceCount).toBe(differing.length);
    expect(differing.length).toBeGreaterThan(10);
    expect(answer.differences).toEqual(
      differing.slice(0, 10).map(([position, outcome, late, reason]) => ({
        decision: { position: String(position), outcome: expect.any(String) as string },
        inForce: { outcome: 'STALE_OUT_OF_ORDER', late: false, reason: expect.any(String) as string },
        previewed: { outcome, late, reason },
      })),
    );
    expect(answer.decidedAgainFrom).toBe('0');
    expect(answer.problems).toEqual([]);
  });

  it('finds no difference in the same policy, whatever was in force before', async () => {
    const path = await startPipeline({ contract: contractOf('opaque', 'strict') });
    await deliverAll(path, traffic(5, 100));
    await change(path, 1, { ordering: 'tolerant', maxEntries: 3 });
    await deliverAll(path, traffic(6, 100));
    const app = await startTestApi({ database: path.database });
    for (const policy of [{}, { ordering: 'TOLERANT', maxEntries: 3, windowSeconds: 600, maxSequenceJump: '40' }]) {
      const answer = await preview(app, policy);
      expect(answer).toMatchObject({ differenceCount: 0, differences: [] });
      expect(answer.previewed).toEqual(answer.inForce);
    }
    expect((await preview(app, { ordering: 'STRICT' })).differenceCount).toBeGreaterThan(0);
  });

  it('counts the replays that each tier would have caught, with samples', async () => {
    const path = await startPipeline({ contract: caseContract({ dedup: '{ windowSeconds: 600, maxEntries: 4 }' }) });
    // Replays of ranks 1, 5 and 6: one within four entries.
    await path.deliver(b(1), b(1), b(2), b(3), b(4), b(1), b(2), b(5));
    const app = await startTestApi({ database: path.database });
    const recorded = (await path.entries()).filter(({ outcome }) => outcome === 'DUPLICATE_SUPPRESSED');
    const tiers = (tier: string) => recorded.filter((entry) => entry.tier === tier).length;
    const answer = await preview(app, { maxEntries: 5 });
    expect(answer).toMatchObject({
      replays: '3',
      inForce: { caughtByWindow: String(tiers('WINDOW')), caughtByLedger: String(tiers('LEDGER')), expectedKeys: 4 },
      previewed: { caughtByWindow: '3', caughtByLedger: '0', expectedBytes: '770' },
      windowSamples: [{ position: '6' }, { position: '5' }, { position: '1' }],
      ledgerSamples: [],
    });
    expect([tiers('WINDOW'), tiers('LEDGER')]).toEqual([2, 1]);
    expect((await preview(app, { maxEntries: 3 })).ledgerSamples).toEqual([{ position: '6' }, { position: '5' }]);
    // From now on there is nothing yet.
    const later = await preview(app, {}, '2999-01-01T00:00:00Z');
    expect(later).toMatchObject({ replays: '0', decidedAgainFrom: '8', differenceCount: 0 });
    // Five keys in a thousand seconds: three in six hundred, and never more than the window has room for.
    await query(path.url, "UPDATE feed SET created_at = now() - interval '1000 seconds'");
    const { data } = await app.post(PREVIEW, { feed: FEED, policy: { windowSeconds: 31_536_000 } });
    expect(data?.policyPreview).toMatchObject({
      inForce: { expectedKeys: 3, expectedBytes: '462' },
      previewed: { expectedKeys: 4, expectedBytes: '616' },
    });
  });

  it('says what would be refused, and is for those who may change the policy', async () => {
    const path = await startPipeline();
    await path.deliver(b(1));
    const tokens = makeTokens();
    const [viewer, admin] = (['viewer', 'policy-admin'] as const).map((role) => tokens.add({ name: role, role }));
    const app = await startTestApi({ database: path.database, tokens: openTokenFile(tokens.path) });
    const ask = (token: string | undefined, variables: object) => asking(app, token ?? '')(PREVIEW, variables);
    const one = { feed: FEED, policy: { windowSeconds: 400, maxEntries: 0 } };
    expect((await ask(viewer, one)).errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect((await ask(admin, one)).data?.policyPreview.problems).toEqual([
      expect.stringMatching(/^maxEntries must be/) as string,
      expect.stringMatching(/^windowSeconds 400 must exceed .* = 420/) as string,
    ]);
    expect((await ask(admin, { ...one, feed: 'nowhere' })).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    const bad = { feed: FEED, policy: { maxSequenceJump: 'far' } };
    expect((await ask(admin, bad)).errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
  });
});
