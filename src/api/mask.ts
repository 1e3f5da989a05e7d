/**
 * What a client sees of an error: a code, a message that was written for clients, and a correlation id. Everything that
 * was not written for clients stays in the log, under that id.
 */
import { GraphQLError } from 'graphql';
import type { GraphQLFormattedError } from 'graphql';
import { sqlState } from '../ledger/sql-error';
import { ApiError, REQUEST_ERROR_CODES } from './errors';
import type { ApiErrorCode, ErrorFacts, SERVICE_ERROR_CODES } from './errors';
import type { ApiLog } from './log';

export interface MaskOptions {
  readonly correlationId: string;
  /** Suggestions ("Did you mean …") tell the schema; they are left in development alone. */
  readonly development: boolean;
  readonly log: ApiLog;
}

/** Their messages quote the request and the schema alone. */
const REQUEST_CODES: ReadonlySet<string> = new Set(REQUEST_ERROR_CODES);
const QUERY_CANCELED = '57014';
const SUGGESTION = / ?Did you mean [^?]*\?/g;
const TOO_MANY_TOKENS = /contains more tha[nt] \d+ tokens/;
const MAX_CHAIN = 8;

interface Verdict {
  readonly code: ApiErrorCode | (typeof SERVICE_ERROR_CODES)[number] | (typeof REQUEST_ERROR_CODES)[number];
  readonly message: string;
  readonly facts?: ErrorFacts;
  /** How the log takes it; null: the client's own mistake. */
  readonly level: 'warn' | 'error' | null;
}

/** @param error as thrown, or as GraphQL wrapped it */
export function maskError(error: unknown, options: MaskOptions): GraphQLFormattedError {
  const verdict = judge(error);
  const { correlationId, log, development } = options;
  if (verdict.level !== null) log[verdict.level]({ err: error, correlationId, code: verdict.code }, 'request failed');
  const message = development ? verdict.message : verdict.message.replace(SUGGESTION, '');
  const { locations, path } = error instanceof GraphQLError ? error : { locations: undefined, path: undefined };
  return {
    message,
    ...(locations === undefined ? {} : { locations }),
    ...(path === undefined ? {} : { path }),
    extensions: { code: verdict.code, correlationId, ...verdict.facts },
  };
}

function judge(error: unknown): Verdict {
  const chain = causesOf(error);
  const own = chain.find((cause) => cause instanceof ApiError);
  if (own !== undefined) return { code: own.code, message: own.message, facts: own.facts, level: null };
  const request = judgeRequest(error, chain);
  if (request !== null) return request;
  const cause = chain[chain.length - 1] ?? error;
  if (sqlState(cause) === QUERY_CANCELED) {
    return { code: 'QUERY_TIMEOUT', message: 'the query took too long: ask for less', level: 'warn' };
  }
  if (isUnavailable(cause)) {
    return { code: 'SERVICE_UNAVAILABLE', message: 'the ledger cannot be read at the moment', level: 'warn' };
  }
  return { code: 'INTERNAL_SERVER_ERROR', message: 'internal error', level: 'error' };
}

/** Errors of GraphQL itself. What has a path was thrown by a resolver, whatever it claims to be. */
function judgeRequest(error: unknown, chain: readonly unknown[]): Verdict | null {
  if (!(error instanceof GraphQLError) || !chain.every((cause) => cause instanceof GraphQLError)) return null;
  const { message, extensions } = error;
  if (error.path !== undefined) {
    // An argument whose variable held what its type does not allow shows only when the field is resolved.
    const inner = chain[chain.length - 1];
    const isArgument = inner instanceof GraphQLError && /^Argument "\w+" (?:of|has) /.test(inner.message);
    return isArgument ? { code: 'BAD_USER_INPUT', message, level: null } : null;
  }
  if (TOO_MANY_TOKENS.test(message)) {
    return { code: 'QUERY_TOO_COMPLEX', message: 'the document has too many tokens', level: null };
  }
  const code = extensions.code ?? 'GRAPHQL_VALIDATION_FAILED';
  return isRequestCode(code) ? { code, message, level: null } : null;
}

function isRequestCode(code: unknown): code is (typeof REQUEST_ERROR_CODES)[number] {
  return typeof code === 'string' && REQUEST_CODES.has(code);
}

/** The error and what it wraps, outermost first. */
function causesOf(error: unknown): unknown[] {
  const chain: unknown[] = [];
  let current: unknown = error;
  while (current !== undefined && current !== null && chain.length < MAX_CHAIN && !chain.includes(current)) {
    chain.push(current);
    current = current instanceof GraphQLError ? current.originalError : undefined;
  }
  return chain;
}

/**
 * Whether the database is away, and not the statement wrong. With SQLSTATE: connection exceptions, lack of resources,
 * shutdown (classes 08, 53, 57P). Without: statements are raw, so what Prisma reports came from the connection.
 */
function isUnavailable(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== null) return /^(?:08|53|57P)/.test(state);
  if (!(error instanceof Error) || error.name === 'PrismaClientValidationError') return false;
  // A connection that ended in the middle comes as a plain Error with Prisma's version on it.
  return /^(?:PrismaClient|DriverAdapter)/.test(error.name) || 'clientVersion' in error;
}
