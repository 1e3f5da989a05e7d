/**
 * What must be decided, written from design sections 3, 4 and 6 alone, in the plainest form: it knows everything that
 * ever happened, one event at a time, and shares no code with the product. The tests compare the product with it.
 */

export type ModelEffect =
  | { readonly do: 'increment' | 'advance'; readonly field: string; readonly number: string }
  | { readonly do: 'set'; readonly field: string; readonly json: string }
  | { readonly do: 'append'; readonly field: string; readonly json: string };

/** An event as its producer means it. `variant` stands for the payload: another variant has another digest. */
export interface ModelEvent {
  readonly agency: string;
  readonly source: string;
  /** null in feeds without epochs. */
  readonly epoch: string | null;
  /** null: the feed is in `eventId` mode, and `eventId` identifies. */
  readonly sequence: bigint | null;
  readonly eventId: string | null;
  readonly variant: number;
  readonly incident: string;
  readonly effects: readonly ModelEffect[];
  /** The message asks for something that no incident could take, e.g. an increment by a word. */
  readonly impossible: boolean;
}

/**
 * Identity versions of the feed, with one event for both: under 1 its contract takes a constant for the agency and reads
 * no epoch, so that different events have one identity; under 2 it reads both.
 */
export type IdentityVersion = 1 | 2;

export const FORMER_AGENCY = 'NFD';

/** The event as the contract of that version reads it. What the producer sent stays what it was: so does its digest. */
export function readUnder(version: IdentityVersion, event: ModelEvent): ModelEvent {
  return version === 1 ? { ...event, agency: FORMER_AGENCY, epoch: null } : event;
}

export type ModelMessage = ModelEvent | 'malformed' | 'ignored';

export interface ModelPolicy {
  readonly windowSeconds: number;
  readonly maxEntries: number;
  readonly ordering: 'strict' | 'tolerant';
  readonly maxSequenceJump: bigint | null;
}

export interface ModelFeed {
  readonly feedId: number;
  readonly epochOrder: 'opaque' | 'numeric';
  /** false: `digest: off`. */
  readonly digest: boolean;
}

export interface ModelEntry {
  readonly outcome: string;
  readonly tier: string;
  readonly late: boolean;
  readonly held: boolean;
  /** Of duplicates and conflicts. */
  readonly original: number | null;
  readonly superseded: boolean;
}

/** Decimals as integers in units of 10^-38. */
const SCALE = 38;
const BOUND = 10n ** 76n;

interface Writer {
  readonly feedId: number;
  readonly source: string;
  /** Place among the epochs and sequences of its source; null in `eventId` mode. */
  readonly place: readonly [bigint, bigint] | null;
}

export interface ModelField {
  /** A number counts as its value, so that 1.0 and 1 are one. */
  readonly value: { readonly number: bigint } | { readonly json: string } | { readonly members: ReadonlySet<string> };
  readonly writer: Writer;
}

interface Epoch {
  rank: bigint | null;
  mark: bigint | null;
  highest: bigint;
}

interface Decided {
  readonly digest: string;
  readonly position: number;
  readonly micros: number;
}

const NOT: Omit<ModelEntry, 'outcome'> = { tier: 'NONE', late: false, held: false, original: null, superseded: false };

export class DecisionModel {
  readonly entries: ModelEntry[] = [];
  /** `incident field` → what it holds. */
  readonly fields = new Map<string, ModelField>();
  /** Of the contract in force; a test raises it between two messages. */
  version: IdentityVersion = 2;
  /** `version source` → epoch → its marks. */
  readonly sources = new Map<string, Map<string, Epoch>>();
  /** `version identity` → what was decided for it, in order. */
  private readonly decided = new Map<string, Decided[]>();

  constructor(private readonly feed: ModelFeed) {}

  /** Decides the next message and remembers it. `micros`: when its batch is recorded. */
  step(message: ModelMessage, policy: ModelPolicy, micros: number): ModelEntry {
    const entry = this.outcomeOf(message, policy, micros);
    if (typeof message !== 'string') this.remember(message, entry, micros);
    this.entries.push(entry);
    return entry;
  }

