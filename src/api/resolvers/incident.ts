import { Arg, Args, Ctx, FieldResolver, ID, Query, Resolver, Root } from 'type-graphql';
import type { ApiContext } from '../context';
import { badInput } from '../errors';
import { readFilter, readText } from '../model/filter';
import type { FeedRecord, OutcomeGroup } from '../model/records';
import { IncidentRecord, stateOf, valueOf } from '../read/incident';
import { spanOf, totalsOf } from '../read/outcomes';
import { JsonScalar } from '../scalars';
import { PageArgs } from '../types/connection';
import { DecisionConnection, DecisionFilter } from '../types/decision';
import { Feed } from '../types/feed';
import { Incident, IncidentField, IncidentSource, OutcomeCount } from '../types/incident';
import { maySeeAgency } from '../viewer';
import { readConnection } from './decision';

type SourceOfIncident = IncidentSource & { readonly feed: FeedRecord };

@Resolver(() => Incident)
export class IncidentResolver {
  @Query(() => Incident, { nullable: true, description: 'The incident of that id; null where nothing is known of it.' })
  async incident(
    @Arg('id', () => ID, { description: 'As the messages name it.' }) id: string,
    @Ctx() { services, viewer, loaders }: ApiContext,
  ): Promise<IncidentRecord | null> {
    return IncidentRecord.find(services.prisma, viewer, loaders, readText('id', id));
  }

  @FieldResolver(() => JsonScalar)
  async state(@Root() incident: IncidentRecord): Promise<unknown> {
    return stateOf(await incident.fields());
  }

  @FieldResolver(() => [IncidentField], { description: 'The fields one by one, with their last writers, by path.' })
  async fields(@Root() incident: IncidentRecord, @Ctx() { viewer }: ApiContext): Promise<IncidentField[]> {
    return (await incident.fields()).map((field) => {
      const { path, position, agency, sourceId } = field;
      const writer = maySeeAgency(viewer, agency) ? { agency, sourceId } : { agency: null, sourceId: null };
      return { path, value: valueOf(field), position, ...writer };
    });
  }

  @FieldResolver(() => [OutcomeCount], {
    description: 'Entries that name it, by outcome; outcomes without any are left out.',
  })
  async counts(@Root() incident: IncidentRecord): Promise<OutcomeCount[]> {
    return totalsOf(await incident.groups());
  }

  @FieldResolver(() => [IncidentSource], { description: 'Sources that have entries about it.' })
  async sources(@Root() incident: IncidentRecord, @Ctx() { loaders }: ApiContext): Promise<SourceOfIncident[]> {
    const feeds = await loaders.feeds();
    const bySource = new Map<string, OutcomeGroup[]>();
    for (const group of await incident.groups()) {
      const name = JSON.stringify([group.feedId, group.agency, group.sourceId]);
      bySource.set(name, [...(bySource.get(name) ?? []), group]);
    }
    return [...bySource.values()].flatMap((groups) => sourceOf(groups, feeds));
  }

  @FieldResolver(() => DecisionConnection, { description: 'Entries that name it, in the order of `Query.decisions`.' })
  async decisions(
    @Root() incident: IncidentRecord,
    @Arg('filter', () => DecisionFilter, { nullable: true, description: 'Which of them; left out: all.' })
    filter: DecisionFilter | null,
    @Args(() => PageArgs) page: PageArgs,
    @Ctx() context: ApiContext,
  ): Promise<object> {
    const other = filter?.incidentId;
    if (other !== undefined && other !== null && other !== incident.id) {
      throw badInput('filter.incidentId must be left out here, or be that of the incident');
    }
    return readConnection(context, readFilter({ ...filter, incidentId: incident.id }), page);
  }
}

function sourceOf(groups: readonly OutcomeGroup[], feeds: ReadonlyMap<number, FeedRecord>): SourceOfIncident[] {
  const [first] = groups;
  const feed = first === undefined ? undefined : feeds.get(first.feedId);
  const span = spanOf(groups);
  if (first === undefined || feed === undefined || span === null) return [];
  const { agency, sourceId } = first;
  return [{ feed, agency, sourceId, counts: totalsOf(groups), firstPosition: span.first, lastPosition: span.last }];
}

@Resolver(() => IncidentSource)
export class IncidentSourceResolver {
  @FieldResolver(() => Feed, { description: 'The feed that the source reports on.' })
  feed(@Root() source: SourceOfIncident): FeedRecord {
    return source.feed;
  }
}
