/**
 * What Postgres said, dug out of what the driver and Prisma made of it.
 *
 * The code of Prisma itself (P2002, P2010, P2034, P2039 …) depends on whether the statement was raw, on the driver
 * adapter and on the version; the SQLSTATE does not, so that everything here goes by it.
 */

/** How deep causes are followed: Prisma wraps a driver error at most four deep; a cycle must not hang us. */
const MAX_DEPTH = 8;

/**
 * The SQLSTATE of an error: five upper-case letters and digits (PostgreSQL, Appendix A), or null where there is none,
 * as with a lost connection or a transaction that Prisma gave up (P2028).
 */
export function sqlState(error: unknown): string | null {
  return find(error, 0);
}

/**
 * Whether repeating the same statement with the same data must fail again: SQLSTATE classes 22 (data exception) and
 * 23 (integrity constraint violation). Everything else, an error without SQLSTATE too, is about the moment or unknown,
 * and is tried again (design section 3: only data errors make `EFFECT_FAILED`).
 */
export function isDataError(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && (state.startsWith('22') || state.startsWith('23'));
}

/**
 * `meta.driverAdapterError.cause.originalCode` (P2010, P2002, P2039 …), `cause.originalCode` (the adapter's own error,
 * which surfaces from BEGIN and COMMIT), or `code` beside `severity` (pg and PGlite).
 */
function find(error: unknown, depth: number): string | null {
  if (typeof error !== 'object' || error === null || depth > MAX_DEPTH) return null;
  const fields = error as Record<string, unknown>;
  if (isSqlState(fields.originalCode)) return fields.originalCode;
  // `EPIPE` and `P2028` have five characters as well: only a server's error has a severity.
  if (typeof fields.severity === 'string' && isSqlState(fields.code)) return fields.code;
  for (const inner of [fields.meta, fields.driverAdapterError, fields.cause]) {
    const state = find(inner, depth + 1);
    if (state !== null) return state;
  }
  return null;
}

function isSqlState(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9A-Z]{5}$/.test(value);
}