  private outcomeOf(sent: ModelMessage, policy: ModelPolicy, micros: number): ModelEntry {
    if (sent === 'ignored') return { ...NOT, outcome: 'IGNORED' };
    if (sent === 'malformed') return { ...NOT, outcome: 'MALFORMED_REJECTED', held: true };
    const message = readUnder(this.version, sent);
    const before = this.decidedUnder(this.version, sent);
    const former = this.version === 1 ? [] : this.decidedUnder(1, sent);
    const same = [...before, ...former].find(({ digest }) => digest === this.digestOf(sent));
    if (same !== undefined) {
      const near =
        micros - same.micros <= policy.windowSeconds * 1_000_000 &&
        this.entries.length - same.position <= policy.maxEntries;
      return { ...NOT, outcome: 'DUPLICATE_SUPPRESSED', tier: near ? 'WINDOW' : 'LEDGER', original: same.position };
    }
    if (before[0] !== undefined) {
      return { ...NOT, outcome: 'KEY_CONFLICT', held: true, original: before[0].position };
    }
    const below = this.isBelow(message);
    if (below && policy.ordering === 'strict') {
      return { ...NOT, outcome: 'STALE_OUT_OF_ORDER', tier: 'HIGH_WATER_MARK', held: true };
    }
    const failed = { ...NOT, outcome: 'EFFECT_FAILED', held: true };
    if (message.impossible || this.jumps(message, policy.maxSequenceJump)) return failed;
    const changes = this.changesOf(message, below);
    if (changes === null) return failed;
    for (const [field, state] of changes.fields) this.fields.set(field, state);
    this.raise(message);
    return { ...NOT, outcome: 'APPLIED', late: below, superseded: changes.superseded };
  }

  /** Everything decided for the identity that the event has under a version. */
  private decidedUnder(version: IdentityVersion, sent: ModelEvent): readonly Decided[] {
    return this.decided.get(`${version} ${identityOf(readUnder(version, sent))}`) ?? [];
  }

  private remember(sent: ModelEvent, entry: ModelEntry, micros: number): void {
    const event = readUnder(this.version, sent);
    // What is known from a former version leaves no trace in this one.
    if (entry.outcome === 'DUPLICATE_SUPPRESSED' && this.decidedUnder(this.version, sent).length === 0) return;
    if (entry.outcome !== 'DUPLICATE_SUPPRESSED') {
      const decided = { digest: this.digestOf(sent), position: this.entries.length, micros };
      this.decided.set(`${this.version} ${identityOf(event)}`, [...this.decidedUnder(this.version, sent), decided]);
    }
    if (event.sequence === null) return;
    const epoch = this.epochOf(event);
    if (event.sequence > epoch.highest) epoch.highest = event.sequence;
  }

  private digestOf(event: ModelEvent): string {
    return this.feed.digest ? JSON.stringify([event.agency, event.epoch, event.variant]) : '';
  }

  private epochsOf(event: ModelEvent): Map<string, Epoch> {
    const source = `${this.version} ${sourceOf(event)}`;
    const epochs = this.sources.get(source) ?? new Map<string, Epoch>();
    this.sources.set(source, epochs);
    return epochs;
  }

  private epochOf(event: ModelEvent): Epoch {
    const epochs = this.epochsOf(event);
    const epoch = epochs.get(event.epoch ?? '') ?? { rank: null, mark: null, highest: -1n };
    epochs.set(event.epoch ?? '', epoch);
    return epoch;
  }

  /** Where the epoch stands, or would if this message were the first of it to be applied. */
  private rankOf(event: ModelEvent): bigint {
    if (event.epoch === null) return 0n;
    if (this.feed.epochOrder === 'numeric') return BigInt(event.epoch);
    return this.epochOf(event).rank ?? this.highestRank(event) + 1n;
  }

  private highestRank(event: ModelEvent): bigint {
    return [...this.epochsOf(event).values()].reduce(
      (top, { rank }) => (rank !== null && rank > top ? rank : top),
      -1n,
    );
  }

