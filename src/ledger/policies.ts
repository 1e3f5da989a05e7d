/** The policies of a feed that activations and plans compare with (design section 7, "Policy"). Reads only. */
import type { DedupPolicy } from '../contract/types';
import type { Prisma, PrismaClient } from '../generated/prisma/client';

/** The policy in force, and the last one that came from a file. */
export interface Policies {
  readonly policy: DedupPolicy;
  readonly filePolicy: DedupPolicy;
}

/** @throws Error when the feed has no such policy */
export async function readPolicies(
  prisma: PrismaClient | Prisma.TransactionClient,
  feedId: number,
  policyVersion: number,
): Promise<Policies> {
  const policy = await prisma.policyVersion.findUniqueOrThrow({
    where: { feedId_version: { feedId, version: policyVersion } },
  });
  const fromFile = await prisma.policyVersion.findFirst({
    where: { feedId, origin: 'CONTRACT' },
    orderBy: { version: 'desc' },
  });
  return { policy: policyOf(policy), filePolicy: policyOf(fromFile ?? policy) };
}

interface PolicyRow extends Omit<DedupPolicy, 'ordering' | 'maxSequenceJump'> {
  readonly ordering: string;
  readonly maxSequenceJump: { toFixed(): string } | null;
}

function policyOf({ windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump }: PolicyRow): DedupPolicy {
  return {
    windowSeconds,
    maxEntries,
    ordering: ordering === 'strict' ? 'strict' : 'tolerant',
    contiguous,
    maxSequenceJump: maxSequenceJump?.toFixed() ?? null,
  };
}
