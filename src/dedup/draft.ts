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

interface KnownClaims {
  first: Claim | undefined;
  readonly byDigest: Map<string, Claim>;
}

export class Draft {
  private readonly known = new Map<string, KnownClaims>();
  private readonly ranks = new Map<string, bigint | null>();
  private readonly sourceChanges = new Map<string, Map<string, SourceChange>>();
  private readonly fieldChanges = new Map<string, FieldChange>();
  readonly members: MemberAdded[] = [];
  readonly outbox: Outgoing[] = [];

  constructor(private readonly state: LockedState) {}

  /** The claim of the message's key and digest. */
  originalOf(message: KeyedMessage): Claim | undefined {
    return this.claimsOf(message).byDigest.get(message.claimDigest);
  }

  /** The first claim of the message's key, whatever its digest. */
  firstClaimOf(message: KeyedMessage): Claim | undefined {
    return this.claimsOf(message).first;
  }

  addClaim(message: KeyedMessage, position: number): void {
    const claim = { position, recordedAtMicros: this.state.recordedAtMicros, digest: message.claimDigest };
    const known = this.claimsOf(message);
    known.first ??= claim;
    known.byDigest.set(claim.digest, claim);
  }

  /** Indexed once a key: one batch may bring thousands of payloads under the same key. */
  private claimsOf(message: KeyedMessage): KnownClaims {
    const name = claimKey(message.keyVersion, message.key);
    let known = this.known.get(name);
    if (known === undefined) {
      const read = this.state.claims.get(name) ?? [];
      known = { first: read[0], byDigest: new Map(read.map((claim) => [claim.digest, claim])) };
      this.known.set(name, known);
    }
    return known;
  }

  head(message: KeyedMessage): EpochHead {
    const source = sourceOf(message);
    const epoch = epochOf(message);
    return this.sourceChanges.get(source)?.get(epoch)?.head ?? this.state.sources.get(source)?.get(epoch) ?? UNSEEN;
  }

  /** Highest rank of an epoch of the message's source, or null before the first applied message. */
  currentRank(message: KeyedMessage): bigint | null {
    const source = sourceOf(message);
    let rank = this.ranks.get(source);
    if (rank === undefined) {
      rank = null;
      for (const head of this.state.sources.get(source)?.values() ?? []) rank = higher(rank, head.rank);
      this.ranks.set(source, rank);
    }
    return rank;
  }

  setHead(message: KeyedMessage, head: EpochHead): void {
    const source = sourceOf(message);
    const epoch = epochOf(message);
    const { keyVersion, identity } = message;
    let changes = this.sourceChanges.get(source);
    if (changes === undefined) this.sourceChanges.set(source, (changes = new Map<string, SourceChange>()));
    changes.set(epoch, { keyVersion, agency: identity.agency, sourceId: identity.sourceId, epoch, head });
    this.ranks.set(source, higher(this.currentRank(message), head.rank));
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

/** The larger one; null is none. */
export function higher(a: bigint | null, b: bigint | null): bigint | null {
  return a === null || (b !== null && b > a) ? b : a;
}

function sourceOf(message: KeyedMessage): string {
  return sourceKey(message.keyVersion, message.identity.agency, message.identity.sourceId);
}

function epochOf(message: KeyedMessage): string {
  return message.identity.epoch ?? '';
}
