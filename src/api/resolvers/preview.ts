import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from 'type-graphql';
import { policyFaults, policyRefusal } from '../../contract/check-policy';
import type { DedupPolicy, FeedContract } from '../../contract/types';
import type { ApiContext } from '../context';
import { badInput } from '../errors';
import { readFilter } from '../model/filter';
import type { ContractRecord, DecisionRecord, FeedRecord } from '../model/records';
import { changesDecisions, expectedKeys, previewDecisions, previewTiers, redecidedFrom } from '../read/preview';
import { BYTES_PER_KEY, MAX_SAMPLES, nowMicros, spanSince } from '../read/preview';
import type { Difference, TierCounts } from '../read/preview';
import { feedsInScope } from '../read/walk';
import { DateTimeScalar } from '../scalars';
import { Decision } from '../types/decision';
import { Feed } from '../types/feed';
import { DedupPolicyInput, PolicyPreview, PreviewDifference } from '../types/policy';
import type { PreviewedDecision, PreviewedPolicy } from '../types/policy';
import { requirePermission } from '../viewer';
import { contractInForce, policyInForce } from './feed';
import { changesOf } from './policy';

const DAY_MICROS = 86_400_000_000n;

/** `PolicyPreview`, with what its fields are read from. */
interface Preview extends PolicyPreview {
  readonly feed: FeedRecord;
  readonly samples: { readonly window: readonly bigint[]; readonly ledger: readonly bigint[] };
  readonly found: readonly Difference[];
}

interface FoundDifference extends PreviewDifference {
  readonly feed: FeedRecord;
  readonly position: bigint;
}

@Resolver(() => PolicyPreview)
export class PreviewResolver {
  @Query(() => PolicyPreview, {
    description: 'What a change of the dedup policy would have done. Needs the role policy-admin or admin.',
  })
  async policyPreview(
    @Arg('feed', () => ID, { description: 'Name of the feed. Unknown: NOT_FOUND.' }) name: string,
    @Arg('policy', () => DedupPolicyInput, { description: 'The change, as `updateDedupPolicy` takes it.' })
    input: DedupPolicyInput,
    @Arg('since', () => DateTimeScalar, { nullable: true, description: 'From when; left out: the last 24 hours.' })
    asked: bigint | null,
    @Ctx() context: ApiContext,
  ): Promise<Preview> {
    const { services, viewer } = context;
    const { prisma } = services;
    requirePermission(viewer, 'changePolicy');
    const since = asked ?? nowMicros() - DAY_MICROS;
    const [scope] = await feedsInScope(prisma, viewer, readFilter({ feed: name, from: since }));
    if (scope === undefined) throw new Error(`feed ${name} was found and is not there`);
    const { feed, from } = scope;
    const [inForce, record] = await Promise.all([policyInForce(feed, context), contractInForce(feed, context)]);
    const contract = services.contracts.read(record);
    if (contract === null) throw new Error(`the contract in force for feed ${name} cannot be read`);
    const previewed: DedupPolicy = { ...settingsOf(inForce), ...changesOf(input) };

    if (previewed.maxSequenceJump !== null && !/^\d{1,38}$/.test(previewed.maxSequenceJump)) {
      throw badInput('policy.maxSequenceJump must be a whole number of up to 38 digits');
    }

    const span = { feedId: feed.id, from };
    const tiers = await previewTiers(prisma, span, inForce, previewed);
    const keysOf = await expectedKeys(prisma, span, spanSince(feed, since));
    const decidedAgainFrom = redecidedFrom(feed, from);
    const found = changesDecisions(inForce, previewed)
      ? await previewDecisions(prisma, { ...span, from: decidedAgainFrom }, contract, inForce, previewed)
      : [];
    return {
      ...{ feed, since, problems: problemsOf(previewed, contract, record), replays: tiers.replays },
      inForce: summaryOf(tiers.inForce, keysOf(inForce)),
      previewed: summaryOf(tiers.previewed, keysOf(previewed)),
      ...{ samples: tiers.samples, decidedAgainFrom, found, differenceCount: found.length },
    };
  }

  @FieldResolver(() => Feed, { description: 'The feed.' })
  feed(@Root() { feed }: Preview): FeedRecord {
    return feed;
  }

  @FieldResolver(() => [Decision], {
    description: `The latest replays within the previewed window, up to ${MAX_SAMPLES}.`,
  })
  windowSamples(@Root() { feed, samples }: Preview, @Ctx() context: ApiContext): Promise<DecisionRecord[]> {
    return decisionsAt(context, feed, samples.window);
  }

  @FieldResolver(() => [Decision], {
    description: `The latest replays beyond the previewed window, up to ${MAX_SAMPLES}.`,
  })
  ledgerSamples(@Root() { feed, samples }: Preview, @Ctx() context: ApiContext): Promise<DecisionRecord[]> {
    return decisionsAt(context, feed, samples.ledger);
  }

  @FieldResolver(() => [PreviewDifference], {
    description: `The first of what would be decided otherwise, up to ${MAX_SAMPLES}.`,
  })
  differences(@Root() { feed, found }: Preview): FoundDifference[] {
    return found.slice(0, MAX_SAMPLES).map(({ position, was, becomes }) => ({
      ...{ feed, position, inForce: plain(was), previewed: plain(becomes) },
    }));
  }
}

@Resolver(() => PreviewDifference)
export class PreviewDifferenceResolver {
  @FieldResolver(() => Decision, { description: 'The decision as it was recorded.' })
  async decision(@Root() { feed, position }: FoundDifference, @Ctx() context: ApiContext): Promise<DecisionRecord> {
    const [decision] = await decisionsAt(context, feed, [position]);
    if (decision === undefined) throw new Error(`feed ${feed.name} has no entry ${position}`);
    return decision;
  }
}

function settingsOf({ windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump }: DedupPolicy): DedupPolicy {
  return { windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump };
}

function problemsOf(policy: DedupPolicy, contract: FeedContract, { file }: ContractRecord): string[] {
  const managed = policyRefusal(contract, file);
  return [...(managed === null ? [] : [managed]), ...policyFaults(policy, contract)];
}

function summaryOf({ window, ledger }: TierCounts, keys: number): PreviewedPolicy {
  return {
    caughtByWindow: window,
    caughtByLedger: ledger,
    expectedKeys: keys,
    expectedBytes: BigInt(keys) * BigInt(BYTES_PER_KEY),
  };
}

/** Of what is applied the reason is about effects, which are not computed again. */
function plain({ outcome, late, reason }: Difference['was']): PreviewedDecision {
  return { outcome, late, reason: outcome === 'APPLIED' ? null : reason };
}

async function decisionsAt(
  { loaders }: ApiContext,
  feed: FeedRecord,
  positions: readonly bigint[],
): Promise<DecisionRecord[]> {
  const found = await Promise.all(positions.map((position) => loaders.entries.load({ feed, position })));
  return found.filter((decision) => decision !== null);
}
