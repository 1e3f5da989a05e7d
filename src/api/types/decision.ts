/** Decisions: entries of the ledger. */
import { Field, Float, ID, InputType, Int, ObjectType } from 'type-graphql';
import type { EntryOutcome } from '../../ledger/entry';
import type { Tier as TierName } from '../../dedup/state';
import { BigIntScalar, DateTimeScalar, JsonScalar } from '../scalars';
import { PageInfo } from './connection';
import { Outcome, Tier } from './enums';

@ObjectType({ description: 'What was decided about one message of one delivery, as written to the ledger. Immutable.' })
export class Decision {
  @Field(() => BigIntScalar, { description: "Dense number of the entry in its feed's ledger, from 0." })
  position!: bigint;

  @Field(() => Int, { description: 'Term of the ledger that it was written in.' })
  term!: number;

  @Field(() => Outcome, { description: 'What was decided.' })
  outcome!: EntryOutcome;

  @Field(() => Tier, { description: 'Which line of defence the duplicate needed.' })
  tier!: TierName;

  @Field(() => String, { description: 'Why, as a code, e.g. `same_key_and_digest`, `sequence_missing`.' })
  reason!: string;

  @Field(() => String, { nullable: true, description: 'Detail for people, or the reason that a person gave.' })
  note!: string | null;

  @Field(() => Boolean, {
    description: 'Whether it was held: neither applied nor proven a duplicate. `resolution` tells whether it still is.',
  })
  held!: boolean;

  @Field(() => Boolean, { description: 'Whether it was applied below the high-water mark.' })
  late!: boolean;

  @Field(() => String, {
    nullable: true,
    description: 'Idempotency key, 64 hexadecimal digits; null where none could be built.',
  })
  key!: string | null;

  @Field(() => Int, { nullable: true, description: 'Version of the identity rule that the key was built by.' })
  keyVersion!: number | null;

  @Field(() => String, { nullable: true, description: 'Agency of the source.' })
  agency!: string | null;

  @Field(() => String, { nullable: true, description: 'Who counts the sequence, within the agency.' })
  sourceId!: string | null;

  @Field(() => String, { nullable: true, description: 'Boot session or restart counter of the source.' })
  epoch!: string | null;

  @Field(() => String, { nullable: true, description: 'Sequence in exact decimal digits, up to 38 of them.' })
  sequence!: string | null;

  @Field(() => [String], { nullable: true, description: 'Parts of the business event id, in feeds that have one.' })
  eventId!: readonly string[] | null;

  @Field(() => String, { nullable: true, description: 'Incident that the message names.' })
  incidentId!: string | null;

  @Field(() => Int, { description: 'Version of the dedup policy that it was decided under.' })
  policyVersion!: number;

  @Field(() => String, { description: 'Digest of the contract that it was read under.' })
  contractDigest!: string;

  @Field(() => DateTimeScalar, { description: 'Database time of the decision; never decreases within a feed.' })
  recordedAt!: bigint;

  @Field(() => DateTimeScalar, { nullable: true, description: 'When it happened, by the producer.' })
  occurredAt!: bigint | null;

  @Field(() => BigIntScalar, {
    nullable: true,
    description: 'Position of the entry that this one repeats or conflicts with.',
  })
  originalPosition!: bigint | null;

  @Field(() => BigIntScalar, { nullable: true, description: 'Position of the held entry that this one resolves.' })
  resolvesPosition!: bigint | null;

  @Field(() => String, { nullable: true, description: 'Who resolved it, where a person did.' })
  actor!: string | null;

  @Field(() => String, { description: 'Name of the broker connection that it came on.' })
  broker!: string;

  @Field(() => String, { description: 'Topic that it came on.' })
  topic!: string;

  @Field(() => Int, { description: 'Quality of service that it came with: 0, 1 or 2.' })
  qos!: number;

  @Field(() => Boolean, {
    description: 'DUP flag as it came. Unreliable in both directions: recorded, never decided on.',
  })
  dup!: boolean;

  @Field(() => Boolean, { description: 'RETAIN flag as it came.' })
  retained!: boolean;

