/**
 * The token file: what it says, and who a bearer is. Pure but for the randomness of a new token.
 *
 * One JSON object a line, so that a token is added by appending a line and revoked by deleting one. The file holds
 * SHA-256 hashes alone: a token has 256 random bits, which no dictionary finds, so a slow hash would add nothing.
 * Messages never quote a line, because somebody may have put a token in it.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { AGENCY_ROLES, ROLES, isAgency } from './roles';
import type { Role } from './roles';

/** Whose token it is. */
export interface TokenHolder {
  /** As the audit trail names it. */
  readonly name: string;
  readonly role: Role;
  /** Only entries of these agencies can be seen; null: all. */
  readonly agencies: readonly string[] | null;
  /** Milliseconds since 1970 from which it is refused; null: never. */
  readonly expiresAtMs: number | null;
}

interface StoredToken extends TokenHolder {
  readonly hash: Buffer;
}

export type TokenList = readonly StoredToken[];

export type TokensRead =
  | { readonly ok: true; readonly tokens: TokenList }
  /** Each begins with the number of its line. */
  | { readonly ok: false; readonly problems: readonly string[] };

const MEMBERS = ['name', 'role', 'agencies', 'expires', 'sha256'];
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
const NAME_RULE = '1 to 64 of A-Z a-z 0-9 . _ @ -, the first a letter or digit';
/** RFC 3339 in UTC, to the second. */
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** Empty lines, and lines that begin with `#`, say nothing. */
export function readTokens(text: string): TokensRead {
  const problems: string[] = [];
  const tokens: StoredToken[] = [];
  text.split('\n').forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const read = readLine(trimmed);
    const isTaken =
      typeof read !== 'string' && tokens.some(({ name, hash }) => name === read.name || hash.equals(read.hash));
    if (typeof read === 'string') problems.push(`line ${index + 1}: ${read}`);
    else if (isTaken) problems.push(`line ${index + 1}: its name or hash is on a line before`);
    else tokens.push(read);
  });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, tokens };
}

/**
 * Whose token it is, or why it is nobody's now.
 * Compares with every token, in constant time each, so that the time tells nothing about them.
 */
export function authenticate(
  tokens: TokenList,
  token: string,
  nowMs: number,
): TokenHolder | 'unknown token' | 'expired' {
  const hash = sha256(token);
  let found: StoredToken | null = null;
  for (const stored of tokens) if (timingSafeEqual(stored.hash, hash)) found = stored;
  if (found === null) return 'unknown token';
  if (found.expiresAtMs !== null && found.expiresAtMs <= nowMs) return 'expired';
  const { name, role, agencies, expiresAtMs } = found;
  return { name, role, agencies, expiresAtMs };
}

export interface NewToken {
  /** To be shown once; it can be derived from nothing that is stored. */
  readonly token: string;
  /** For the token file, without the end of line. */
  readonly line: string;
}

/** What is wrong with what a new token was asked to be. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

/** @throws TokenError */
export function createToken(holder: TokenHolder): NewToken {
  const token = `rl_${randomBytes(32).toString('base64url')}`;
  const { name, role, agencies, expiresAtMs } = holder;
  const line = JSON.stringify({
    name,
    role,
    ...(agencies === null ? {} : { agencies }),
    ...(expiresAtMs === null ? {} : { expires: `${new Date(expiresAtMs).toISOString().slice(0, 19)}Z` }),
    sha256: sha256(token).toString('hex'),
  });
  const read = readLine(line);
  if (typeof read === 'string') throw new TokenError(read);
  return { token, line };
}

/** The token, or what is wrong. */
function readLine(line: string): StoredToken | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return 'is no JSON object';
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return 'is no JSON object';
  if (!Object.keys(parsed).every((member) => MEMBERS.includes(member)))
    return `has members beside ${MEMBERS.join(', ')}`;
  const { name, role, agencies = null, expires = null, sha256: hash } = parsed as Record<string, unknown>;
  if (typeof name !== 'string' || !NAME.test(name)) return `name: must be ${NAME_RULE}`;
  const known = ROLES.find((one) => one === role);
  if (known === undefined) return `role: must be one of ${ROLES.join(', ')}`;
  if (agencies !== null && !isAgencies(agencies)) return 'agencies: must be a list of agencies, at least one';
  if (agencies !== null && !AGENCY_ROLES.includes(known)) return `agencies: only for ${AGENCY_ROLES.join(' and ')}`;
  const expiresAtMs = expires === null ? null : timeOf(expires);
  if (Number.isNaN(expiresAtMs)) return 'expires: must be a time like 2030-01-31T00:00:00Z';
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash))
    return 'sha256: must be 64 lower-case hexadecimal digits';
  return { name, role: known, agencies, expiresAtMs, hash: Buffer.from(hash, 'hex') };
}

function isAgencies(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every(isAgency);
}

function timeOf(value: unknown): number {
  return typeof value === 'string' && TIME.test(value) ? Date.parse(value) : Number.NaN;
}

function sha256(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
