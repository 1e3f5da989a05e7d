/** Changing the dedup policy of a live feed (design sections 7 and 8). */
import { Field, ID, InputType, Int, ObjectType } from 'type-graphql';
import { MAX_REASON_LENGTH } from '../../ledger/policy';
import { MAX_WINDOW_ENTRIES, MAX_WINDOW_SECONDS } from '../../contract/schema';
import { Ordering } from './enums';
import { Feed, PolicyVersion } from './feed';

@InputType({ description: 'A dedup policy. What is left out stays as it is in force.' })
export class DedupPolicyInput {
  @Field(() => Int, {
    nullable: true,
    description:
      `Length of the window in seconds, 1 to ${MAX_WINDOW_SECONDS}. Must exceed the session expiry plus the replay ` +
      'delay of the contract in force.',
  })
  windowSeconds?: number | null;

  @Field(() => Int, { nullable: true, description: `Length of the window in entries, 1 to ${MAX_WINDOW_ENTRIES}.` })
  maxEntries?: number | null;

  @Field(() => Ordering, {
    nullable: true,
    description: 'What happens to a new message below the high-water mark. Feeds in eventId mode are always TOLERANT.',
  })
  ordering?: 'strict' | 'tolerant' | null;

  @Field(() => Boolean, {
    nullable: true,
    description: 'Whether sequences have no holes, so that a hole is a gap. Not supported yet: only false.',
  })
  contiguous?: boolean | null;

  @Field(() => String, {
    nullable: true,
    description: 'Largest step that a sequence may take, in up to 38 digits. Null, unlike leaving it out: any.',
  })
  maxSequenceJump?: string | null;
}

@InputType({ description: 'A change of the dedup policy of one feed.' })
export class UpdateDedupPolicyInput {
  @Field(() => ID, { description: 'Name of the feed. Unknown: NOT_FOUND.' })
  feed!: string;

  @Field(() => Int, {
    description: 'The version that the change was made up from. Another one in force: VERSION_CONFLICT.',
  })
  expectedVersion!: number;

  @Field(() => String, { description: `Why: kept with the version. Up to ${MAX_REASON_LENGTH} characters, not blank.` })
  reason!: string;

  @Field(() => DedupPolicyInput, { description: 'What to change: at least one field.' })
  policy!: DedupPolicyInput;
}

@ObjectType({ description: 'A change of the dedup policy that is in force for every batch from now on, everywhere.' })
export class UpdateDedupPolicyPayload {
  @Field(() => Feed, { description: 'The feed.' })
  feed!: Feed;

  @Field(() => PolicyVersion, { description: 'The version that was made.' })
  policy!: PolicyVersion;

  @Field(() => PolicyVersion, { description: 'The version of before.' })
  previous!: PolicyVersion;
}
