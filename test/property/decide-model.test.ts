import * as fc from 'fast-check';
import { decide } from '../../src/dedup/decide';
import type { DecidedBatch, PolicyInForce } from '../../src/dedup/state';
import { isHeld } from '../../src/dedup/state';
import {
  DecisionModel,
  identityOf,
  readUnder,
  units,
  type IdentityVersion,
  type ModelEffect,
  type ModelEvent,
  type ModelMessage,
  type ModelPolicy,
} from '../support/decision-model';
import { modelFields, modelMarks, storeFields, storeMarks } from '../support/decision-compare';
import { DecisionStore, messageOf } from '../support/decision-store';
import {
  anyEffect,
  anySchedule,
  anyShape,
  eventsOf,
  type Schedule,
  type ScheduledBatch,
} from '../support/decision-schedule';

/** LONG=1 takes many more, in some minutes. */
const RUNS = process.env.LONG === '1' ? 20_000 : 300;
jest.setTimeout(1_200_000);
const START_MICROS = 1_700_000_000_000_000;

interface Night {
  readonly model: DecisionModel;
  readonly store: DecisionStore;
  /** Every message that was landed, in order, with what was decided about it. */
  readonly landed: {
    readonly message: ModelMessage;
    readonly version: IdentityVersion;
    readonly decided: DecidedBatch['decisions'][number];
  }[];
  /** Batches that a crash after the commit made the broker deliver again, and what was decided the second time. */
  readonly replays: DecidedBatch[];
}

/** Plays a schedule through `decide` and the model side by side, and compares each decision. */
function play({ feed, batches }: Schedule): Night {
  const night: Night = { model: new DecisionModel(feed), store: new DecisionStore(feed), landed: [], replays: [] };
  let micros = START_MICROS;
  const decideNow = ({ messages, policy, hints, version }: ScheduledBatch): DecidedBatch => {
    night.model.version = version;
    const wire = messages.map((message) => messageOf(message, feed, version));
    const hinted = (index: number) => hints[index % hints.length] === true;
    return decide(night.store.lock(wire, inForce(policy), micros, hinted), wire);
  };
  const land = (batch: ScheduledBatch): DecidedBatch => {
    const decided = decideNow(batch);
    night.store.commit(decided, micros);
    expect(decided.decisions.map(seen)).toEqual(
      batch.messages.map((one) => night.model.step(one, batch.policy, micros)),
    );
    decided.decisions.forEach((one, index) => {
      const message = batch.messages[index] as ModelMessage; // one decision a message
      night.landed.push({ message, version: batch.version, decided: one });
    });
    return decided;
  };
  for (const batch of batches) {
    micros += batch.elapsedMicros;
    // Decided and rolled back: nothing of it may be left anywhere.
    if (batch.crash === 'before_commit') decideNow(batch);
    land(batch);
    if (batch.crash === 'after_commit') night.replays.push(land(batch));
  }
  return night;
}

function inForce({ maxSequenceJump, ...policy }: ModelPolicy): PolicyInForce {
  return { ...policy, version: 1, contiguous: true, maxSequenceJump: maxSequenceJump?.toString() ?? null };
}

function seen({ outcome, tier, late, original, reason }: DecidedBatch['decisions'][number]) {
  return { outcome, tier, late, held: isHeld(outcome), original, superseded: reason === 'superseded' };
}

