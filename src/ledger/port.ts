/**
 * What the pipeline needs of the ledger (design section 5, steps 2 to 7). `store.ts` implements it on Postgres.
 */
import type { PolicyInForce, LockedState } from '../dedup/state';
import type { SourceChange, Outgoing } from '../dedup/state';
import type { FieldChange, MemberAdded } from '../effects/state';
import type { LedgerEntry } from './entry';

/** A key to look up among the claims. */
export interface WantedKey {
  readonly keyVersion: number;
  readonly key: string;
  readonly claimDigest: string;
  readonly agency: string;
  readonly sourceId: string;
  /** '' without epochs. */
  readonly epoch: string;
  readonly sequence: string | null;
  /** Where the window saw the key. Counts only if the entry there has this key version, key and digest. */
  readonly hint: number | null;
}

export interface ReadRequest {
  readonly feedId: number;
  /** Term of the hints; null where there are none. */
  readonly hintTerm: number | null;
  /** Incidents to create or lock. */
  readonly incidents: readonly string[];
  readonly fields: readonly { readonly incidentId: string; readonly field: string }[];
  /** Ledger sizes whose last leaf is wanted. */
  readonly remembered: readonly number[];
  readonly keys: readonly WantedKey[];
  /** What the messages were under former identity versions: their claims are wanted, not the heads of their sources. */
  readonly formerKeys: readonly WantedKey[];
}

export interface Locked {
  readonly term: number;
  readonly size: number;
  readonly recordedAtMicros: number;
  readonly policy: PolicyInForce;
  /** Digest of the contract in force. */
  readonly contractDigest: string;
  readonly sources: LockedState['sources'];
  readonly claims: LockedState['claims'];
  readonly fields: LockedState['fields'];
  /** Ledger size → leaf hash of its last entry; sizes beyond the head are absent. */
  readonly leaves: ReadonlyMap<number, string>;
}

export interface StoredPayload {
  readonly bytesDigest: string;
  /** null: larger than the limit, so only digest and size are kept. */
  readonly bytes: Uint8Array | null;
  readonly sizeBytes: number;
}

export interface EntryToWrite {
  readonly entry: LedgerEntry;
  readonly leafHash: string;
  /** Key under which it counts as applied, or null. */
  readonly appliedKey: string | null;
}

export interface BatchToWrite {
  readonly id: string;
  readonly feedId: number;
  readonly term: number;
  /** JSON object that says why a new term opens, or null. */
  readonly termOpened: string | null;
  readonly firstPosition: number;
  readonly recordedAtMicros: number;
  /** Messages, counted when they were decoded. */
  readonly received: number;
  readonly deliveries: number;
  readonly policyVersion: number;
  readonly contractDigest: string;
  readonly entries: readonly EntryToWrite[];
  readonly sources: readonly SourceChange[];
  readonly fields: readonly FieldChange[];
  readonly members: readonly MemberAdded[];
  readonly outbox: readonly Outgoing[];
}

export interface LedgerTransaction {
  /** Locks the feed's head, then the incidents, and reads. Once a transaction, first. */
  read(request: ReadRequest): Promise<Locked>;
  /** Bytes that came, each once; they are kept whatever is decided, so this can be under way while it is. */
  store(feedId: number, payloads: readonly StoredPayload[]): Promise<void>;
  write(batch: BatchToWrite): Promise<void>;
}

/**
 * DATA: the database refused a value (SQLSTATE class 22 or 23); repeating it would fail again.
 * IN_DOUBT: the answer to COMMIT is not known; `committed()` tells.
 * TIMEOUT: it took too long; nothing was written, and a smaller batch may fit.
 * UNAVAILABLE: anything else (connection, deadlock); nothing was written, and it can be tried again.
 */
export type LedgerErrorCode = 'DATA' | 'IN_DOUBT' | 'TIMEOUT' | 'UNAVAILABLE';

export class LedgerError extends Error {
  /** Of IN_DOUBT: what it is once it is known that nothing was committed. Otherwise the code itself. */
  readonly ifNotCommitted: LedgerErrorCode;

  constructor(
    readonly code: LedgerErrorCode,
    message: string,
    /** SQLSTATE, where the database gave one. */
    readonly sqlState: string | null,
    options: { readonly cause?: unknown; readonly ifNotCommitted?: LedgerErrorCode } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'LedgerError';
    this.ifNotCommitted = options.ifNotCommitted ?? code;
  }
}

export interface LedgerStore {
  /**
   * Runs `work` in one transaction and commits it. What `work` itself throws comes out as it is, rolled back.
   * @throws LedgerError
   */
  transact<T>(work: (transaction: LedgerTransaction) => Promise<T>): Promise<T>;
  /**
   * Was the batch committed? Asked under the lock of the feed's head: while it is held no transaction of that batch can
   * still be on its way to the end.
   * @throws LedgerError
   */
  committed(feedId: number, batchId: string): Promise<boolean>;
}

export interface OutboxRow {
  readonly position: number;
  readonly term: number;
  readonly topic: string;
  readonly key: string;
  readonly payload: Uint8Array;
}

export interface Outbox {
  /** The first rows that are not sent, in order of position. */
  unsent(feedId: number, limit: number): Promise<OutboxRow[]>;
  /** Marks everything up to and including `position` as sent: always a prefix. */
  markSent(feedId: number, position: number): Promise<void>;
}

export interface LeaseRow {
  readonly name: string;
  readonly owner: string;
}

export interface Leases {
  /** Takes the lease if it is free, expired or ours already, and extends it. Answers whether we hold it now. */
  acquire(name: string): Promise<boolean>;
  /** Extends the lease if it is ours; never takes a free one. Answers whether we hold it now. */
  renew(name: string): Promise<boolean>;
  /** Gives it back, if it is ours. */
  release(name: string): Promise<void>;
  /** Leases that are held by anyone now. */
  held(): Promise<LeaseRow[]>;
}
