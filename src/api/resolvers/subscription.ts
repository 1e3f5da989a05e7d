import { Arg, FieldResolver, ID, Resolver, Root, Subscription } from 'type-graphql';
import type { ApiContext } from '../context';
import { badInput } from '../errors';
import { PolicyStream } from '../live/policy-stream';
import type { PolicyChanged } from '../live/policy-stream';
import type { StreamFailure } from '../live/pull-stream';
import { DecisionStream } from '../live/stream';
import type { DeliveredDecision, StreamEvent } from '../live/stream';
import { decodeEntryCursor } from '../model/cursor';
import { readFilter } from '../model/filter';
import type { EntryFilter, FilterInput } from '../model/filter';
import type { FeedRecord, PolicyRecord } from '../model/records';
import { DecisionEvent, DecisionFilter } from '../types/decision';
import { Feed, PolicyVersion } from '../types/feed';

/** Outcomes 3 to 5 of design section 3: what was not applied because of what had come before. */
const SUPPRESSIONS = ['DUPLICATE_SUPPRESSED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER'] as const;

interface StreamArgs {
  readonly filter?: FilterInput | null;
  readonly after?: string | null;
}

const AFTER =
  'First everything since this cursor of `Query.decisions` or of an earlier event, whatever its filter, as long as it ' +
  'covers the feeds; then live. Left out: from now on.';

@Resolver(() => PolicyVersion)
export class PolicySubscriptionResolver {
  @Subscription(() => PolicyVersion, {
    description:
      'Each version of a dedup policy as it comes into force, by whatever: from now on, without a gap or a repeat.',
    subscribe: ({ args, context }) => {
      const { services, viewer } = context as ApiContext;
      return PolicyStream.open(services, viewer, (args as { readonly feed?: string | null }).feed ?? null);
    },
  })
  policyChanges(
    @Arg('feed', () => ID, { nullable: true, description: 'Name of a feed; left out: all. Unknown: NOT_FOUND.' })
    _feed: string | null,
    @Root() event: PolicyChanged | StreamFailure,
  ): PolicyRecord {
    return delivered(event).policy;
  }
}

@Resolver(() => DecisionEvent)
export class SubscriptionResolver {
  @Subscription(() => DecisionEvent, {
    description:
      'Each decision as it is committed, once, in the order of its feed. A reader who is too slow is cut off, and can ' +
      'resume by `after`.',
    subscribe: ({ args, context }) =>
      open(args as StreamArgs, context as ApiContext, readStreamFilter(args as StreamArgs)),
  })
  decisions(
    @Arg('filter', () => DecisionFilter, {
      nullable: true,
      description: 'Which decisions; `from` and `to` do not apply.',
    })
    _filter: DecisionFilter | null,
    @Arg('after', () => String, { nullable: true, description: AFTER }) _after: string | null,
    @Root() event: StreamEvent,
  ): DeliveredDecision {
    return delivered(event);
  }

  @Subscription(() => DecisionEvent, {
    description:
      'Decisions that suppressed or held a message because of what had come before it: DUPLICATE_SUPPRESSED, ' +
      'KEY_CONFLICT and STALE_OUT_OF_ORDER. Otherwise as `decisions`.',
    subscribe: ({ args, context }) =>
      open(args as StreamArgs, context as ApiContext, readStreamFilter(args as StreamArgs, SUPPRESSIONS)),
  })
  suppressions(
    @Arg('filter', () => DecisionFilter, {
      nullable: true,
      description: 'Which of them; `from` and `to` do not apply, and `outcome` can only be of these three.',
    })
    _filter: DecisionFilter | null,
    @Arg('after', () => String, { nullable: true, description: AFTER }) _after: string | null,
    @Root() event: StreamEvent,
  ): DeliveredDecision {
    return delivered(event);
  }

  @FieldResolver(() => Feed, { description: 'The feed that the decision belongs to.' })
  feed(@Root() event: DeliveredDecision): FeedRecord {
    return event.decision.feed;
  }
}

function delivered<E extends object>(event: E | StreamFailure): E {
  if ('failure' in event) throw event.failure;
  return event;
}

function open({ after }: StreamArgs, { services, viewer }: ApiContext, filter: EntryFilter): Promise<DecisionStream> {
  const cursor = after === null || after === undefined ? null : decodeEntryCursor('after', after);
  if (cursor !== null && filter.feed === null && !cursor.allFeeds) {
    throw badInput('after is a cursor of one feed: name it in filter.feed');
  }
  return DecisionStream.open(services, viewer, filter, cursor);
}

function readStreamFilter({ filter }: StreamArgs, among: typeof SUPPRESSIONS | null = null): EntryFilter {
  const read = readFilter(filter, among);
  if (read.from !== null || read.to !== null)
    throw badInput('filter.from and filter.to do not apply to what is to come');
  return read;
}
