import { Arg, Args, Ctx, FieldResolver, Float, ID, Query, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import { ApiError, badInput } from '../errors';
import { readFilter, readText } from '../model/filter';
import type { EntryFilter } from '../model/filter';
import { readPage } from '../model/page';
import type { Page, PageInput } from '../model/page';
import type { DecisionRecord, FeedRecord } from '../model/records';
import { jsonOfPayload, textOfPayload } from '../read/payloads';
import { decisionPage, feedsInScope } from '../read/walk';
import { BigIntScalar, JsonScalar } from '../scalars';
import { PageArgs } from '../types/connection';
import { Decision, DecisionConnection, DecisionFilter } from '../types/decision';
import { Feed } from '../types/feed';

const MICROS_PER_SECOND = 1_000_000;

@Resolver(() => Decision)
export class DecisionResolver {
  @Query(() => DecisionConnection, {
    description:
      'Decisions: within a feed by position, across feeds merged by `recordedAt`. Walking forward by `after` never ' +
      'misses an entry that was committed later. `last: n` gives the latest.',
  })
  async decisions(
    @Arg('filter', () => DecisionFilter, { nullable: true, description: 'Which decisions; left out: all.' })
    filter: DecisionFilter | null,
    @Args(() => PageArgs) page: PageArgs,
    @Ctx() context: ApiContext,
  ): Promise<object> {
    return readConnection(context, readFilter(filter), page);
  }

  @Query(() => Decision, {
    nullable: true,
    description: 'The decision at a position of a feed; null where there is none.',
  })
  async decision(
    @Arg('feed', () => ID, { description: 'Name of the feed.' }) name: string,
    @Arg('position', () => BigIntScalar, { description: 'Position in its ledger, from 0.' }) position: bigint,
    @Ctx() context: ApiContext,
  ): Promise<DecisionRecord | null> {
    if (position < 0n) throw badInput('position must not be negative');
    const feed = await findFeed(context, name);
    return feed === null ? null : context.loaders.entries.load({ feed, position });
  }

  @FieldResolver(() => ID)
  id(@Root() decision: DecisionRecord): string {
    return `${decision.feed.name}:${decision.term}:${decision.position}`;
  }

  @FieldResolver(() => Feed, { description: 'The feed that it came on.' })
  feed(@Root() decision: DecisionRecord): FeedRecord {
    return decision.feed;
  }

  @FieldResolver(() => Decision, { nullable: true, description: 'The entry that this one repeats or conflicts with.' })
  original(@Root() decision: DecisionRecord, @Ctx() { loaders }: ApiContext): Promise<DecisionRecord | null> | null {
    const { feed, originalPosition: position } = decision;
    return position === null ? null : loaders.entries.load({ feed, position });
  }

  @FieldResolver(() => Decision, {
    nullable: true,
    description: 'How a person resolved this held entry; null: not yet.',
  })
  resolution(@Root() decision: DecisionRecord, @Ctx() { loaders }: ApiContext): Promise<DecisionRecord | null> | null {
    return decision.held ? loaders.resolutions.load(decision) : null;
  }

  @FieldResolver(() => Float, { nullable: true })
  async replayLagSeconds(@Root() decision: DecisionRecord, @Ctx() { loaders }: ApiContext): Promise<number | null> {
    const { feed, originalPosition: position } = decision;
    const original = position === null ? null : await loaders.entries.load({ feed, position });
    return original === null ? null : Number(decision.recordedAt - original.recordedAt) / MICROS_PER_SECOND;
  }

  @FieldResolver(() => JsonScalar, { nullable: true })
  async payload(@Root() decision: DecisionRecord, @Ctx() context: ApiContext): Promise<unknown> {
    const bytes = await messageOf(decision, context);
    return bytes === null ? null : jsonOfPayload(bytes);
  }

  @FieldResolver(() => String, { nullable: true })
  async payloadText(@Root() decision: DecisionRecord, @Ctx() context: ApiContext): Promise<string | null> {
    const bytes = await messageOf(decision, context);
    return bytes === null ? null : textOfPayload(bytes);
  }

  @FieldResolver(() => String, { nullable: true })
  async payloadBase64(@Root() decision: DecisionRecord, @Ctx() context: ApiContext): Promise<string | null> {
    const bytes = await messageOf(decision, context);
    return bytes === null ? null : Buffer.from(bytes).toString('base64');
  }
}

/** @throws ApiError FORBIDDEN, RESPONSE_TOO_LARGE */
function messageOf(decision: DecisionRecord, { viewer, messages }: ApiContext): Promise<Uint8Array | null> {
  if (!viewer.mayReadPayloads) throw new ApiError('FORBIDDEN', 'payloads need the right to read them');
  return messages.message(decision);
}

/** The feed of that name, or null where there is none for this viewer. */
export async function findFeed({ services, viewer }: ApiContext, name: string): Promise<FeedRecord | null> {
  readText('feed', name);
  try {
    const [found] = await feedsInScope(services.prisma, viewer, readFilter({ feed: name }));
    return found?.feed ?? null;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

export async function readConnection(context: ApiContext, filter: EntryFilter, page: PageInput): Promise<object> {
  const { services, viewer } = context;
  return connectionOf(await decisionPage(services.prisma, viewer, filter, readPage(page, services.limits)));
}

/** A page in the shape of a Relay connection. */
export function connectionOf<T>({ edges, hasNextPage, hasPreviousPage }: Page<T>): object {
  return {
    edges,
    nodes: edges.map((edge) => edge.node),
    pageInfo: {
      hasNextPage,
      hasPreviousPage,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges[edges.length - 1]?.cursor ?? null,
    },
  };
}
