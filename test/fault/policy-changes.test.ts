/** The policy of a feed that is changed again and again under load: only tiers and version numbers may tell. */
import { updatePolicy } from '../../src/ledger/policy';
import type { StoredEntry } from '../support/ledger';
import { expectSoundLedger, readIncident } from '../support/ledger';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';

const FEED = 'cad-north';
const CHANGES = 20;
const SOURCES = 3;
const CONTRACT = caseContract({
  rest: 'effects:\n  - { do: increment, field: count, by: { const: "1" } }',
});

/** What one instance receives, in order: new messages, replays near and far, reused numbers, stragglers. */
function chunkOf(worker: number, chunk: number): string[] {
  const messages: string[] = [];
  for (let index = 0; index < 40; index++) {
    const source = `w${worker}-${index % SOURCES}`;
    const at = (n: number, changes: object = {}) => b(n, { src: source, incident: `I-${source}`, ...changes });
    const newest = chunk * 100 + index + 1;
    messages.push(at(newest));
    if (index % 4 === 0) messages.push(at(newest));
    if (index % 5 === 0 && chunk > 0) messages.push(at((chunk - 1) * 100 + index + 1));
    if (index % 7 === 0 && chunk > 2) messages.push(at(index + 1));
    if (index % 11 === 0) messages.push(at(newest, { status: 'ANOTHER' }));
    if (index % 13 === 0) messages.push(at(chunk * 100));
  }
  return messages;
}

/** @param change called after each part of the load was handed over, while it is being decided */
async function run(change: (path: TestPipeline, round: number) => Promise<void>): Promise<StoredEntry[]> {
  const one = await startPipeline({ contract: CONTRACT, batchMaxDeliveries: 10 });
  const two = await startPipeline({ contract: CONTRACT, batchMaxDeliveries: 10, url: one.url });
  let offered = 0;
  const landed = () => one.acknowledged.length + two.acknowledged.length;
  for (let round = 0; round < CHANGES; round++) {
    const before = landed();
    for (const [worker, path] of [one, two].entries()) {
      const payloads = chunkOf(worker, round);
      offered += payloads.length;
      path.offer(...payloads.map((payload) => delivery(payload)));
    }
    await until(() => landed() > before, { what: 'progress' });
    await change(one, round);
  }
  await until(() => landed() === offered, { what: 'all of the load', timeoutMs: 60_000 });
  const entries = await expectSoundLedger(one.url, FEED);
  for (const source of sourcesOf(entries)) {
    const count = entries.filter((entry) => entry.sourceId === source && entry.outcome === 'APPLIED').length;
    expect(await readIncident(one.url, `I-${source}`)).toEqual({ count });
  }
  await Promise.all([one.stop(), two.stop()]);
  return entries;
}

function sourcesOf(entries: readonly StoredEntry[]): string[] {
  return [...new Set(entries.map(({ sourceId }) => sourceId ?? ''))].sort();
}

/** Everything decided about each source, without what depends on when the two instances had their turns. */
function decisionsOf(entries: readonly StoredEntry[]): object[] {
  return sourcesOf(entries).map((source) => {
    const own = entries.filter(({ sourceId }) => sourceId === source);
    const placeOf = (position: number | null) => own.findIndex((entry) => entry.position === position);
    return own.map(({ outcome, reason, held, late, key, payloadDigest, sequence, original, note, tier }) => ({
      ...{ outcome, reason, held, late, key, payloadDigest, sequence, note, original: placeOf(original) },
      // Which of the two it is depends on the policy, and on how far others have moved the ledger on.
      tier: tier === 'LEDGER' ? 'WINDOW' : tier,
    }));
  });
}

it('is decided alike with and without twenty changes of window and size, over two instances', async () => {
  const undisturbed = await run(() => Promise.resolve());
  const disturbed = await run(async (path, round) => {
    const update = await updatePolicy(path.database.prisma, {
      feed: FEED,
      expectedVersion: round + 1,
      changes: { windowSeconds: 421 + ((round * 7919) % 3600), maxEntries: round % 2 === 0 ? 1 + round : 50_000 },
      actor: 'test',
      reason: `change ${round + 1}`,
    });
    expect(update).toMatchObject({ result: 'updated', version: round + 2 });
  });
  expect(decisionsOf(disturbed)).toEqual(decisionsOf(undisturbed));
  // The changes came in the middle of it, and mattered.
  const versions = new Set(disturbed.map(({ policyVersion }) => policyVersion));
  expect(versions.size).toBeGreaterThan(CHANGES / 2);
  expect(new Set(disturbed.map(({ tier }) => tier))).toEqual(new Set(['NONE', 'WINDOW', 'LEDGER', 'HIGH_WATER_MARK']));
  expect(new Set(disturbed.map(({ outcome }) => outcome))).toEqual(
    new Set(['APPLIED', 'DUPLICATE_SUPPRESSED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER']),
  );
});
