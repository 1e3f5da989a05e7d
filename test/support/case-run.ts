/**
 * The cases (`test/cases`) on the main path: their titles, and deliveries in one batch.
 */
import type { ReceivedDelivery } from '../../src/mqtt/port';
import { caseById } from './cases';
import { expectSoundLedger, type StoredEntry } from './ledger';
import { delivery, type TestPipeline } from './pipeline';
import { until } from './wait';

/** `C013: <what went wrong for somebody>`. */
export function caseTitle(id: string): string {
  return `${id}: ${caseById(id).symptom}`;
}

/**
 * Hands everything over at once, waits until all of it is acknowledged, and answers its entries. The ledger is sound
 * before and after.
 */
export async function land(
  pipeline: TestPipeline,
  ...payloads: (string | Uint8Array | ReceivedDelivery)[]
): Promise<StoredEntry[]> {
  const before = (await pipeline.entries()).length;
  const deliveries = payloads.map((payload) =>
    typeof payload === 'string' || payload instanceof Uint8Array ? delivery(payload) : payload,
  );
  const expected = pipeline.acknowledged.length + deliveries.length;
  pipeline.offer(...deliveries);
  await until(() => pipeline.acknowledged.length >= expected, { what: 'the acknowledgements', everyMs: 5 });
  const entries = await expectSoundLedger(pipeline.url, pipeline.feed.name);
  return entries.slice(before);
}

/** `APPLIED`, `APPLIED late`, `DUPLICATE_SUPPRESSED WINDOW`, … in order. */
export function decisionsOf(entries: readonly StoredEntry[]): string[] {
  return entries.map(
    ({ outcome, tier, late }) => `${outcome}${tier === 'NONE' ? '' : ` ${tier}`}${late ? ' late' : ''}`,
  );
}

/** How often each decision was made. */
export function countDecisions(entries: readonly StoredEntry[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const decision of decisionsOf(entries)) counts[decision] = (counts[decision] ?? 0) + 1;
  return counts;
}

/** `from`, …, `to`. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
