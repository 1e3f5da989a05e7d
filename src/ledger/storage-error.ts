import { isDriverAdapterError } from '@prisma/driver-adapter-utils';
import { sqlState } from './sql-error';

/** Why the store cannot be used. Each asks something else of the person who runs the program. */
export type StorageErrorCode =
  /** The URL is none, or not of Postgres. */
  | 'BAD_URL'
  /** Nobody answers at that address, or the connection went away. */
  | 'UNREACHABLE'
  | 'TLS_FAILED'
  /** User or password is wrong, or the server does not let this user in from here. */
  | 'AUTHENTICATION_FAILED'
  | 'NO_SUCH_DATABASE'
  | 'SERVER_TOO_OLD'
  /** The database is not UTF8. */
  | 'WRONG_ENCODING'
  /** The role may not do what is needed. */
  | 'PRIVILEGE'
  /** Another process kept the migration lock for too long. */
  | 'MIGRATION_LOCKED'
  /** A migration failed now, or did not end earlier. */
  | 'MIGRATION_FAILED'
  /** An applied migration is not the one that this program has under that name. */
  | 'MIGRATION_EDITED'
  | 'DATABASE_NEWER'
  /** Tables of someone else, and none of ours. */
  | 'DATABASE_NOT_EMPTY'
  | 'FOLDER_LOCKED'
  | 'FOLDER_UNUSABLE'
  | 'UNKNOWN';

/** The message is one line for people, without passwords; code branches on `code`. */
export class StorageError extends Error {
  override readonly name: string = 'StorageError';

  constructor(
    readonly code: StorageErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(oneLine(message), options);
  }
}

/** The database has migrations that this program does not: an older program must not write to it. */
export class DatabaseNewerError extends StorageError {
  override readonly name = 'DatabaseNewerError';

  /** @param unknown names of the migrations, in order. */
  constructor(readonly unknown: readonly string[]) {
    super(
      'DATABASE_NEWER',
      `the database is newer than this program: it has ${list(unknown)}, which this program does not know; ` +
        'run the version that made it, or a later one',
    );
  }
}

/**
 * What an error of a driver, of Prisma or of the operating system means for the store.
 *
 * @param what what was tried, e.g. `cannot connect to the database ledger at db:5432`.
 */
export function toStorageError(error: unknown, what: string): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError(codeOf(error), `${what}: ${reasonOf(error)}`, { cause: error });
}

const BY_SQL_STATE: Readonly<Record<string, StorageErrorCode>> = {
  '28000': 'AUTHENTICATION_FAILED',
  '28P01': 'AUTHENTICATION_FAILED',
  '3D000': 'NO_SUCH_DATABASE',
  '42501': 'PRIVILEGE',
  '53300': 'UNREACHABLE',
};

/** What the adapter makes of an error of the socket, which has no SQLSTATE. */
const BY_KIND: Readonly<Record<string, StorageErrorCode>> = {
  DatabaseNotReachable: 'UNREACHABLE',
  ConnectionClosed: 'UNREACHABLE',
  SocketTimeout: 'UNREACHABLE',
  TlsConnectionError: 'TLS_FAILED',
};

function codeOf(error: unknown): StorageErrorCode {
  const state = sqlState(error);
  if (state !== null) {
    // 08: connection exception; 57P: the server is shutting down, starting, or dropped us.
    return BY_SQL_STATE[state] ?? (/^(08|57P)/.test(state) ? 'UNREACHABLE' : 'UNKNOWN');
  }
  const kind = error instanceof Error && isDriverAdapterError(error) ? BY_KIND[error.cause.kind] : undefined;
  if (kind !== undefined) return kind;
  const code = text(error, 'code');
  if (/^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_TLS|ERR_SSL|EPROTO)/.test(code)) {
    return 'TLS_FAILED';
  }
  if (/^E[A-Z_]+$/.test(code)) return 'UNREACHABLE';
  const message = reasonOf(error);
  // pg gives these no code (8.x, lib/connection.js, lib/client.js, pg-pool).
  if (/SSL/.test(message)) return 'TLS_FAILED';
  if (/timeout|terminated|closed|ended/i.test(message)) return 'UNREACHABLE';
  return 'UNKNOWN';
}

/** An AggregateError (a host with several addresses) has an empty message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.map((part: unknown) => reasonOf(part)).join(', ');
  }
  return error instanceof Error ? error.message || text(error, 'code') || error.name : String(error);
}

function text(error: unknown, name: 'code'): string {
  const value = typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;
  return typeof value === 'string' ? value : '';
}

function oneLine(message: string): string {
  return message.replace(/\s*[\r\n]+\s*/g, ' ').trim();
}

function list(names: readonly string[]): string {
  return names.length === 1 ? `migration ${names[0]}` : `migrations ${names.join(', ')}`;
}
