/** Changing the dedup policy of a live feed (design sections 7 and 8). */
import { Field, ID, InputType, Int, ObjectType } from 'type-graphql';
import { BYTES_PER_KEY, MAX_REDECIDED } from '../read/preview';
import { BigIntScalar, DateTimeScalar } from '../scalars';
import { MAX_REASON_LENGTH } from '../../ledger/policy';
import { MAX_WINDOW_ENTRIES, MAX_WINDOW_SECONDS } from '../../contract/schema';
import { Ordering, Outcome } from './enums';
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

@ObjectType({ description: 'What a policy makes of the replays since a time.' })
export class PreviewedPolicy {
  @Field(() => BigIntScalar, { description: 'Replays whose original lies within its window: tier WINDOW.' })
  caughtByWindow!: bigint;

  @Field(() => BigIntScalar, { description: 'Replays that only the ledger remembers: tier LEDGER.' })
  caughtByLedger!: bigint;

  @Field(() => Int, { description: 'Keys that its window holds, at the average rate since then.' })
  expectedKeys!: number;

  @Field(() => BigIntScalar, { description: `What they take in the window's store: ${BYTES_PER_KEY} bytes a key.` })
  expectedBytes!: bigint;
}

@ObjectType({ description: 'What the decision function says of a message.' })
export class PreviewedDecision {
  @Field(() => Outcome, { description: 'The outcome.' })
  outcome!: keyof typeof Outcome;

  @Field(() => Boolean, { description: 'Whether it is applied below the high-water mark.' })
  late!: boolean;

  @Field(() => String, { nullable: true, description: 'Why, where it is not applied.' })
  reason!: string | null;
}

@ObjectType({ description: 'A recorded message that another policy would decide otherwise.' })
export class PreviewDifference {
  @Field(() => PreviewedDecision, { description: 'Under the policy in force.' })
  inForce!: PreviewedDecision;

  @Field(() => PreviewedDecision, { description: 'Under the previewed one.' })
  previewed!: PreviewedDecision;
}

@ObjectType({
  description:
    'What a policy would have made of what came since a time, beside the policy in force, from recorded ages and ranks. ' +
    'Nothing is changed. The same policy makes no difference.',
})
export class PolicyPreview {
  @Field(() => DateTimeScalar, { description: 'From when.' })
  since!: bigint;

  @Field(() => [String], { description: 'Why `updateDedupPolicy` would refuse it; empty: it would not.' })
  problems!: readonly string[];

  @Field(() => BigIntScalar, { description: 'Proven duplicates since then.' })
  replays!: bigint;

  @Field(() => PreviewedPolicy, { description: 'The policy in force.' })
  inForce!: PreviewedPolicy;

  @Field(() => PreviewedPolicy, { description: 'The previewed one.' })
  previewed!: PreviewedPolicy;

  @Field(() => BigIntScalar, {
    description: `Decisions from this position on were made again: the latest ${MAX_REDECIDED} where there are more.`,
  })
  decidedAgainFrom!: bigint;

  @Field(() => Int, {
    description:
      'Messages that would be decided otherwise, by a change of `ordering` or `maxSequenceJump`: the window decides ' +
      'nothing. Effects are not computed again.',
  })
  differenceCount!: number;
}
