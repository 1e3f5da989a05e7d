/** Advice on the size of a window. */
import { Field, Float, Int, ObjectType } from 'type-graphql';
import { BigIntScalar, DateTimeScalar } from '../scalars';

@ObjectType({ description: 'How large the window should be, by what was measured since a time, with the reasons.' })
export class WindowAdvice {
  @Field(() => DateTimeScalar, { description: 'Measured from when.' })
  since!: bigint;

  @Field(() => BigIntScalar, { description: 'Proven duplicates since then.' })
  replays!: bigint;

  @Field(() => Float, { nullable: true, description: 'Half of them came within so many seconds; null without any.' })
  lagP50Seconds!: number | null;

  @Field(() => Float, { nullable: true, description: '99 % of them came within so many seconds; null without any.' })
  lagP99Seconds!: number | null;

  @Field(() => Float, { nullable: true, description: 'The latest of them, in seconds; null without any.' })
  lagMaxSeconds!: number | null;

  @Field(() => Float, { description: 'Entries a second, on average.' })
  entriesPerSecond!: number;

  @Field(() => Int, { description: 'Advised length in seconds.' })
  windowSeconds!: number;

  @Field(() => Int, { description: 'Advised length in entries.' })
  maxEntries!: number;

  @Field(() => [String], { description: 'Why so many seconds, and why so many entries.' })
  reasons!: readonly string[];

  @Field(() => String, {
    nullable: true,
    description: 'Entries leave the window in force by count before their time: since when it is shorter than it says.',
  })
  warning!: string | null;
}
