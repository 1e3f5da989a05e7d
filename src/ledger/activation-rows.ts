/** What is written when a contract comes into force, under the lock of the feed's head (feeds.ts). */
import type { Prisma } from '../generated/prisma/client';
import type { LoadedContract } from '../contract/types';

type Transaction = Prisma.TransactionClient;

/** Who changes it, and from which commit, where known. */
interface Author {
  readonly actor: string;
  readonly commit: string | null;
}

export async function insertContract(
  tx: Transaction,
  feedId: number,
  version: number,
  firstPosition: bigint,
  { digest, file, sourceText }: LoadedContract,
  { actor, commit }: Author,
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO feed_contract (feed_id, version, digest, file, source_text, commit, first_position, actor, recorded_at)
    VALUES (${feedId}, ${version}, decode(${digest}, 'hex'), ${file}, ${sourceText}, ${commit}, ${firstPosition},
            ${actor}, clock_timestamp())`;
}

export async function insertPolicy(
  tx: Transaction,
  feedId: number,
  version: number,
  firstPosition: bigint,
  { contract, digest }: LoadedContract,
  { actor, commit }: Author,
  reason: string,
): Promise<void> {
  const { windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump } = contract.dedup;
  await tx.$executeRaw`
    INSERT INTO policy_version (feed_id, version, first_position, window_seconds, max_entries, ordering, contiguous,
                                max_sequence_jump, origin, contract_digest, commit, actor, reason, recorded_at)
    VALUES (${feedId}, ${version}, ${firstPosition}, ${windowSeconds}, ${maxEntries}, ${ordering}, ${contiguous},
            ${maxSequenceJump}::numeric, 'CONTRACT', decode(${digest}, 'hex'), ${commit}, ${actor}, ${reason},
            clock_timestamp())`;
}

export async function recordActivation(
  tx: Transaction,
  feedId: number,
  version: number,
  { digest, file }: LoadedContract,
  { actor, commit }: Author,
): Promise<void> {
  const detail = JSON.stringify({ version, digest, file, commit });
  await tx.$queryRaw`SELECT append_admin_event('CONTRACT_ACTIVATED', ${feedId}, ${actor}, ${detail})`;
}
