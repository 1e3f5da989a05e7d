/**
 * Bounds of the API, in one place. Each is there against one kind of abuse, and far above what people ask for.
 */
export interface ApiLimits {
  /** Entries on one page (design section 8). */
  readonly maxPageSize: number;
  readonly defaultPageSize: number;
  /** Of an HTTP body or a WebSocket message. */
  readonly maxBodyBytes: number;
  /** Lexical tokens of a document: bounds parsing and validation, which come before every other limit. */
  readonly maxTokens: number;
  /** Nesting of fields, counted through fragments. */
  readonly maxDepth: number;
  /** Fields that an operation can resolve, each page counted in full, each alias by itself. */
  readonly maxCost: number;
  /** Stored payload bytes that one answer may read. */
  readonly maxPayloadBytes: number;
  /** Operations at a time on one socket. */
  readonly maxOperationsPerSocket: number;
  readonly maxSockets: number;
  /** What may lie unsent for one socket before it is cut off. */
  readonly maxBufferedBytes: number;
  /** How long one message may lie unsent before its socket is cut off. */
  readonly stalledAfterMs: number;
  /** Time for `connection_init`. */
  readonly initTimeoutMs: number;
  /** Between two WebSocket pings; a socket that does not answer until the next is dropped. */
  readonly keepAliveMs: number;
  /** Between two looks at the heads of the ledgers, for wake-ups that were lost. */
  readonly pollMs: number;
  /** Pages that all subscriptions together read at a time: the rest of the pool is for queries. */
  readonly maxStreamReads: number;
  /** How long a subscription tries again while the database is away, before it ends with an error. */
  readonly streamRetryMs: number;
}

export const DEFAULT_LIMITS: ApiLimits = {
  maxPageSize: 200,
  defaultPageSize: 50,
  maxBodyBytes: 256 * 1024,
  maxTokens: 2000,
  maxDepth: 12,
  maxCost: 10_000,
  maxPayloadBytes: 16 * 1024 * 1024,
  maxOperationsPerSocket: 20,
  maxSockets: 2500,
  maxBufferedBytes: 1024 * 1024,
  stalledAfterMs: 15_000,
  initTimeoutMs: 3_000,
  keepAliveMs: 12_000,
  pollMs: 1_000,
  maxStreamReads: 2,
  streamRetryMs: 10_000,
};
