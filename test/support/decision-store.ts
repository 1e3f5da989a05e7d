/**
 * The tables of a feed in memory, as plain as they can be: they answer what `read_batch` answers (only what it lets be
 * seen, not everything that is there) and refuse what the unique indexes refuse.
 */
import { createHash } from 'node:crypto';
import type { FormerClaim, KeyedMessage, Message, PlannedEffect } from '../../src/contract/types';
import type { Claim, DecidedBatch, EpochHead, LockedState, Outcome, PolicyInForce } from '../../src/dedup/state';
import { claimKey, fieldKey, sourceKey } from '../../src/dedup/state';
import type { FieldState } from '../../src/effects/state';
import type { IdentityVersion, ModelEffect, ModelEvent, ModelFeed, ModelMessage } from './decision-model';
import { identityOf, readUnder } from './decision-model';

interface Row {
  readonly outcome: Outcome;
  readonly claimKey: string | null;
  readonly digest: string | null;
  readonly micros: number;
}

/** Claim on a key with a digest: what the partial unique index allows once. */
const CLAIMING: readonly Outcome[] = ['APPLIED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER', 'EFFECT_FAILED'];

export class DecisionStore {
  readonly rows: Row[] = [];
  readonly sources = new Map<string, Map<string, EpochHead>>();
  readonly fields = new Map<string, FieldState>();
  readonly members = new Map<string, Set<string>>();
  private readonly claimed = new Set<string>();
  private readonly applied = new Set<string>();

  constructor(private readonly feed: ModelFeed) {}

  /** @param hinted does the window know where the key of this message was seen? */
  lock(
    messages: readonly Message[],
    policy: PolicyInForce,
    micros: number,
    hinted: (index: number) => boolean,
  ): LockedState {
    const keyed = messages.filter((message): message is KeyedMessage => message.kind === 'keyed');
    return {
      feedId: this.feed.feedId,
      size: this.rows.length,
      recordedAtMicros: micros,
      policy,
      epochOrder: this.feed.epochOrder,
      sources: this.visibleSources(keyed),
      claims: this.visibleClaims(keyed, hinted),
      fields: this.visibleFields(keyed),
    };
  }

  /** @throws where the database would refuse the batch */
  commit(batch: DecidedBatch, micros: number): void {
    for (const { message, outcome, position } of batch.decisions) {
      if (position !== this.rows.length) throw new Error(`position ${position} follows ${this.rows.length} entries`);
      const keyed = message.kind === 'keyed' ? message : null;
      const claims = keyed !== null && CLAIMING.includes(outcome);
      const name = keyed === null ? null : claimKey(keyed.keyVersion, keyed.key);
      if (claims) once(this.claimed, `${name} ${keyed.claimDigest}`);
      if (outcome === 'APPLIED') once(this.applied, `${name}`);
      this.rows.push({ outcome, claimKey: name, digest: claims ? keyed.claimDigest : null, micros });
    }
    for (const { keyVersion, agency, sourceId, epoch, head } of batch.sources) {
      const source = sourceKey(keyVersion, agency, sourceId);
      this.sources.set(source, new Map(this.sources.get(source)).set(epoch, head));
    }
    for (const { incidentId, field, value, writer } of batch.fields) {
      this.fields.set(fieldKey(incidentId, field), { value, writer });
    }
    for (const { incidentId, field, value } of batch.members) {
      const name = fieldKey(incidentId, field);
      this.members.set(name, new Set(this.members.get(name)).add(value));
    }
  }

  get appliedKeys(): number {
    return this.applied.size;
  }

  /** The epochs that the messages name, and the one of the highest rank. */
  private visibleSources(messages: readonly KeyedMessage[]): Map<string, Map<string, EpochHead>> {
    const visible = new Map<string, Map<string, EpochHead>>();
    for (const message of messages) {
      const source = sourceOf(message);
      const epochs = [...(this.sources.get(source) ?? [])];
      const ranks = epochs.map(([, { rank }]) => rank).filter((rank) => rank !== null);
      const shown = epochs.filter(
        ([epoch, { rank }]) =>
          epoch === (message.identity.epoch ?? '') || (rank !== null && ranks.every((other) => other <= rank)),
      );
      if (shown.length > 0) visible.set(source, new Map([...(visible.get(source) ?? []), ...shown]));
    }
    return visible;
  }

