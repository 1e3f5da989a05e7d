import { Arg, Args, Ctx, FieldResolver, Query, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import { ApiError, badInput } from '../errors';
import { decodeAdminCursor, encodeAdminCursor } from '../model/cursor';
import { readText } from '../model/filter';
import { cutPage, readPage } from '../model/page';
import type { AdminEventRecord, FeedRecord } from '../model/records';
import { jsonOfText } from '../read/payloads';
import { JsonScalar } from '../scalars';
import { adminEvents } from '../statements/admin';
import { AdminEvent, AdminEventConnection, AdminLogFilter } from '../types/admin';
import { PageArgs } from '../types/connection';
import { Feed } from '../types/feed';
import { connectionOf, findFeed } from './decision';

interface EventRow extends Omit<AdminEventRecord, 'position' | 'recordedAt'> {
  readonly position: string;
  readonly recordedAt: string;
}

@Resolver(() => AdminEvent)
export class AdminResolver {
  @Query(() => AdminEventConnection, {
    description:
      'Administrative acts and refused attempts, by position; `last: n` gives the latest. Empty for readers of some ' +
      'agencies: acts are about whole feeds.',
  })
  async adminLog(
    @Arg('filter', () => AdminLogFilter, { nullable: true, description: 'Which events; left out: all.' })
    filter: AdminLogFilter | null,
    @Args(() => PageArgs) input: PageArgs,
    @Ctx() context: ApiContext,
  ): Promise<object> {
    const { services, viewer } = context;
    const page = readPage(input, services.limits);
    const { feed, kind, actor } = readAdminFilter(filter);
    const digest = JSON.stringify([feed, kind, actor]);
    const after = page.after === null ? null : decodeAdminCursor('after', page.after, digest);
    const before = page.before === null ? null : decodeAdminCursor('before', page.before, digest);
    const found = feed === null ? null : await findFeed(context, feed);
    if (feed !== null && found === null) throw new ApiError('NOT_FOUND', `there is no feed ${feed}`);
    const { direction } = page;
    const of = { feedId: found?.id ?? null, kinds: kind, actor, direction, after, before, limit: page.size + 1 };
    const rows =
      viewer.agencies === null ? (await services.prisma.$queryRaw<EventRow[]>(adminEvents(of))).map(recordOf) : [];
    const { rows: events, ...more } = cutPage(rows, page);
    const edges = events.map((node) => ({ node, cursor: encodeAdminCursor(node.position, digest) }));
    return connectionOf({ edges, ...more });
  }

  @FieldResolver(() => Feed, { nullable: true, description: 'The feed that it is about; null where it is about none.' })
  async feed(@Root() { feedId }: AdminEventRecord, @Ctx() { loaders }: ApiContext): Promise<FeedRecord | null> {
    return feedId === null ? null : ((await loaders.feeds()).get(feedId) ?? null);
  }

  @FieldResolver(() => JsonScalar, {
    description:
      'What exactly, by kind. Of a refused attempt: `code` and `message` of the error, and what was asked for.',
  })
  detail(@Root() { detail }: AdminEventRecord): unknown {
    // Some are a sentence.
    return jsonOfText(detail) ?? detail;
  }
}

/** @throws ApiError BAD_USER_INPUT */
function readAdminFilter(filter: AdminLogFilter | null) {
  const { feed, kind, actor } = filter ?? {};
  if (kind?.length === 0) throw badInput('filter.kind must not be empty: leave it out for any');
  return {
    feed: feed ?? null,
    kind:
      kind === null || kind === undefined ? null : [...new Set(kind)].map((one) => readText('filter.kind', one)).sort(),
    actor: actor === null || actor === undefined ? null : readText('filter.actor', actor),
  };
}

function recordOf(row: EventRow): AdminEventRecord {
  return { ...row, position: BigInt(row.position), recordedAt: BigInt(row.recordedAt) };
}
