/** `replay-ledger token create`: a token is shown once; the file keeps its hash. */
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import type { Role } from '../ops/roles';
import { TokenError, createToken, readTokens } from '../ops/tokens';

export interface TokenOptions {
  readonly role: Role;
  /** As the audit trail names the bearer. */
  readonly name: string;
  /** Empty: all. */
  readonly agencies: readonly string[];
  /** null: it does not expire. */
  readonly expiresInDays: number | null;
  /** null: the line is only shown. */
  readonly file: string | null;
}

export interface CreatedToken {
  readonly token: string;
  readonly line: string;
}

const DAY_MS = 86_400_000;

/**
 * Makes a token and appends its line to the file, which is created for its owner alone where it is missing.
 * @throws TokenError
 */
export function createTokenIn(options: TokenOptions, nowMs: number): CreatedToken {
  const { role, name, agencies, expiresInDays, file } = options;
  const created = createToken({
    name,
    role,
    agencies: agencies.length === 0 ? null : agencies,
    expiresAtMs: expiresInDays === null ? null : nowMs + expiresInDays * DAY_MS,
  });
  if (file !== null) append(file, created.line);
  return created;
}

/** Nothing is written where the file would be wrong afterwards: a running service would refuse all of it. */
function append(file: string, line: string): void {
  const handle = open(file);
  try {
    const separator = endsInLine(handle) ? '' : '\n';
    const read = readTokens(`${readFileSync(file, 'utf8')}${separator}${line}\n`);
    if (!read.ok) throw new TokenError(read.problems.map((problem) => `${file}, ${problem}`).join('\n'));
    writeSync(handle, `${separator}${line}\n`);
  } finally {
    closeSync(handle);
  }
}

function open(file: string): number {
  try {
    return openSync(file, 'a+', 0o600);
  } catch (error) {
    throw new TokenError(`${file} cannot be written (${(error as { code?: string }).code ?? 'unknown reason'})`);
  }
}

function endsInLine(handle: number): boolean {
  const { size } = fstatSync(handle);
  if (size === 0) return true;
  const last = Buffer.alloc(1);
  readSync(handle, last, 0, 1, size - 1);
  return last[0] === 0x0a;
}

/** What is printed: the token alone on standard output, so that it can be piped into a secret store. */
export function describeToken({ line }: CreatedToken, { file }: TokenOptions): string {
  return file === null
    ? `Shown this once. Add this line to the file that API_TOKENS_FILE names:\n${line}`
    : `Shown this once. Its hash was added to ${file}; a running service reads it within seconds.`;
}
