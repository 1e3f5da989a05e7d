/** What is in force for every feed, to compare files with (design section 7). Reads only. */
import type { InForce } from '../contract/plan';
import type { FeedContract } from '../contract/types';
import type { PrismaClient } from '../generated/prisma/client';
import { contractsInForce } from './feeds';
import type { StoredContract } from './feeds';
import { readPolicies } from './policies';

export interface FeedInForce extends InForce {
  readonly feedId: number;
  readonly feed: string;
  /** Entries in the ledger. */
  readonly size: bigint;
  readonly sourceText: string;
}

/** By the name of the feed; none where the database has no tables yet. @param parse reads a stored contract */
export async function readInForce(
  prisma: PrismaClient,
  parse: (stored: StoredContract) => FeedContract,
): Promise<FeedInForce[]> {
  const [row] = await prisma.$queryRaw<{ migrated: boolean }[]>`
    SELECT to_regclass('feed_head') IS NOT NULL AS migrated`;
  if (row?.migrated !== true) return [];
  const feeds: FeedInForce[] = [];
  // One after another: an embedded database has one connection, and there are few feeds.
  for (const stored of await contractsInForce(prisma)) feeds.push(await readFeed(prisma, stored, parse(stored)));
  return feeds;
}

async function readFeed(prisma: PrismaClient, stored: StoredContract, contract: FeedContract): Promise<FeedInForce> {
  const { feedId, feed, digest, file, sourceText } = stored;
  const { size, policyVersion } = await prisma.feedHead.findUniqueOrThrow({ where: { feedId } });
  const contracts = await prisma.feedContract.findMany({ where: { feedId }, select: { digest: true } });
  const history = new Set(contracts.map((known) => Buffer.from(known.digest).toString('hex')));
  return {
    feedId,
    feed,
    digest,
    file,
    sourceText,
    contract,
    size,
    history,
    ...(await readPolicies(prisma, feedId, policyVersion)),
  };
}

export interface DigestInForce {
  readonly feedId: number;
  readonly feed: string;
  readonly digest: string;
}

/** `contractsInForce` without the texts: to see whether anything changed. */
export async function digestsInForce(prisma: PrismaClient): Promise<DigestInForce[]> {
  return prisma.$queryRaw<DigestInForce[]>`
    SELECT f.id AS "feedId", f.name AS feed, encode(c.digest, 'hex') AS digest
    FROM feed f
    JOIN feed_head h ON h.feed_id = f.id
    JOIN feed_contract c ON c.feed_id = f.id AND c.version = h.contract_version
    WHERE f.retired_at IS NULL
    ORDER BY f.name`;
}
