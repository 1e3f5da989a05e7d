/** What all lists share (Relay cursor connections). */
import { ArgsType, Field, Int, ObjectType } from 'type-graphql';

@ObjectType({ description: 'Where a page stands in its list.' })
export class PageInfo {
  @Field(() => Boolean, { description: 'Whether the list goes on after this page.' })
  hasNextPage!: boolean;

  @Field(() => Boolean, { description: 'Whether there is something before this page.' })
  hasPreviousPage!: boolean;

  @Field(() => String, { nullable: true, description: 'Cursor of the first entry of the page; null on an empty one.' })
  startCursor!: string | null;

  @Field(() => String, { nullable: true, description: 'Cursor of the last entry of the page; null on an empty one.' })
  endCursor!: string | null;
}

@ArgsType()
export class PageArgs {
  @Field(() => Int, {
    nullable: true,
    description: 'This many from the start, or after `after`: 1 to 200, default 50. Not together with `last`.',
  })
  first?: number | null;

  @Field(() => String, { nullable: true, description: 'Only what comes after this cursor of the same list.' })
  after?: string | null;

  @Field(() => Int, {
    nullable: true,
    description: 'This many from the end, or before `before`: 1 to 200. They come in list order as well.',
  })
  last?: number | null;

  @Field(() => String, { nullable: true, description: 'Only what comes before this cursor of the same list.' })
  before?: string | null;
}