  @Field(() => Int, {
    nullable: true,
    description: 'Index in a batch delivery; null where the delivery is the message.',
  })
  itemIndex!: number | null;

  @Field(() => String, { description: 'SHA-256 of the canonical message, in hexadecimal.' })
  payloadDigest!: string;

  @Field(() => String, { description: 'SHA-256 of the bytes of the delivery as it came, in hexadecimal.' })
  bytesDigest!: string;

  @Field(() => String, {
    description: 'Leaf of the entry in the Merkle tree of its ledger (RFC 6962), in hexadecimal.',
  })
  leafHash!: string;

  // Below: fields with resolvers of their own; here for the order and the words.
  @Field(() => ID, { description: 'Names this entry for ever: feed, term and position.' })
  id!: string;

  @Field(() => Float, { nullable: true, description: 'Seconds from the original to this repetition.' })
  replayLagSeconds!: number | null;

  @Field(() => JsonScalar, {
    nullable: true,
    description:
      'The message as JSON. Null where the bytes are not kept, or are no JSON that reads in one way only: see ' +
      '`payloadBase64`. Needs the right to read payloads.',
  })
  payload!: unknown;

  @Field(() => String, {
    nullable: true,
    description:
      'The message as text, exactly as it came; null where it is not UTF-8. Needs the right to read payloads.',
  })
  payloadText!: string | null;

  @Field(() => String, {
    nullable: true,
    description: 'The bytes of the message as they came, in base64. Needs the right to read payloads.',
  })
  payloadBase64!: string | null;
}

@ObjectType({ description: 'An entry on a page.' })
export class DecisionEdge {
  @Field(() => Decision, { description: 'The entry.' })
  node!: Decision;

  @Field(() => String, { description: 'Opaque: where this entry stands in this list.' })
  cursor!: string;
}

@ObjectType({ description: 'A page of decisions: within a feed by position, across feeds merged by `recordedAt`.' })
export class DecisionConnection {
  @Field(() => [DecisionEdge], { description: 'The entries with their cursors.' })
  edges!: readonly DecisionEdge[];

  @Field(() => [Decision], { description: 'The entries alone.' })
  nodes!: readonly Decision[];

  @Field(() => PageInfo, { description: 'Where this page stands.' })
  pageInfo!: PageInfo;
}

@InputType({ description: 'Which decisions. All conditions must hold; what is left out, or null, is no condition.' })
export class DecisionFilter {
  @Field(() => ID, { nullable: true, description: 'Name of a feed. Unknown: NOT_FOUND.' })
  feed?: string | null;

  @Field(() => ID, { nullable: true, description: 'Entries that name this incident.' })
  incidentId?: string | null;

  @Field(() => String, { nullable: true, description: 'Entries of this agency.' })
  agency?: string | null;

  @Field(() => String, { nullable: true, description: 'Entries of this source. With `agency` it is an index look-up.' })
  sourceId?: string | null;

  @Field(() => String, { nullable: true, description: 'Entries with this idempotency key, 64 hexadecimal digits.' })
  key?: string | null;

  @Field(() => [Outcome], { nullable: true, description: 'Any of these outcomes.' })
  outcome?: EntryOutcome[] | null;

  @Field(() => [Tier], { nullable: true, description: 'Any of these tiers.' })
  tier?: TierName[] | null;

  @Field(() => Boolean, { nullable: true, description: 'Whether the entry was held when it was decided.' })
  held?: boolean | null;

  @Field(() => Boolean, { nullable: true, description: 'Whether the entry was applied below the high-water mark.' })
  late?: boolean | null;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Recorded at this time or later.' })
  from?: bigint | null;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Recorded before this time.' })
  to?: bigint | null;
}

@ObjectType({ description: 'A decision as it reaches a subscriber.' })
export class DecisionEvent {
  @Field(() => BigIntScalar, { description: 'Position of the decision in the ledger of its feed.' })
  position!: bigint;

  @Field(() => String, { description: 'Subscribe again with `after:` this, and nothing is missed or repeated.' })
  cursor!: string;

  @Field(() => Decision, { description: 'The decision.' })
  decision!: Decision;
}
