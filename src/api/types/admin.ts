/** The ledger of administrative acts. */
import { Field, ID, InputType, ObjectType } from 'type-graphql';
import { BigIntScalar, DateTimeScalar } from '../scalars';
import { PageInfo } from './connection';

@ObjectType({ description: 'An administrative act, or an attempt at one that was refused. It never changes.' })
export class AdminEvent {
  @Field(() => BigIntScalar, { description: 'Dense number in the administrative ledger, from 0.' })
  position!: bigint;

  @Field(() => String, {
    description:
      'What happened: POLICY_CHANGED, POLICY_CHANGE_REFUSED, CONTRACT_ACTIVATED, CONTRACT_REFUSED, TERM_OPENED, SESSION_LOST. More may come.',
  })
  kind!: string;

  @Field(() => String, { description: 'Who: the name of a token, or `replay-ledger` for the service itself.' })
  actor!: string;

  @Field(() => DateTimeScalar, { description: 'When.' })
  recordedAt!: bigint;
}

@ObjectType({ description: 'An event on a page.' })
export class AdminEventEdge {
  @Field(() => AdminEvent, { description: 'The event.' })
  node!: AdminEvent;

  @Field(() => String, { description: 'Opaque: where this event stands in this list.' })
  cursor!: string;
}

@ObjectType({ description: 'A page of administrative events, by position.' })
export class AdminEventConnection {
  @Field(() => [AdminEventEdge], { description: 'The events with their cursors.' })
  edges!: readonly AdminEventEdge[];

  @Field(() => [AdminEvent], { description: 'The events alone.' })
  nodes!: readonly AdminEvent[];

  @Field(() => PageInfo, { description: 'Where this page stands.' })
  pageInfo!: PageInfo;
}

@InputType({ description: 'Which events. All conditions must hold; what is left out, or null, is no condition.' })
export class AdminLogFilter {
  @Field(() => ID, { nullable: true, description: 'Name of the feed that they are about. Unknown: NOT_FOUND.' })
  feed?: string | null;

  @Field(() => [String], { nullable: true, description: 'Any of these kinds.' })
  kind?: string[] | null;

  @Field(() => String, { nullable: true, description: 'Who did it, or tried to.' })
  actor?: string | null;
}
