/** A feed and what belongs to it. */
import { Field, ID, Int, ObjectType } from 'type-graphql';
import { BigIntScalar, DateTimeScalar } from '../scalars';
import { Ordering, PolicyOrigin } from './enums';

@ObjectType({ description: 'One logical stream, described by one contract, with a ledger of its own.' })
export class Feed {
  @Field(() => ID, { description: 'Unique name: 1 to 64 of a-z, 0-9 and hyphen.' })
  name!: string;

  @Field(() => DateTimeScalar, { description: 'When its first contract came into force.' })
  createdAt!: bigint;

  @Field(() => DateTimeScalar, { nullable: true, description: 'When it was retired; null while it is in use.' })
  retiredAt!: bigint | null;
}

@ObjectType({ description: 'A feed contract as it is in force.' })
export class FeedContract {
  @Field(() => Int, { description: 'Number of the contract in the history of its feed, from 1.' })
  version!: number;

  @Field(() => String, {
    description: 'SHA-256 of the file, in hexadecimal. Every entry names the one it was read under.',
  })
  digest!: string;

  @Field(() => String, { description: 'The YAML text, byte for byte.' })
  text!: string;

  @Field(() => String, { description: 'Name of the file that it came from.' })
  file!: string;

  @Field(() => String, { nullable: true, description: 'Commit that the file was deployed from, where known.' })
  commit!: string | null;

  @Field(() => BigIntScalar, { description: 'First position that was decided under it.' })
  firstPosition!: bigint;

  @Field(() => String, { description: 'Who put it in force.' })
  actor!: string;

  @Field(() => DateTimeScalar, { description: 'When it came into force.' })
  recordedAt!: bigint;
}

@ObjectType({ description: "One immutable version of a feed's dedup policy." })
export class PolicyVersion {
  @Field(() => Int, { description: 'Number of the version, from 1. Every entry names the one it was decided under.' })
  version!: number;

  @Field(() => BigIntScalar, { description: 'First position that was decided under it.' })
  firstPosition!: bigint;

  @Field(() => Int, { description: 'Length of the window in seconds.' })
  windowSeconds!: number;

  @Field(() => Int, { description: 'Length of the window in entries.' })
  maxEntries!: number;

  @Field(() => Ordering, { description: 'What happens to a new message below the high-water mark.' })
  ordering!: 'strict' | 'tolerant';

  @Field(() => Boolean, { description: 'Whether sequences have no holes, so that a hole is a gap.' })
  contiguous!: boolean;

  @Field(() => String, {
    nullable: true,
    description: 'Largest step that a sequence may take, in exact digits; null: any.',
  })
  maxSequenceJump!: string | null;

  @Field(() => PolicyOrigin, { description: 'Where it came from.' })
  origin!: 'CONTRACT' | 'API';

  @Field(() => String, { nullable: true, description: 'Digest of the contract file, where it came from one.' })
  contractDigest!: string | null;

  @Field(() => String, { nullable: true, description: 'Commit of that file, where known.' })
  commit!: string | null;

  @Field(() => String, { description: 'Who set it.' })
  actor!: string;

  @Field(() => String, { description: 'Why.' })
  reason!: string;

  @Field(() => DateTimeScalar, { description: 'When.' })
  recordedAt!: bigint;
}

@ObjectType({ description: 'The window: bounded memory of recently decided keys, by time and by count.' })
export class WindowFacts {
  @Field(() => Int, { description: 'Length in seconds, by the policy in force.' })
  windowSeconds!: number;

  @Field(() => Int, { description: 'Length in entries, by the policy in force.' })
  maxEntries!: number;

  @Field(() => Int, {
    nullable: true,
    description:
      'What `windowSeconds` has to exceed: how long the broker keeps a session, and how late a producer resends. ' +
      'Null when this service cannot read the contract.',
  })
  replayHorizonSeconds!: number | null;

  @Field(() => BigIntScalar, { description: 'Entries of the last `windowSeconds`, whatever `maxEntries` is.' })
  entriesInSeconds!: bigint;

  @Field(() => Boolean, {
    description:
      'Whether `maxEntries` cuts off what `windowSeconds` would keep: then the window is shorter than it says.',
  })
  boundByEntries!: boolean;
}

@ObjectType({
  description:
    'Two counts that must be equal, each counted by itself: what was received has an entry, and what was applied or ' +
    'released has taken its key.',
})
export class Balance {
  @Field(() => BigIntScalar, { description: 'Messages received, counted when they were decoded.' })
  received!: bigint;

  @Field(() => BigIntScalar, { description: 'Entries without RELEASED and DISMISSED.' })
  entries!: bigint;

  @Field(() => BigIntScalar, { description: 'Keys taken, one an applied or released entry.' })
  appliedKeys!: bigint;

  @Field(() => BigIntScalar, { description: 'Entries APPLIED.' })
  applied!: bigint;

  @Field(() => BigIntScalar, { description: 'Entries RELEASED.' })
  released!: bigint;

  @Field(() => Boolean, { description: '`received = entries` and `appliedKeys = applied + released`.' })
  balanced!: boolean;
}

@ObjectType({ description: "The head of a feed's ledger." })
export class LedgerHead {
  @Field(() => Int, { description: 'Raised each time the ledger went back in time, as after restoring a backup.' })
  term!: number;

  @Field(() => BigIntScalar, { description: 'Entries so far. Positions are dense from 0, so this is the next one.' })
  size!: bigint;

  @Field(() => DateTimeScalar, { description: 'Time of the last batch; of the beginning while the ledger is empty.' })
  recordedAt!: bigint;
}
