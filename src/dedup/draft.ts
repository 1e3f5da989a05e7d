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

export class Draft {
  private readonly newClaims = new Map<string, Claim[]>();
  private readonly sourceChanges = new Map<string, Map<string, SourceChange>>();
  private readonly fieldChanges = new Map<string, FieldChange>();
  readonly members: MemberAdded[] = [];
  readonly outbox: Outgoing[] = [];

  constructor(private readonly state: LockedState) {}

  /** All claims of the message's key, oldest first. */
  claimsOf(message: KeyedMessage): readonly Claim[] {
    const name = claimKey(message.keyVersion, message.key);
    const before = this.state.claims.get(name) ?? [];
    const added = this.newClaims.get(name);
    return added === undefined ? before : [...before, ...added];
  }

  addClaim(message: KeyedMessage, position: number): void {
    const name = claimKey(message.keyVersion, message.key);
    const claim = { position, recordedAtMicros: this.state.recordedAtMicros, digest: message.claimDigest };
    const added = this.newClaims.get(name);
    if (added === undefined) this.newClaims.set(name, [claim]);
    else added.push(claim);
  }

  head(message: KeyedMessage): EpochHead {
    const source = sourceOf(message);
    const epoch = epochOf(message);
    return this.sourceChanges.get(source)?.get(epoch)?.head ?? this.state.sources.get(source)?.get(epoch) ?? UNSEEN;
  }

  /** Highest rank of an epoch of the message's source, or null before the first applied message. */
  currentRank(message: KeyedMessage): bigint | null {
    const source = sourceOf(message);
    let highest: bigint | null = null;
    const consider = (rank: bigint | null) => {
      if (rank !== null && (highest === null || rank > highest)) highest = rank;
    };
    // A changed epoch is seen twice; its rank never changes once it has one.
    for (const head of this.state.sources.get(source)?.values() ?? []) consider(head.rank);
    for (const change of this.sourceChanges.get(source)?.values() ?? []) consider(change.head.rank);
    return highest;
  }

  setHead(message: KeyedMessage, head: EpochHead): void {
    const source = sourceOf(message);
    const epoch = epochOf(message);
    const { keyVersion, identity } = message;
    let changes = this.sourceChanges.get(source);
    if (changes === undefined) this.sourceChanges.set(source, (changes = new Map<string, SourceChange>()));
    changes.set(epoch, { keyVersion, agency: identity.agency, sourceId: identity.sourceId, epoch, head });
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
    return [...this.sourceChanges.values()].flatMap((epochs) => [...epochs.values()]);
  }

  changedFields(): FieldChange[] {
    return [...this.fieldChanges.values()];
  }
}

function sourceOf(message: KeyedMessage): string {
  return sourceKey(message.keyVersion, message.identity.agency, message.identity.sourceId);
}

function epochOf(message: KeyedMessage): string {
  return message.identity.epoch ?? '';
}
