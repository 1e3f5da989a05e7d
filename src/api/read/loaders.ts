/**
 * Look-ups of one operation, collected: fields of many objects at once become one statement each, so that no list costs
 * a query an entry. Made anew for every operation and every event of a subscription: nothing is remembered longer.
 */
import DataLoader from 'dataloader';
import type { PrismaClient } from '../../generated/prisma/client';
import type {
  BalanceRecord,
  ContractRecord,
  DecisionRecord,
  EpochRecord,
  FeedRecord,
  OutcomeGroup,
  PolicyRecord,
  SourceRecord,
} from '../model/records';
import { entriesAt, resolutionsOf } from '../statements/entries';
import type { EntryAddress } from '../statements/entries';
import { sourceEpochs, sourceGroups } from '../statements/facts';
import {
  balances,
  contracts,
  contractsByDigest,
  feedHeads,
  policies,
  policyHistories,
  windowStarts,
} from '../statements/feeds';
import type { DigestAddress, VersionAddress } from '../statements/feeds';
import type { Viewer } from '../viewer';
import { bigintOrNull, contractRecord, decisionRecord, feedRecord, outcomeGroup, policyRecord } from './rows';
import type { ContractRow, EntryRow, GroupRow, HeadRow, PolicyRow } from './rows';

type Sql = ReturnType<typeof balances>;

export interface EntryKey {
  readonly feed: FeedRecord;
  readonly position: bigint;
}

export interface Loaders {
  readonly entries: DataLoader<EntryKey, DecisionRecord | null, string>;
  /** By the held entry that is resolved. */
  readonly resolutions: DataLoader<EntryKey, DecisionRecord | null, string>;
  readonly contracts: DataLoader<VersionAddress, ContractRecord | null, string>;
  readonly contractsByDigest: DataLoader<DigestAddress, ContractRecord | null, string>;
  readonly policies: DataLoader<VersionAddress, PolicyRecord | null, string>;
  /** By feed id; latest first. */
  readonly policyHistories: DataLoader<number, readonly PolicyRecord[]>;
  readonly balances: DataLoader<number, BalanceRecord | null>;
  /** By feed id: the first position within the policy's seconds, or null where nothing is that recent. */
  readonly windowStarts: DataLoader<number, bigint | null>;
  readonly sourceGroups: DataLoader<SourceRecord, readonly OutcomeGroup[], string>;
  readonly sourceEpochs: DataLoader<SourceRecord, readonly EpochRecord[], string>;
  /** Every feed that the viewer may see, by id; read once. */
  readonly feeds: () => Promise<ReadonlyMap<number, FeedRecord>>;
}

export function createLoaders(prisma: PrismaClient, viewer: Viewer): Loaders {
  const rowsOf = <T>(statement: Sql): Promise<T[]> => prisma.$queryRaw<T[]>(statement);
  let feeds: Promise<ReadonlyMap<number, FeedRecord>> | null = null;
  return {
    entries: byEntry(
      async (keys) => rowsOf<EntryRow>(entriesAt(viewer, keys)),
      (row) => row.position,
    ),
    resolutions: byEntry(
      async (keys) => rowsOf<EntryRow>(resolutionsOf(viewer, keys)),
      (row) => row.resolvesPosition ?? '',
    ),
    contracts: one(
      (key: VersionAddress) => `${key.feedId}/${key.version}`,
      async (keys) => (await rowsOf<ContractRow>(contracts(keys))).map(contractRecord),
    ),
    contractsByDigest: one(
      (key: DigestAddress) => `${key.feedId}/${key.digest}`,
      async (keys) => (await rowsOf<ContractRow>(contractsByDigest(keys))).map(contractRecord),
    ),
    policies: one(
      (key: VersionAddress) => `${key.feedId}/${key.version}`,
      async (keys) => (await rowsOf<PolicyRow>(policies(keys))).map(policyRecord),
    ),
    policyHistories: new DataLoader(async (feedIds) => {
      const records = (await rowsOf<PolicyRow>(policyHistories(feedIds))).map(policyRecord);
      const grouped = groupBy(records, (record) => record.feedId);
      return feedIds.map((id) => grouped.get(id) ?? []);
    }),
    balances: new DataLoader(async (feedIds) => {
      const found = new Map(
        (await rowsOf<BalanceRow>(balances(feedIds))).map((row) => [row.feedId, balanceRecord(row)]),
      );
      return feedIds.map((id) => found.get(id) ?? null);
    }),
    windowStarts: new DataLoader(async (feedIds) => {
      const rows = await rowsOf<{ feedId: number; firstPosition: string | null }>(windowStarts(feedIds));
      const found = new Map(rows.map((row) => [row.feedId, bigintOrNull(row.firstPosition)]));
      return feedIds.map((id) => found.get(id) ?? null);
    }),
    sourceGroups: bySource(async (keys) => (await rowsOf<GroupRow>(sourceGroups(keys))).map(outcomeGroup)),
    sourceEpochs: bySource((keys) => rowsOf<EpochRow>(sourceEpochs(keys))),
    feeds: () => (feeds ??= readFeeds(prisma, viewer)),
  };
}