  private isBelow(event: ModelEvent): boolean {
    if (event.sequence === null) return false;
    if (this.rankOf(event) < this.highestRank(event)) return true;
    const { mark } = this.epochOf(event);
    return mark !== null && event.sequence <= mark;
  }

  private jumps(event: ModelEvent, bound: bigint | null): boolean {
    if (event.sequence === null || bound === null) return false;
    const { mark } = this.epochOf(event);
    return mark !== null && event.sequence - mark > bound;
  }

  private raise(event: ModelEvent): void {
    if (event.sequence === null) return;
    const rank = this.rankOf(event);
    const epoch = this.epochOf(event);
    epoch.rank = rank;
    if (epoch.mark === null || event.sequence > epoch.mark) epoch.mark = event.sequence;
  }

  /** null: one of the effects is impossible, so none of them is made. */
  private changesOf(event: ModelEvent, late: boolean): { fields: Map<string, ModelField>; superseded: boolean } | null {
    const fields = new Map<string, ModelField>();
    const place = event.sequence === null ? null : ([this.rankOf(event), event.sequence] as const);
    const writer: Writer = { feedId: this.feed.feedId, source: sourceOf(event), place };
    let superseded = false;
    for (const effect of event.effects) {
      const name = `${event.incident} ${effect.field}`;
      const before = this.fields.get(name);
      const state = fields.get(name) ?? before;
      const value = changed(effect, state?.value);
      if (value === null) return null;
      const yields = late && (effect.do === 'set' || effect.do === 'advance');
      // What the message wrote itself is no reason to yield, nor to write over what stood before.
      if (yields && before !== undefined && !follows(writer, before.writer)) superseded = true;
      else if (value !== state?.value) {
        const newer = late && before !== undefined && follows(before.writer, writer);
        fields.set(name, { value, writer: newer ? before.writer : writer });
      }
    }
    return { fields, superseded };
  }
}

/** The value after an effect; null where it cannot be made. The same object where nothing changes. */
function changed(effect: ModelEffect, value: ModelField['value'] | undefined): ModelField['value'] | null {
  if (effect.do === 'append') {
    if (value !== undefined && !('members' in value)) return null;
    return { members: new Set([...(value?.members ?? []), effect.json]) };
  }
  if (value !== undefined && 'members' in value) return null;
  if (effect.do === 'set') return valueOf(effect.json);
  if (value !== undefined && !('number' in value)) return null;
  const number = units(effect.number);
  if (effect.do === 'advance') return value !== undefined && value.number >= number ? value : { number };
  const sum = (value?.number ?? 0n) + number;
  return sum < BOUND && sum > -BOUND ? { number: sum } : null;
}

/** A field's text as the model holds it. */
export function valueOf(json: string): { readonly number: bigint } | { readonly json: string } {
  return /^-?\d/.test(json) ? { number: units(json) } : { json };
}

/** `-1.5`, `15e-1` → units of 10^-38. @throws where a part would be lost. */
export function units(text: string): bigint {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text);
  if (match === null) throw new Error(`${text} is no decimal`);
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const zeros = SCALE - fraction.length + Number(exponent);
  if (zeros < 0) throw new Error(`${text} has more digits than are kept`);
  return BigInt(`${sign === '-' ? '-' : ''}${whole}${fraction}`) * 10n ** BigInt(zeros);
}

function follows(writer: Writer, last: Writer): boolean {
  if (writer.feedId !== last.feedId || writer.source !== last.source || writer.place === null || last.place === null) {
    return false;
  }
  const [rank, sequence] = last.place;
  return rank === writer.place[0] ? sequence < writer.place[1] : rank < writer.place[0];
}

export function sourceOf(event: ModelEvent): string {
  return JSON.stringify([event.agency, event.source]);
}

export function identityOf(event: ModelEvent): string {
  const { agency, source, epoch, sequence, eventId } = event;
  return JSON.stringify([agency, source, epoch, sequence?.toString() ?? null, eventId]);
}
