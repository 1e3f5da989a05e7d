import { Arg, Ctx, FieldResolver, ID, Query, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import type { BalanceRecord, ContractRecord, FeedRecord, PolicyRecord } from '../model/records';
import { Balance, Feed, FeedContract, LedgerHead, PolicyVersion, WindowFacts } from '../types/feed';
import { findFeed } from './decision';
import type { FeedWindow } from './window';

@Resolver(() => Feed)
export class FeedResolver {
  @Query(() => Feed, { nullable: true, description: 'The feed of that name; null where there is none.' })
  feed(
    @Arg('name', () => ID, { description: 'Its name.' }) name: string,
    @Ctx() context: ApiContext,
  ): Promise<FeedRecord | null> {
    return findFeed(context, name);
  }

  @Query(() => [Feed], { description: 'All feeds, by name; retired ones too, for they keep their ledgers.' })
  async feeds(@Ctx() { loaders }: ApiContext): Promise<FeedRecord[]> {
    return [...(await loaders.feeds()).values()];
  }

  @FieldResolver(() => FeedContract, { description: 'The contract in force.' })
  async contract(@Root() feed: FeedRecord, @Ctx() context: ApiContext): Promise<ContractRecord> {
    return contractInForce(feed, context);
  }

  @FieldResolver(() => String, {
    nullable: true,
    description:
      'What is wrong with its contract file, with line and column, while the contract of before stays in force. Null: ' +
      'nothing, or this service does not watch its files.',
  })
  contractError(@Root() feed: FeedRecord, @Ctx() { services }: ApiContext): string | null {
    return services.contractErrorOf(feed.name);
  }

  @FieldResolver(() => PolicyVersion, { description: 'The dedup policy in force.' })
  async policy(@Root() feed: FeedRecord, @Ctx() context: ApiContext): Promise<PolicyRecord> {
    return policyInForce(feed, context);
  }

  @FieldResolver(() => [PolicyVersion], { description: 'All versions of the dedup policy, latest first.' })
  policyHistory(@Root() feed: FeedRecord, @Ctx() { loaders }: ApiContext): Promise<readonly PolicyRecord[]> {
    return loaders.policyHistories.load(feed.id);
  }

  @FieldResolver(() => WindowFacts, { description: 'How the window is sized, and whether that is enough.' })
  async window(@Root() feed: FeedRecord, @Ctx() context: ApiContext): Promise<FeedWindow> {
    const { loaders, services } = context;
    const [policy, contract, start] = await Promise.all([
      policyInForce(feed, context),
      contractInForce(feed, context),
      loaders.windowStarts.load(feed.id),
    ]);
    const delivery = services.contracts.read(contract)?.delivery;
    // Entries may have come since the head was read; what was read first is the smaller number.
    const recent = start === null || start > feed.size ? 0n : feed.size - start;
    return {
      feed: feed.name,
      windowSeconds: policy.windowSeconds,
      maxEntries: policy.maxEntries,
      replayHorizonSeconds:
        delivery === undefined ? null : delivery.sessionExpirySeconds + delivery.maxReplayDelaySeconds,
      entriesInSeconds: recent,
      boundByEntries: recent > BigInt(policy.maxEntries),
    };
  }

  @FieldResolver(() => Balance, {
    nullable: true,
    description: 'The two counts that must be equal. Null for readers of some agencies: it counts the others too.',
  })
  async balance(@Root() feed: FeedRecord, @Ctx() { loaders, viewer }: ApiContext): Promise<Balance | null> {
    return viewer.agencies === null ? balanceOf(await loaders.balances.load(feed.id)) : null;
  }

  @FieldResolver(() => LedgerHead, { description: 'The head of its ledger.' })
  ledger(@Root() { term, size, recordedAt }: FeedRecord): LedgerHead {
    return { term, size, recordedAt };
  }
}

function balanceOf(record: BalanceRecord | null): Balance | null {
  if (record === null) return null;
  const { received, entries, appliedKeys, applied, released } = record;
  const balanced = received === entries && appliedKeys === applied + released;
  return { received, entries, appliedKeys, applied, released, balanced };
}

export async function contractInForce(feed: FeedRecord, { loaders }: ApiContext): Promise<ContractRecord> {
  const record = await loaders.contracts.load({ feedId: feed.id, version: feed.contractVersion });
  if (record === null) throw new Error(`feed ${feed.name} has no contract ${feed.contractVersion}`);
  return record;
}

export async function policyInForce(feed: FeedRecord, { loaders }: ApiContext): Promise<PolicyRecord> {
  const record = await loaders.policies.load({ feedId: feed.id, version: feed.policyVersion });
  if (record === null) throw new Error(`feed ${feed.name} has no policy ${feed.policyVersion}`);
  return record;
}
