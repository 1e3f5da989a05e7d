/**
 * Errors that a client may see (design section 8). Everything else is masked: see mask.ts.
 */

/** Closed: clients branch on these. docs/api.md has the table. */
export const API_ERROR_CODES = [
  /** An argument, a variable or a cursor is not acceptable. */
  'BAD_USER_INPUT',
  /** What the arguments name does not exist, or is not to be seen by this reader. */
  'NOT_FOUND',
  'FORBIDDEN',
  'UNAUTHENTICATED',
  /** Somebody else changed it meanwhile; `currentVersion` says what it is now. */
  'VERSION_CONFLICT',
  /** The feed's ledger went back in time: positions of before mean other entries now. */
  'LEDGER_TERM_CHANGED',
  /** The operation is over a limit of depth, cost or tokens. */
  'QUERY_TOO_COMPLEX',
  /** The payloads of one answer, or the fields of an incident, are over the limit. */
  'RESPONSE_TOO_LARGE',
  /** One socket runs as many operations as it may. */
  'TOO_MANY_OPERATIONS',
] as const;

export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

/** What the service itself can come to, see mask.ts. */
export const SERVICE_ERROR_CODES = [
  /** A statement took longer than it may. */
  'QUERY_TIMEOUT',
  /** The database cannot be reached at the moment, or tokens cannot be checked (refused.ts). */
  'SERVICE_UNAVAILABLE',
  'INTERNAL_SERVER_ERROR',
] as const;

/** Of GraphQL itself: errors about the request, found before execution. */
export const REQUEST_ERROR_CODES = [
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
  'BAD_USER_INPUT',
  'BAD_REQUEST',
  'PERSISTED_QUERY_NOT_SUPPORTED',
] as const;

/** Facts for programs, beside the code of an error: JSON values. */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | object>>;

/** The message goes to the client as it is: no SQL, path or host name may be in it. */
export class ApiError extends Error {
  constructor(
    readonly code: ApiErrorCode,
    message: string,
    readonly facts: ErrorFacts = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'ApiError';
  }
}

export function badInput(message: string): ApiError {
  return new ApiError('BAD_USER_INPUT', message);
}
