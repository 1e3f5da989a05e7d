/**
 * Random nights: what producers sent, and how a failing transport handed it over.
 */
import * as fc from 'fast-check';
import type { IdentityVersion, ModelEffect, ModelEvent, ModelFeed, ModelMessage, ModelPolicy } from './decision-model';
import { identityOf } from './decision-model';

/** What happens to the process around a batch. Either way the broker delivers the batch again. */
export type Crash = 'none' | 'before_commit' | 'after_commit';

export interface ScheduledBatch {
  readonly messages: readonly ModelMessage[];
  readonly crash: Crash;
  /** Of the identity in the contract in force; never falls from one batch to the next. */
  readonly version: IdentityVersion;
  /** Since the batch before, microseconds. */
  readonly elapsedMicros: number;
  readonly policy: ModelPolicy;
  /** Of the message at each index, in turn: does the window know its key? */
  readonly hints: readonly boolean[];
}

export interface Schedule {
  readonly feed: ModelFeed;
  readonly batches: readonly ScheduledBatch[];
}

export interface ScheduleShape {
  readonly mode: 'sequence' | 'eventId';
  readonly epochs: 'none' | 'opaque' | 'numeric';
  readonly digest: boolean;
}

/** Small, so that they meet; with neighbours that a double cannot tell apart, and the largest of all. */
const SEQUENCES = [0n, 1n, 2n, 3n, 4n, 5n, 9n, 10n, 2n ** 53n, 2n ** 53n + 1n, 10n ** 38n - 1n];
const NUMBERS = ['1', '-1', '0', '0.1', '2.5', `${'9'.repeat(38)}`, `-${'9'.repeat(38)}`, `0.${'0'.repeat(37)}1`];
const VALUES = ['"ENROUTE"', '"ONSCENE"', 'true', 'null', '7', '[1,2]'];

const number = fc.constantFrom(...NUMBERS);
const json = fc.constantFrom(...VALUES);

/** Mostly each kind on its own field; `mixed` is where they meet. */
function effectOn(own: { increment: string; advance: string; set: string; append: string }): fc.Arbitrary<ModelEffect> {
  return fc.oneof(
    number.map((n): ModelEffect => ({ do: 'increment', field: own.increment, number: n })),
    number.map((n): ModelEffect => ({ do: 'advance', field: own.advance, number: n })),
    json.map((value): ModelEffect => ({ do: 'set', field: own.set, json: value })),
    json.map((value): ModelEffect => ({ do: 'append', field: own.append, json: value })),
  );
}

export const anyEffect: fc.Arbitrary<ModelEffect> = fc.oneof(
  { weight: 3, arbitrary: effectOn({ increment: 'count', advance: 'period', set: 'status', append: 'crew' }) },
  { weight: 1, arbitrary: effectOn({ increment: 'mixed', advance: 'mixed', set: 'mixed', append: 'mixed' }) },
);

/** Events of one feed. Two of them have the same identity and variant only if they are the same. */
export function eventsOf(
  shape: ScheduleShape,
  effects: fc.Arbitrary<readonly ModelEffect[]>,
): fc.Arbitrary<ModelEvent[]> {
  const sequential = shape.mode === 'sequence';
  const event = fc.record({
    agency: fc.constantFrom('NFD', 'N'),
    source: fc.constantFrom('e1', 'e2'),
    epoch: sequential && shape.epochs !== 'none' ? fc.constantFrom('9', '10', '2') : fc.constant(null),
    sequence: sequential ? fc.constantFrom(...SEQUENCES) : fc.constant(null),
    eventId: sequential ? fc.constant(null) : fc.constantFrom('a', 'b', 'c', '1', '01'),
    variant: fc.nat(2),
    incident: fc.constantFrom('I-77', 'I-78'),
    effects,
    impossible: fc.constantFrom(false, false, false, false, false, true),
  });
  return fc.uniqueArray(event, {
    minLength: 1,
    maxLength: 30,
    selector: (one) => `${identityOf(one)} ${one.variant}`,
  });
}

export const anyShape: fc.Arbitrary<ScheduleShape> = fc.record({
  mode: fc.constantFrom('sequence', 'sequence', 'sequence', 'eventId'),
  epochs: fc.constantFrom('none', 'opaque', 'numeric'),
  digest: fc.constantFrom(true, true, true, false),
});

export const anyPolicy: fc.Arbitrary<ModelPolicy> = fc.record({
  windowSeconds: fc.constantFrom(1, 2, 10),
  maxEntries: fc.constantFrom(1, 2, 5, 1000),
  ordering: fc.constantFrom('strict', 'tolerant'),
  maxSequenceJump: fc.constantFrom(null, null, 1n, 5n),
});

/** On and around the borders of the windows above. */
const anyElapsed = fc.constantFrom(0, 1, 500_000, 999_999, 1_000_000, 1_000_001, 2_000_000, 9_000_000, 11_000_000);

/** Hands the events over in any order, any number of times, in batches, with noise between them and crashes. */
function batchesOf(events: readonly ModelEvent[], policies: fc.Arbitrary<ModelPolicy>): fc.Arbitrary<ScheduledBatch[]> {
  const message = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom<ModelMessage[]>(...events) },
    { weight: 1, arbitrary: fc.constantFrom<ModelMessage[]>('malformed', 'ignored') },
  );
  const batch = fc.record({
    messages: fc.array(message, { minLength: 1, maxLength: 8 }),
    crash: fc.constantFrom<Crash[]>('none', 'none', 'none', 'before_commit', 'after_commit'),
    elapsedMicros: anyElapsed,
    policy: policies,
    hints: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  });
  // Half of the feeds have one identity from the first batch on; of the others it is raised somewhere, or not yet.
  const raisedAt = fc.oneof(fc.constant(0), fc.nat(10));
  return fc
    .tuple(fc.array(batch, { minLength: 1, maxLength: 10 }), raisedAt)
    .map(([batches, raised]) => batches.map((one, index) => ({ ...one, version: index < raised ? 1 : 2 })));
}

export function schedulesOf(shape: ScheduleShape, policies: fc.Arbitrary<ModelPolicy>): fc.Arbitrary<Schedule> {
  const feed: ModelFeed = {
    feedId: 7,
    epochOrder: shape.epochs === 'numeric' ? 'numeric' : 'opaque',
    digest: shape.digest,
  };
  return eventsOf(shape, fc.array(anyEffect, { maxLength: 3 }))
    .chain((events) => batchesOf(events, policies))
    .map((batches) => ({ feed, batches }));
}

/** The policy may change between batches. */
export const anySchedule: fc.Arbitrary<Schedule> = fc
  .tuple(
    anyShape,
    fc.oneof(
      anyPolicy.map((one) => fc.constant(one)),
      fc.constant(anyPolicy),
    ),
  )
  .chain(([shape, policies]) => schedulesOf(shape, policies));
