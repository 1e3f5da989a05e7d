/** Incidents and sources: what decisions are gathered by. */
import { Field, ID, Int, ObjectType } from 'type-graphql';
import type { EntryOutcome } from '../../ledger/entry';
import { BigIntScalar, JsonScalar } from '../scalars';
import { PageInfo } from './connection';
import { Outcome } from './enums';

@ObjectType({ description: 'How many entries came to one outcome.' })
export class OutcomeCount {
  @Field(() => Outcome, { description: 'The outcome.' })
  outcome!: EntryOutcome;

  @Field(() => BigIntScalar, { description: 'Entries with it.' })
  count!: bigint;
}

@ObjectType({ description: 'One field of an incident, and who wrote it last.' })
export class IncidentField {
  @Field(() => String, {
    description: 'Path below the state, as in RFC 6901 without the first slash, e.g. `units/engine-7`.',
  })
  path!: string;

  @Field(() => JsonScalar, { nullable: true, description: 'The value; a set is an array, sorted.' })
  value!: unknown;

  @Field(() => BigIntScalar, { description: 'Position of the entry that wrote it last.' })
  position!: bigint;

  @Field(() => String, {
    nullable: true,
    description: 'Agency of the last writer; null where the reader may not see it.',
  })
  agency!: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'Source of the last writer; null where the reader may not see it.',
  })
  sourceId!: string | null;
}

@ObjectType({ description: 'A source that has entries about an incident.' })
export class IncidentSource {
  @Field(() => String, { nullable: true, description: 'Agency of the source.' })
  agency!: string | null;

  @Field(() => String, { nullable: true, description: 'Name of the source within its agency.' })
  sourceId!: string | null;

  @Field(() => [OutcomeCount], { description: 'Its entries about this incident, by outcome.' })
  counts!: readonly OutcomeCount[];

  @Field(() => BigIntScalar, { description: 'Position of its first entry about this incident.' })
  firstPosition!: bigint;

  @Field(() => BigIntScalar, { description: 'Position of its last entry about this incident.' })
  lastPosition!: bigint;
}

@ObjectType({ description: 'An incident: its state, shared by all feeds, and all that was decided about it.' })
export class Incident {
  @Field(() => ID, { description: 'As the messages name it.' })
  id!: string;

  @Field(() => JsonScalar, {
    description:
      'The fields as one object, nested at the slashes of their paths. Sets are sorted arrays. Where a field is both a ' +
      'value and a parent of others, its value stands under the empty name.',
  })
  state!: unknown;
}

@ObjectType({ description: 'Sequences of one source within one epoch: they only increase.' })
export class SourceEpoch {
  @Field(() => Int, { description: 'Version of the identity rule.' })
  keyVersion!: number;

  @Field(() => String, { description: 'Name of the epoch; empty in feeds without epochs.' })
  epoch!: string;

  @Field(() => String, {
    nullable: true,
    description: 'Order among the epochs of the source, in exact digits; null until a message of it was applied.',
  })
  rank!: string | null;

  @Field(() => String, { nullable: true, description: 'Highest applied sequence, in exact digits.' })
  highWaterMark!: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'Highest sequence of any entry, held ones included, in exact digits.',
  })
  highestSequence!: string | null;

  @Field(() => Boolean, { description: 'Whether it is the epoch in force.' })
  current!: boolean;
}

@ObjectType({ description: 'Who counts a sequence: an agency and an id within it, in one feed.' })
export class Source {
  @Field(() => String, { description: 'The agency.' })
  agency!: string;

  @Field(() => String, { description: 'The id within the agency.' })
  sourceId!: string;
}

@ObjectType({ description: 'A source on a page.' })
export class SourceEdge {
  @Field(() => Source, { description: 'The source.' })
  node!: Source;

  @Field(() => String, { description: 'Opaque: where this source stands in this list.' })
  cursor!: string;
}

@ObjectType({ description: 'A page of sources, in order of agency and id.' })
export class SourceConnection {
  @Field(() => [SourceEdge], { description: 'The sources with their cursors.' })
  edges!: readonly SourceEdge[];

  @Field(() => [Source], { description: 'The sources alone.' })
  nodes!: readonly Source[];

  @Field(() => PageInfo, { description: 'Where this page stands.' })
  pageInfo!: PageInfo;
}
