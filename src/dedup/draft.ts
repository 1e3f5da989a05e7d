/**
 * The state of a batch while it is decided: what was read under the lock, with what the messages so far changed laid
 * over it. Each message sees what was decided for those before it. Private to `decide`.
 */
import type { KeyedMessage } from '../contract/types';
import type { FieldChange, FieldState, MemberAdded } from '../effects/state';
import type { FieldWrite } from '../effects/apply';
import type { Claim, EpochHead, LockedState, Outgoing, SourceChange } from './state';
import { claimKey, fieldKey, sourceKey } from './state';

const UNSEEN: EpochHead = { rank: null, mark: null, highest: null };

const NO_HEADS: ReadonlyMap<string, EpochHead> = new Map();

/** The claims of one key. One batch may bring thousands of payloads under the same key; nearly always it is one. */
export class KeyClaims {
  /** Whatever its digest. */
  first: Claim | undefined;
  private others: Map<string, Claim> | null = null;

  constructor(read: readonly Claim[]) {
    for (const claim of read) this.add(claim);
  }

  /** There is one a digest. */
  of(digest: string): Claim | undefined {
    return this.first?.digest === digest ? this.first : this.others?.get(digest);
  }

  add(claim: Claim): void {
    if (this.first === undefined) this.first = claim;
    else (this.others ??= new Map<string, Claim>()).set(claim.digest, claim);
  }
}

/** The heads of one source. */
export class SourceDraft {
  private readonly changed = new Map<string, EpochHead>();
  /** Highest rank of an epoch, or null before the first applied message. */
  rank: bigint | null = null;

  constructor(
    private readonly named: Pick<SourceChange, 'keyVersion' | 'agency' | 'sourceId'>,
    private readonly read: ReadonlyMap<string, EpochHead>,
  ) {
    for (const head of read.values()) this.rank = higher(this.rank, head.rank);
  }

  head(epoch: string | null): EpochHead {
    const name = epoch ?? '';
    return this.changed.get(name) ?? this.read.get(name) ?? UNSEEN;
  }

  setHead(epoch: string | null, head: EpochHead): void {
    this.changed.set(epoch ?? '', head);
    this.rank = higher(this.rank, head.rank);
  }

  changes(): SourceChange[] {
    return Array.from(this.changed, ([epoch, head]) => ({ ...this.named, epoch, head }));
  }
}

export class Draft {
  private readonly known = new Map<string, KeyClaims>();
  private readonly sources = new Map<string, SourceDraft>();
  private readonly fieldChanges = new Map<string, FieldChange>();
  readonly members: MemberAdded[] = [];
  readonly outbox: Outgoing[] = [];

  constructor(private readonly state: LockedState) {}

  claimsOf(message: KeyedMessage): KeyClaims {
    const name = claimKey(message.keyVersion, message.key);
    let known = this.known.get(name);
    if (known === undefined) this.known.set(name, (known = new KeyClaims(this.state.claims.get(name) ?? [])));
    return known;
  }

  sourceOf({ keyVersion, identity: { agency, sourceId } }: KeyedMessage): SourceDraft {
    const name = sourceKey(keyVersion, agency, sourceId);
    let source = this.sources.get(name);
    if (source === undefined) {
      source = new SourceDraft({ keyVersion, agency, sourceId }, this.state.sources.get(name) ?? NO_HEADS);
      this.sources.set(name, source);
    }
    return source;
  }

  field(incidentId: string, field: string): FieldState | undefined {
    const name = fieldKey(incidentId, field);
    return this.fieldChanges.get(name) ?? this.state.fields.get(name);
  }

  write(incidentId: string, write: FieldWrite, position: number): void {
    const { field, value, member, writer } = write;
    this.fieldChanges.set(fieldKey(incidentId, field), { incidentId, field, value, writer, position });
    if (member !== undefined) this.members.push({ incidentId, field, value: member, position });
  }

  changedSources(): SourceChange[] {
    return [...this.sources.values()].flatMap((source) => source.changes());
  }

  changedFields(): FieldChange[] {
    return [...this.fieldChanges.values()];
  }
}

/** The larger one; null is none. */
export function higher(a: bigint | null, b: bigint | null): bigint | null {
  return a === null || (b !== null && b > a) ? b : a;
}
