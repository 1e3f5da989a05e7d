/**
 * The words of a feed contract and of what it makes of a delivery (design sections 2, 4 and 7).
 * Types only: nothing here runs.
 */

/** One PUBLISH packet that reached us. */
export interface Delivery {
  /** Name of the broker connection, `default` unless the contract names others. */
  readonly broker: string;
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly qos: 0 | 1 | 2;
  /** Recorded, never decided on: it is unreliable in both directions. */
  readonly dup: boolean;
  readonly retained: boolean;
  /** MQTT 5 user properties; empty under 3.1.1. A repeated name has an array. */
  readonly userProperties: Readonly<Record<string, string | readonly string[]>>;
}

export type Ordering = 'strict' | 'tolerant';

/** The dedup policy of a feed; one immutable version of it is named by every entry. */
export interface DedupPolicy {
  readonly windowSeconds: number;
  readonly maxEntries: number;
  readonly ordering: Ordering;
  readonly contiguous: boolean;
  /** Up to 38 digits as text, or null for no bound. */
  readonly maxSequenceJump: string | null;
}

/** Where a value of a message is read. `pointer` and `envelope` are RFC 6901 pointers as written in the contract. */
export type ValueOrigin =
  | { readonly const: string }
  | { readonly pointer: string }
  | { readonly envelope: string }
  | { readonly topicLevel: number }
  | { readonly userProperty: string };

/** Alternatives in order: the first that is present counts. */
export type ValueSource = readonly ValueOrigin[];

export type EpochOrder = 'opaque' | 'numeric';

export type IdentityRule =
  | {
      readonly version: number;
      readonly mode: 'sequence';
      readonly agency: ValueSource;
      readonly source: ValueSource;
      readonly epoch: { readonly value: ValueSource; readonly order: EpochOrder } | null;
      readonly sequence: ValueSource;
    }
  | {
      readonly version: number;
      readonly mode: 'eventId';
      readonly agency: ValueSource;
      readonly source: ValueSource;
      /** One or several parts. */
      readonly eventId: readonly ValueSource[];
    };

/** Pointer → the JSON value (as text of a string, number, boolean or null) that must be there. All must hold. */
export type When = ReadonlyArray<{ readonly pointer: string; readonly equals: string | number | boolean | null }>;

export type EffectRule =
  | { readonly do: 'increment'; readonly when: When; readonly field: string; readonly by: ValueSource }
  | { readonly do: 'set'; readonly when: When; readonly field: string; readonly to: ValueSource }
  | { readonly do: 'append'; readonly when: When; readonly field: string; readonly value: ValueSource }
  | { readonly do: 'advance'; readonly when: When; readonly field: string; readonly to: ValueSource };

export interface FeedContract {
  readonly apiVersion: 'replay-ledger/v1';
  readonly feed: string;
  readonly description: string;
  readonly owner: string;
  readonly topics: readonly string[];
  readonly brokers: readonly string[];
  readonly decode: 'json';
  readonly items: string | null;
  readonly identity: IdentityRule;
  readonly incident: ValueSource | null;
  readonly occurredAt: ValueSource | null;
  /** `off`: the key alone is trusted. */
  readonly digest: 'off' | { readonly ignore: readonly string[] };
  readonly consume: 'owned';
  readonly dedup: DedupPolicy;
  /** `contract`: the policy is changed in the file alone, and the API refuses to. */
  readonly policy: { readonly managedBy: 'contract' | 'api' };
  readonly delivery: { readonly sessionExpirySeconds: number; readonly maxReplayDelaySeconds: number };
  readonly effects: 'off' | readonly EffectRule[];
  readonly forward: { readonly topic: string } | null;
}

/** A contract as it came from a file. */
export interface LoadedContract {
  readonly contract: FeedContract;
  /** SHA-256 of the file's bytes, lower-case hex. */
  readonly digest: string;
  readonly sourceText: string;
  readonly file: string;
  readonly warnings: readonly string[];
}

export interface Identity {
  readonly agency: string;
  readonly sourceId: string;
  /** null in a feed without epochs. */
  readonly epoch: string | null;
  /** Canonical decimal digits without leading zeros; null in `eventId` mode. */
  readonly sequence: string | null;
  /** The parts, in `eventId` mode. */
  readonly eventId: readonly string[] | null;
}

/** A change that an applied message makes to its incident. Values are checked for form already. */
export type PlannedEffect =
  /** `by`: canonical decimal text, at most 38 digits on either side of the point. */
  | { readonly do: 'increment'; readonly field: string; readonly by: string }
  /** `to`: RFC 8785 canonical JSON text of any value. */
  | { readonly do: 'set'; readonly field: string; readonly to: string }
  | { readonly do: 'append'; readonly field: string; readonly value: string }
  | { readonly do: 'advance'; readonly field: string; readonly to: string };

export type EffectPlan =
  | {
      readonly ok: true;
      readonly effects: readonly PlannedEffect[];
      /** What is forwarded downstream once applied, or null. `payload`: the message's own bytes. */
      readonly forward: { readonly topic: string; readonly payload: Uint8Array } | null;
    }
  | { readonly ok: false; readonly reason: string; readonly detail: string };

export interface KeyedMessage {
  readonly kind: 'keyed';
  /** Index in the delivery's `items`; null where the delivery is the message. */
  readonly itemIndex: number | null;
  readonly keyVersion: number;
  /** Idempotency key, 64 lower-case hex digits. */
  readonly key: string;
  readonly identity: Identity;
  /** Of the canonical message, 64 lower-case hex digits. */
  readonly payloadDigest: string;
  /** What claims are compared by: the payload digest, or '' under `digest: off`. */
  readonly claimDigest: string;
  /** null: the contract has none, or this message has none that could be stored. */
  readonly incidentId: string | null;
  /** RFC 3339 in UTC with exactly six fractional digits, or null (also when unreadable). */
  readonly occurredAt: string | null;
  readonly plan: EffectPlan;
  /** What it was under former identity versions of its feed, oldest first; empty where there were none. */
  readonly former: readonly FormerReading[];
}

/** What a former identity version made of a message (design section 7, "Identity of a feed with entries"). */
export type FormerClaim = Pick<KeyedMessage, 'keyVersion' | 'key' | 'claimDigest' | 'identity'>;

/** The message repeats what was decided before only if all of the claims were made. */
export interface FormerReading {
  /** One at least. */
  readonly claims: readonly FormerClaim[];
  /** false: their digests do not cover all of the message, so that it may be a repetition, and may say something new. */
  readonly proves: boolean;
}

export interface MalformedMessage {
  readonly kind: 'malformed';
  readonly itemIndex: number | null;
  /** snake_case code, e.g. `invalid_utf8`, `sequence_missing`. */
  readonly reason: string;
  /** For people; no more than 200 characters. */
  readonly detail: string;
}

export interface IgnoredMessage {
  readonly kind: 'ignored';
  readonly itemIndex: null;
  readonly reason: 'empty_payload' | 'empty_items';
}

/** One event as the contract reads it; every delivery yields at least one. */
export type Message = KeyedMessage | MalformedMessage | IgnoredMessage;
