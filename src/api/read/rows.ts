/** Rows as the statements give them, and what becomes of them. Text columns here are bigint or microseconds there. */
import type { DecisionRecord, FeedRecord, OutcomeGroup, PolicyRecord, ContractRecord } from '../model/records';

/** A record whose bigint members are still text. */
type Raw<T> = {
  readonly [K in keyof T]: T[K] extends bigint ? string : T[K] extends bigint | null ? string | null : T[K];
};

export interface HeadRow extends Raw<FeedRecord> {
  readonly fromPosition: string | null;
  readonly toPosition: string | null;
}

export interface EntryRow extends Omit<Raw<DecisionRecord>, 'feed' | 'eventId'> {
  readonly feedId: number;
  readonly eventId: string | null;
}

export function feedRecord(row: Raw<FeedRecord>): FeedRecord {
  return {
    id: row.id,
    name: row.name,
    createdAt: BigInt(row.createdAt),
    retiredAt: bigintOrNull(row.retiredAt),
    term: row.term,
    size: BigInt(row.size),
    recordedAt: BigInt(row.recordedAt),
    contractVersion: row.contractVersion,
    policyVersion: row.policyVersion,
  };
}

export function decisionRecord(row: EntryRow, feed: FeedRecord): DecisionRecord {
  const { feedId, ...rest } = row;
  if (feedId !== feed.id) throw new Error(`an entry of feed ${feedId} was taken for one of feed ${feed.id}`);
  return {
    ...rest,
    feed,
    position: BigInt(row.position),
    eventId: row.eventId === null ? null : (JSON.parse(row.eventId) as string[]),
    originalPosition: bigintOrNull(row.originalPosition),
    resolvesPosition: bigintOrNull(row.resolvesPosition),
    recordedAt: BigInt(row.recordedAt),
    occurredAt: bigintOrNull(row.occurredAt),
  };
}

export function contractRecord(row: Raw<ContractRecord>): ContractRecord {
  return { ...row, firstPosition: BigInt(row.firstPosition), recordedAt: BigInt(row.recordedAt) };
}

export function policyRecord(row: Raw<PolicyRecord>): PolicyRecord {
  return { ...row, firstPosition: BigInt(row.firstPosition), recordedAt: BigInt(row.recordedAt) };
}

export function outcomeGroup(row: Raw<OutcomeGroup>): OutcomeGroup {
  return {
    ...row,
    count: BigInt(row.count),
    firstPosition: BigInt(row.firstPosition),
    lastPosition: BigInt(row.lastPosition),
  };
}

export function bigintOrNull(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

export type ContractRow = Raw<ContractRecord>;
export type PolicyRow = Raw<PolicyRecord>;
export type GroupRow = Raw<OutcomeGroup>;