describe('decide, against a model written from the design alone', () => {
  it('decides every message of every night as the model does, and leaves the same state behind', () => {
    fc.assert(
      fc.property(anySchedule, (schedule) => {
        const { model, store } = play(schedule);
        expect(storeFields(store)).toEqual(modelFields(model));
        expect(storeMarks(store)).toEqual(modelMarks(model));
      }),
      { numRuns: RUNS },
    );
  });

  it('makes one effect an event, loses nothing genuine, and suppresses only what it can name', () => {
    fc.assert(
      fc.property(anySchedule, (schedule) => {
        const { landed, store, replays } = play(schedule);
        const decided = new Map<string, string[]>();
        for (const { message, version, decided: one } of landed) {
          if (typeof message === 'string') continue;
          const name = schedule.feed.digest
            ? `${identityOf(message)} ${message.variant}`
            : `${version} ${identityOf(readUnder(version, message))}`;
          if (one.outcome === 'DUPLICATE_SUPPRESSED') {
            const original = landed[one.original ?? -1];
            if (original === undefined || typeof original.message === 'string') throw new Error('names no original');
            const under = (one: ModelEvent) => identityOf(readUnder(original.version, one));
            const same =
              under(original.message) === under(message) && (original.message === message || !schedule.feed.digest);
            const earlier = original.decided.position < one.position;
            const genuine = original.decided.outcome !== 'DUPLICATE_SUPPRESSED';
            if (!same || !earlier || !genuine)
              throw new Error(`entry ${one.position} repeats no entry ${one.original}`);
          } else decided.set(name, [...(decided.get(name) ?? []), one.outcome]);
        }
        // Each event is applied or held, exactly once, also where its identity changed in between.
        expect([...decided.values()].filter((outcomes) => outcomes.length !== 1)).toEqual([]);
        const applied = landed.filter(({ decided: { outcome } }) => outcome === 'APPLIED');
        const identities = applied.map(({ message, version }) => {
          return `${version} ${identityOf(readUnder(version, message as ModelEvent))}`;
        });
        expect(new Set(identities).size).toBe(applied.length);
        expect(store.appliedKeys).toBe(applied.length);
        expect(store.rows).toHaveLength(landed.length);
        const again = replays.flatMap(({ decisions }) => decisions).filter(({ message }) => message.kind === 'keyed');
        expect(again.filter(({ outcome }) => outcome !== 'DUPLICATE_SUPPRESSED')).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it('decides the same whatever the window knows, and however the deliveries are cut into batches', () => {
    fc.assert(
      fc.property(anySchedule, fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }), (schedule, hints) => {
        const calm = schedule.batches.map((batch) => ({ ...batch, crash: 'none' as const }));
        const whole = play({ ...schedule, batches: calm });
        const alone = calm.flatMap((batch) =>
          batch.messages.map((message, index) => ({
            ...batch,
            messages: [message],
            hints,
            elapsedMicros: index === 0 ? batch.elapsedMicros : 0,
          })),
        );
        const single = play({ ...schedule, batches: alone });
        expect(single.landed.map(({ decided }) => seen(decided))).toEqual(
          whole.landed.map(({ decided }) => seen(decided)),
        );
        expect(storeFields(single.store)).toEqual(storeFields(whole.store));
        expect(storeMarks(single.store)).toEqual(storeMarks(whole.store));
      }),
      { numRuns: RUNS },
    );
  });

  it('ends with the same sums and sets in whatever order the messages came', () => {
    const commuting = anyEffect.filter(
      (effect) =>
        effect.field !== 'mixed' &&
        (effect.do === 'append' || (effect.do === 'increment' && effect.number.length < 10)),
    );
    const tolerant: ModelPolicy = { windowSeconds: 10, maxEntries: 1000, ordering: 'tolerant', maxSequenceJump: null };
    const nights = anyShape
      .chain((shape) =>
        fc.tuple(fc.constant(shape), eventsOf(shape, fc.array<ModelEffect>(commuting, { minLength: 1, maxLength: 3 }))),
      )
      // One body an identity: which of two conflicting ones is applied is a matter of arrival.
      .map(([shape, events]) => ({
        shape,
        events: events.filter(({ variant, impossible }) => variant === 0 && !impossible),
      }))
      .filter(({ events }) => events.length > 1)
      .chain(({ shape, events }) =>
        fc.record({
          shape: fc.constant(shape),
          events: fc.constant(events),
          one: fc.shuffledSubarray(events, { minLength: events.length }),
          other: fc.shuffledSubarray([...events, ...events], { minLength: events.length * 2 }),
        }),
      );
    fc.assert(
      fc.property(nights, ({ shape, events, one, other }) => {
        const feed = {
          feedId: 7,
          epochOrder: shape.epochs === 'numeric' ? 'numeric' : 'opaque',
          digest: shape.digest,
        } as const;
        const batch = { crash: 'none', version: 2, elapsedMicros: 1, policy: tolerant, hints: [true, false] } as const;
        const sums = [one, other].map((messages) => {
          const night = play({ feed, batches: messages.map((message) => ({ ...batch, messages: [message] })) });
          expect(night.store.appliedKeys).toBe(events.length);
          return Object.fromEntries(Object.entries(storeFields(night.store)).map(([name, { value }]) => [name, value]));
        });
        expect(sums[0]).toEqual(sums[1]);
        expect(sums[0]).toEqual(plainSums(events));
      }),
      { numRuns: RUNS },
    );
  });
});

/** Added up without any regard to order, sources or epochs. */
function plainSums(events: readonly ModelEvent[]): Record<string, unknown> {
  const sums: Record<string, unknown> = {};
  for (const { incident, effects } of events) {
    for (const effect of effects) {
      const name = `${incident} ${effect.field}`;
      if (effect.do === 'append')
        sums[name] = [...new Set([...((sums[name] as string[] | undefined) ?? []), effect.json])].sort();
      else if (effect.do === 'increment')
        sums[name] = ((sums[name] as bigint | undefined) ?? 0n) + units(effect.number);
    }
  }
  return sums;
}
