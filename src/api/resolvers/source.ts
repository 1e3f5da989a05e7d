import { Arg, Args, Ctx, FieldResolver, ID, Query, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import { ApiError } from '../errors';
import { decodeSourceCursor, encodeSourceCursor } from '../model/cursor';
import { readText } from '../model/filter';
import { cutPage, readPage } from '../model/page';
import type { FeedRecord, SourceRecord } from '../model/records';
import { totalsOf, spanOf } from '../read/outcomes';
import { sourceExists, sourcePage } from '../statements/facts';
import { BigIntScalar } from '../scalars';
import { PageArgs } from '../types/connection';
import { Feed } from '../types/feed';
import { OutcomeCount, Source, SourceConnection, SourceEpoch } from '../types/incident';
import { connectionOf, findFeed } from './decision';

@Resolver(() => Source)
export class SourceResolver {
  @Query(() => Source, { nullable: true, description: 'A source of a feed; null where it has no entry.' })
  async source(
    @Arg('feed', () => ID, { description: 'Name of the feed.' }) name: string,
    @Arg('agency', () => String, { description: 'The agency.' }) agency: string,
    @Arg('sourceId', () => String, { description: 'The id within the agency.' }) sourceId: string,
    @Ctx() context: ApiContext,
  ): Promise<SourceRecord | null> {
    readText('agency', agency);
    readText('sourceId', sourceId);
    const feed = await findFeed(context, name);
    if (feed === null) return null;
    const statement = sourceExists(context.viewer, { feedId: feed.id, agency, sourceId });
    const [row] = await context.services.prisma.$queryRaw<{ known: boolean }[]>(statement);
    return row?.known === true ? { feed, agency, sourceId } : null;
  }

  @Query(() => SourceConnection, { description: 'The sources of a feed, in order of agency and id.' })
  async sources(
    @Arg('feed', () => ID, { description: 'Name of the feed. Unknown: NOT_FOUND.' }) name: string,
    @Args(() => PageArgs) input: PageArgs,
    @Ctx() context: ApiContext,
  ): Promise<object> {
    const { services, viewer } = context;
    const page = readPage(input, services.limits);
    const feed = await findFeed(context, name);
    if (feed === null) throw new ApiError('NOT_FOUND', `there is no feed ${name}`);
    const { direction } = page;
    const after = page.after === null ? null : decodeSourceCursor('after', page.after, feed.id);
    const before = page.before === null ? null : decodeSourceCursor('before', page.before, feed.id);
    const statement = sourcePage({ feedId: feed.id, viewer, direction, after, before, limit: page.size + 1 });
    const found = await services.prisma.$queryRaw<{ agency: string; sourceId: string }[]>(statement);
    const { rows, ...more } = cutPage(found, page);
    const edges = rows.map(({ agency, sourceId }) => ({
      node: { feed, agency, sourceId },
      cursor: encodeSourceCursor({ feedId: feed.id, agency, sourceId }),
    }));
    return connectionOf({ edges, ...more });
  }

  @FieldResolver(() => Feed, { description: 'The feed that it reports on.' })
  feed(@Root() source: SourceRecord): FeedRecord {
    return source.feed;
  }

  @FieldResolver(() => String, {
    nullable: true,
    description: 'Highest applied sequence of the epoch in force, in exact digits; null without one.',
  })
  async highWaterMark(@Root() source: SourceRecord, @Ctx() { loaders }: ApiContext): Promise<string | null> {
    const [current] = await loaders.sourceEpochs.load(source);
    return current?.mark ?? null;
  }

  @FieldResolver(() => [SourceEpoch], {
    description: 'Its epochs, the one in force first. A feed without epochs has one, with an empty name.',
  })
  async epochs(@Root() source: SourceRecord, @Ctx() { loaders }: ApiContext): Promise<SourceEpoch[]> {
    const records = await loaders.sourceEpochs.load(source);
    return records.map(({ keyVersion, epoch, rank, mark, highest }, index) => ({
      keyVersion,
      epoch,
      rank,
      highWaterMark: mark,
      highestSequence: highest,
      current: index === 0 && rank !== null,
    }));
  }

  @FieldResolver(() => [OutcomeCount], { description: 'Its entries by outcome; outcomes without any are left out.' })
  async counts(@Root() source: SourceRecord, @Ctx() { loaders }: ApiContext): Promise<OutcomeCount[]> {
    return totalsOf(await loaders.sourceGroups.load(source));
  }

  @FieldResolver(() => BigIntScalar, { nullable: true, description: 'Position of its first entry.' })
  async firstPosition(@Root() source: SourceRecord, @Ctx() { loaders }: ApiContext): Promise<bigint | null> {
    return spanOf(await loaders.sourceGroups.load(source))?.first ?? null;
  }

  @FieldResolver(() => BigIntScalar, { nullable: true, description: 'Position of its last entry.' })
  async lastPosition(@Root() source: SourceRecord, @Ctx() { loaders }: ApiContext): Promise<bigint | null> {
    return spanOf(await loaders.sourceGroups.load(source))?.last ?? null;
  }
}