async function readFeeds(prisma: PrismaClient, viewer: Viewer): Promise<ReadonlyMap<number, FeedRecord>> {
  const rows = await prisma.$queryRaw<HeadRow[]>(feedHeads(viewer, {}));
  return new Map(rows.map((row) => [row.id, feedRecord(row)]));
}

function byEntry(
  read: (keys: readonly EntryAddress[]) => Promise<EntryRow[]>,
  positionOf: (row: EntryRow) => string,
): DataLoader<EntryKey, DecisionRecord | null, string> {
  const nameOf = (key: EntryKey) => `${key.feed.id}/${key.position}`;
  return new DataLoader(
    async (keys) => {
      const rows = await read(keys.map(({ feed, position }) => ({ feedId: feed.id, position })));
      const found = new Map(rows.map((row) => [`${row.feedId}/${positionOf(row)}`, row]));
      return keys.map((key) => {
        const row = found.get(nameOf(key));
        return row === undefined ? null : decisionRecord(row, key.feed);
      });
    },
    { cacheKeyFn: nameOf },
  );
}

/** For rows that name themselves as the keys do. */
function one<K, R extends K>(nameOf: (key: K) => string, read: (keys: readonly K[]) => Promise<R[]>) {
  return new DataLoader<K, R | null, string>(
    async (keys) => {
      const found = new Map((await read(keys)).map((row) => [nameOf(row), row]));
      return keys.map((key) => found.get(nameOf(key)) ?? null);
    },
    { cacheKeyFn: nameOf },
  );
}

interface OfSource {
  readonly feedId: number;
  readonly agency: string | null;
  readonly sourceId: string | null;
}

function bySource<R extends OfSource>(
  read: (keys: readonly { feedId: number; agency: string; sourceId: string }[]) => Promise<R[]>,
): DataLoader<SourceRecord, readonly R[], string> {
  const nameOf = (of: OfSource) => JSON.stringify([of.feedId, of.agency, of.sourceId]);
  const addressOf = ({ feed, agency, sourceId }: SourceRecord) => ({ feedId: feed.id, agency, sourceId });
  return new DataLoader(
    async (keys) => {
      const grouped = groupBy(await read(keys.map(addressOf)), nameOf);
      return keys.map((key) => grouped.get(nameOf(addressOf(key))) ?? []);
    },
    { cacheKeyFn: (key) => nameOf(addressOf(key)) },
  );
}

function groupBy<K, T>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

type EpochRow = EpochRecord & { readonly feedId: number; readonly agency: string; readonly sourceId: string };

interface BalanceRow {
  readonly feedId: number;
  readonly received: string;
  readonly allEntries: string;
  readonly notApplied: string;
  readonly released: string;
  readonly dismissed: string;
  readonly appliedKeys: string;
}

function balanceRecord(row: BalanceRow): BalanceRecord {
  const all = BigInt(row.allEntries);
  const released = BigInt(row.released);
  return {
    feedId: row.feedId,
    received: BigInt(row.received),
    entries: all - released - BigInt(row.dismissed),
    appliedKeys: BigInt(row.appliedKeys),
    applied: all - BigInt(row.notApplied),
    released,
  };
}
