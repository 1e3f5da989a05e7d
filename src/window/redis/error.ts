/** What can be wrong with the Redis behind a window or a wake-up. */

/**
 * - `unreachable`: no connection, or it ended.
 * - `timeout`: connected, but no answer in time.
 * - `unavailable`: it answers that it cannot serve now (loading, master down, busy, cluster down).
 * - `forbidden`: credentials or permissions.
 * - `full`: writes are refused for want of memory.
 * - `read_only`: a replica, or writes are stopped.
 * - `wrong_type`: another program wrote under our keys.
 * - `unsupported`: a command is missing; Redis 6.2 or newer is needed.
 * - `failed`: anything else.
 */
export type RedisErrorCode =
  | 'unreachable'
  | 'timeout'
  | 'unavailable'
  | 'forbidden'
  | 'full'
  | 'read_only'
  | 'wrong_type'
  | 'unsupported'
  | 'failed';

export class RedisError extends Error {
  override readonly name = 'RedisError';

  constructor(
    readonly code: RedisErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * By the error's first word, wherever it stands: Redis 6 wraps the errors of a script in a sentence of its own, Redis 7
 * puts them first. The more telling words come first.
 */
const CODES: ReadonlyArray<readonly [RegExp, RedisErrorCode]> = [
  [/\bOOM\b/, 'full'],
  [/\b(READONLY|MISCONF|NOREPLICAS)\b/, 'read_only'],
  [/\bWRONGTYPE\b/, 'wrong_type'],
  [/\b(NOAUTH|WRONGPASS|NOPERM)\b/, 'forbidden'],
  [/\b(LOADING|MASTERDOWN|BUSY|CLUSTERDOWN|TRYAGAIN)\b/, 'unavailable'],
  [/unknown (redis )?command|ERR syntax error/i, 'unsupported'],
  [/\b(ECONN\w+|ENOTFOUND|EAI_\w+|EPIPE|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)\b/, 'unreachable'],
  // The client's own words for commands that lost their connection.
  [/connection is closed|connection close$|max retries per request|isn't writeable|socket timeout/i, 'unreachable'],
];

/** The one place where an error's text is read. */
export function toRedisError(cause: unknown): RedisError {
  if (cause instanceof RedisError) {
    return cause;
  }
  // Where a name has several addresses, Node rejects with an AggregateError, which has a code but no message.
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const message = (cause instanceof Error ? cause.message : String(cause)) || code || 'unknown error';
  const found = CODES.find(([pattern]) => pattern.test(message) || pattern.test(code));
  return new RedisError(found?.[1] ?? 'failed', message, { cause });
}
