import { Arg, Ctx, FieldResolver, Mutation, Resolver, Root } from 'type-graphql';
import type { DedupPolicy } from '../../contract/types';
import { countClaims, recordRefusal, updatePolicy } from '../../ledger/policy';
import type { PolicyChange, PolicyRefusal, PositionSpan } from '../../ledger/policy';
import type { ApiContext } from '../context';
import { ApiError } from '../errors';
import type { FeedRecord, PolicyRecord } from '../model/records';
import { timeOf } from '../model/time';
import { BigIntScalar } from '../scalars';
import { Feed, PolicyVersion } from '../types/feed';
import { DedupPolicyInput, UpdateDedupPolicyInput, UpdateDedupPolicyPayload } from '../types/policy';
import { requirePermission } from '../viewer';
import { findFeed } from './decision';

/** `UpdateDedupPolicyPayload`, as far as it is read at once. */
interface PolicyUpdated {
  readonly feed: FeedRecord;
  readonly policy: PolicyRecord;
  readonly previous: PolicyRecord;
  readonly leaving: PositionSpan;
}

@Resolver(() => UpdateDedupPolicyPayload)
export class PolicyResolver {
  @Mutation(() => UpdateDedupPolicyPayload, {
    description:
      'Makes the next version of the dedup policy of a feed. In force for the next batch of every instance. Needs the ' +
      'role policy-admin or admin. Every attempt is in `adminLog`.',
  })
  async updateDedupPolicy(
    @Arg('input', () => UpdateDedupPolicyInput, { description: 'What to change, and why.' })
    input: UpdateDedupPolicyInput,
    @Ctx() context: ApiContext,
  ): Promise<PolicyUpdated> {
    const { services, viewer, loaders } = context;
    const { feed: name, expectedVersion, reason, policy } = input;
    const change: PolicyChange = {
      feed: name,
      expectedVersion,
      reason,
      changes: changesOf(policy),
      actor: viewer.name,
    };
    await requireRight(context, change);
    const update = await updatePolicy(services.prisma, change);
    if (update.result === 'refused') throw await refusalOf(update, context);
    const { feedId, version, leaving } = update;
    const feed = await findFeed(context, name);
    const [made, previous] = await Promise.all([
      loaders.policies.load({ feedId, version }),
      loaders.policies.load({ feedId, version: version - 1 }),
    ]);
    if (feed === null || made === null || previous === null)
      throw new Error(`policy ${version} of ${name} is not there`);
    return { feed, policy: made, previous, leaving };
  }

  @FieldResolver(() => BigIntScalar, {
    description:
      'Keys that the window of before remembered and the new one does not; 0 unless it shrank. The ledger still knows ' +
      'them: their replays are suppressed as before, with the tier LEDGER.',
  })
  keysLeaving(@Root() { leaving }: PolicyUpdated, @Ctx() { services }: ApiContext): Promise<bigint> | bigint {
    return leaving.from === leaving.to ? 0n : countClaims(services.prisma, leaving);
  }
}

@Resolver(() => PolicyVersion)
export class PolicyVersionResolver {
  @FieldResolver(() => Feed, { description: 'The feed that it is a policy of.' })
  async feed(@Root() { feedId }: PolicyRecord, @Ctx() { loaders }: ApiContext): Promise<FeedRecord> {
    const feed = (await loaders.feeds()).get(feedId);
    if (feed === undefined) throw new Error(`feed ${feedId} is not there for the reader of its policy`);
    return feed;
  }
}

/** Absent and null mean the same, but for the one field that null is a value of. */
export function changesOf(input: DedupPolicyInput): Partial<DedupPolicy> {
  const { windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump } = input;
  return {
    ...(windowSeconds === null || windowSeconds === undefined ? {} : { windowSeconds }),
    ...(maxEntries === null || maxEntries === undefined ? {} : { maxEntries }),
    ...(ordering === null || ordering === undefined ? {} : { ordering }),
    ...(contiguous === null || contiguous === undefined ? {} : { contiguous }),
    ...(maxSequenceJump === undefined ? {} : { maxSequenceJump }),
  };
}

async function requireRight({ services, viewer }: ApiContext, change: PolicyChange): Promise<void> {
  try {
    requirePermission(viewer, 'changePolicy');
  } catch (error) {
    if (error instanceof ApiError) await recordRefusal(services.prisma, change, error.code, error.message);
    throw error;
  }
}

async function refusalOf({ code, message, current }: PolicyRefusal, { loaders }: ApiContext): Promise<ApiError> {
  if (code !== 'VERSION_CONFLICT' || current === null) return new ApiError(code, message);
  const policy = await loaders.policies.load(current);
  if (policy === null) throw new Error(`policy ${current.version} of feed ${current.feedId} is not there`);
  return new ApiError(code, message, { currentVersion: current.version, currentPolicy: plainPolicy(policy) });
}

/** As the fields of `PolicyVersion` are answered. */
function plainPolicy(policy: PolicyRecord): object {
  const { version, windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump, origin, actor, reason } = policy;
  return {
    ...{ version, windowSeconds, maxEntries, ordering: ordering.toUpperCase(), contiguous, maxSequenceJump },
    ...{ origin, actor, reason, firstPosition: policy.firstPosition.toString(), recordedAt: timeOf(policy.recordedAt) },
  };
}
