/** What another policy would have made of what came since a time (design section 8, `policyPreview`). */
import type { PrismaClient } from '../../generated/prisma/client';
import type { DedupPolicy, EpochOrder, FeedContract } from '../../contract/types';
import { differencesOf, redecide } from '../../dedup/redecide';
import type { RecordedEntry, Redecision, Sources } from '../../dedup/redecide';
import type { EpochHead } from '../../dedup/state';
import { sourceKey } from '../../dedup/state';
import type { FeedRecord } from '../model/records';
import { claimsSince, decidedByPolicy, headsBefore, replayCounts, replaySamples } from '../statements/preview';
import type { Since } from '../statements/preview';

/** Entries decided again: a bound on memory and time. The latest ones, where there are more. */
export const MAX_REDECIDED = 20_000n;
export const MAX_SAMPLES = 10;
/** Of the Redis window, measured, for 32-byte keys; the in-process one needs no more. */
export const BYTES_PER_KEY = 154;
const MICROS_PER_SECOND = 1_000_000;

export interface TierCounts {
  readonly window: bigint;
  readonly ledger: bigint;
}

export interface Difference {
  readonly position: bigint;
  readonly was: Redecision;
  readonly becomes: Redecision;
}

interface EntryRow extends Omit<RecordedEntry, 'recordedAtMicros'> {
  readonly recordedAt: string;
}

interface HeadRow {
  readonly keyVersion: number;
  readonly agency: string;
  readonly sourceId: string;
  readonly epoch: string;
  readonly mark: string | null;
  readonly rank: string;
}

/** Replays since a position, by the tier that each would have under two policies; with the latest of each under the second. */
export async function previewTiers(prisma: PrismaClient, since: Since, inForce: DedupPolicy, previewed: DedupPolicy) {
  const [counts] = await prisma.$queryRaw<{ replays: string; inForce: string; previewed: string }[]>(
    replayCounts(since, inForce, previewed),
  );
  const replays = BigInt(counts?.replays ?? 0);
  const tiers = (caught: bigint): TierCounts => ({ window: caught, ledger: replays - caught });
  const samples = async (caught: boolean): Promise<bigint[]> => {
    const rows = await prisma.$queryRaw<{ position: string }[]>(replaySamples(since, previewed, caught, MAX_SAMPLES));
    return rows.map(({ position }) => BigInt(position));
  };
  return {
    replays,
    inForce: tiers(BigInt(counts?.inForce ?? 0)),
    previewed: tiers(BigInt(counts?.previewed ?? 0)),
    samples: { window: await samples(true), ledger: await samples(false) },
  };
}

export function nowMicros(): bigint {
  return BigInt(Date.now()) * 1000n;
}

/** Microseconds that rates since a time are taken over: before its first contract a feed had none. */
export function spanSince({ createdAt }: FeedRecord, since: bigint): bigint {
  return nowMicros() - (since > createdAt ? since : createdAt);
}

/** Keys that a window holds at the average rate since a time, rounded up. */
export async function expectedKeys(
  prisma: PrismaClient,
  since: Since,
  spanMicros: bigint,
): Promise<(policy: DedupPolicy) => number> {
  const [row] = await prisma.$queryRaw<{ claims: string }[]>(claimsSince(since));
  const perSecond = (Number(row?.claims ?? 0) * MICROS_PER_SECOND) / Math.max(Number(spanMicros), MICROS_PER_SECOND);
  return ({ windowSeconds, maxEntries }) => Math.min(maxEntries, Math.ceil(perSecond * windowSeconds));
}

/** Whether a change can make a decision come out otherwise; size and seconds change the tier alone. */
export function changesDecisions(one: DedupPolicy, other: DedupPolicy): boolean {
  return one.ordering !== other.ordering || one.maxSequenceJump !== other.maxSequenceJump;
}

/** Where deciding again starts. */
export function redecidedFrom({ size }: FeedRecord, from: bigint): bigint {
  return size - from > MAX_REDECIDED ? size - MAX_REDECIDED : from;
}

/** What the decision function says otherwise under the second policy. Empty where both say the same of every decision. */
export async function previewDecisions(
  prisma: PrismaClient,
  since: Since,
  contract: FeedContract,
  inForce: DedupPolicy,
  previewed: DedupPolicy,
): Promise<Difference[]> {
  const { identity } = contract;
  const epochOrder = identity.mode === 'sequence' && identity.epoch !== null ? identity.epoch.order : 'opaque';
  const { start, entries } = await readRecorded(prisma, since, epochOrder);
  const under = (policy: DedupPolicy) => redecide(start, entries, policy, epochOrder);
  return differencesOf(under(inForce), under(previewed)).map(({ was, becomes }) => ({
    position: BigInt(was.position),
    was,
    becomes,
  }));
}

/** What was decided since a position, and the heads of its sources at that moment. */
export async function readRecorded(
  prisma: PrismaClient,
  since: Since,
  epochOrder: EpochOrder,
): Promise<{ readonly start: Sources; readonly entries: RecordedEntry[] }> {
  const rows = await prisma.$queryRaw<EntryRow[]>(decidedByPolicy(since));
  const heads = since.from === 0n ? [] : await prisma.$queryRaw<HeadRow[]>(headsBefore(since));
  const start = new Map<string, Map<string, EpochHead>>();
  for (const { keyVersion, agency, sourceId, epoch, mark, rank } of heads) {
    const name = sourceKey(keyVersion, agency, sourceId);
    const numeric = epochOrder === 'numeric' && epoch !== '';
    const highest = mark === null ? null : BigInt(mark);
    const epochs = start.get(name) ?? new Map<string, EpochHead>();
    start.set(name, epochs.set(epoch, { rank: BigInt(numeric ? epoch : rank), mark: highest, highest }));
  }
  const entries = rows.map(({ recordedAt, ...row }) => ({ ...row, recordedAtMicros: Number(recordedAt) }));
  return { start, entries };
}