  /** Nothing above the highest sequence; of a key whose place the window knew, that entry alone; else all its claims. */
  private visibleClaims(messages: readonly KeyedMessage[], hinted: (index: number) => boolean): Map<string, Claim[]> {
    const positions = new Map<string, Set<number>>();
    const look = (claim: FormerClaim, isHinted: boolean): void => {
      const { sequence, epoch } = claim.identity;
      const highest = this.sources.get(sourceOf(claim))?.get(epoch ?? '')?.highest ?? null;
      if (sequence !== null && (highest === null || BigInt(sequence) > highest)) return;
      const name = claimKey(claim.keyVersion, claim.key);
      const all = this.rows.flatMap((row, at) => (row.claimKey === name && row.digest !== null ? [at] : []));
      const hit = all.filter((at) => this.rows[at]?.digest === claim.claimDigest);
      const seen = isHinted && hit.length > 0 ? hit : all;
      positions.set(name, new Set([...(positions.get(name) ?? []), ...seen]));
    };
    messages.forEach((message, index) => {
      for (const claim of [message, ...message.former.flatMap(({ claims }) => claims)]) look(claim, hinted(index));
    });
    return new Map([...positions].map(([name, at]) => [name, this.claimsAt(at)]));
  }

  private claimsAt(positions: ReadonlySet<number>): Claim[] {
    return [...positions]
      .sort((a, b) => a - b)
      .map((position) => {
        const row = this.rows[position];
        if (row === undefined || row.digest === null) throw new Error(`entry ${position} claims nothing`);
        return { position, recordedAtMicros: row.micros, digest: row.digest };
      });
  }

  private visibleFields(messages: readonly KeyedMessage[]): Map<string, FieldState> {
    const names = messages.flatMap(({ incidentId, plan }) =>
      incidentId === null || !plan.ok ? [] : plan.effects.map(({ field }) => fieldKey(incidentId, field)),
    );
    return new Map(
      names.flatMap((name) => {
        const state = this.fields.get(name);
        return state === undefined ? [] : [[name, state] as const];
      }),
    );
  }
}

function sourceOf({ keyVersion, identity }: FormerClaim): string {
  return sourceKey(keyVersion, identity.agency, identity.sourceId);
}

function once(taken: Set<string>, name: string): void {
  if (taken.has(name)) throw new Error(`${name} is taken: a unique index refuses it`);
  taken.add(name);
}

/** A message as `contract/` would hand it over. Keys and digests are of the model's own making. */
export function messageOf(event: ModelMessage, feed: ModelFeed, version: IdentityVersion): Message {
  if (event === 'ignored') return { kind: 'ignored', itemIndex: null, reason: 'empty_payload' };
  if (event === 'malformed') return { kind: 'malformed', itemIndex: null, reason: 'invalid_json', detail: 'broken' };
  const payloadDigest = sha256(`${identityOf(event)} ${event.variant}`);
  const claimDigest = feed.digest ? payloadDigest : '';
  return {
    kind: 'keyed',
    itemIndex: null,
    ...claimUnder(version, event, claimDigest),
    payloadDigest,
    incidentId: event.incident,
    occurredAt: null,
    plan: planOf(event),
    former: version === 1 ? [] : [{ claims: [claimUnder(1, event, claimDigest)], proves: true }],
  };
}

function claimUnder(keyVersion: IdentityVersion, event: ModelEvent, claimDigest: string): FormerClaim {
  const read = readUnder(keyVersion, event);
  const identity = {
    agency: read.agency,
    sourceId: read.source,
    epoch: read.epoch,
    sequence: read.sequence?.toString() ?? null,
    eventId: read.eventId === null ? null : [read.eventId],
  };
  return { keyVersion, key: sha256(identityOf(read)), claimDigest, identity };
}

function planOf(event: ModelEvent): KeyedMessage['plan'] {
  if (event.impossible) return { ok: false, reason: 'not_a_number', detail: 'a word' };
  return { ok: true, effects: event.effects.map(plannedOf), forward: null };
}

function plannedOf(effect: ModelEffect): PlannedEffect {
  const { field } = effect;
  switch (effect.do) {
    case 'increment':
      return { do: 'increment', field, by: effect.number };
    case 'advance':
      return { do: 'advance', field, to: effect.number };
    case 'set':
      return { do: 'set', field, to: effect.json };
    case 'append':
      return { do: 'append', field, value: effect.json };
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
