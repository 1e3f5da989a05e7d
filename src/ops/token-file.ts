/**
 * The token file of a running service: read at the start, and again when it changes, so that adding and revoking need
 * no restart. Polled, because secret stores replace files by renaming links, which watching a file misses.
 *
 * States: loaded → (changed → loaded, or still the old list and a warning while the new file is wrong)* → closed. A file
 * that has become wrong keeps the tokens of before: a typo must not lock everybody out, and it is said in the log. A
 * file that is gone keeps nobody in: deleting it is how one revokes everything.
 */
import { readFileSync, statSync } from 'node:fs';
import type { Logger } from './port';
import { authenticate, readTokens } from './tokens';
import type { TokenList } from './tokens';

/** A revoked token is refused after this time at the latest. */
export const RELOAD_MS = 2_000;

/** The message is for people; it names the file and lines, never their content. */
export class TokenFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenFileError';
  }
}

export class TokenFile {
  private tokens: TokenList;
  private version: string;
  private readonly timer: NodeJS.Timeout;
  private readonly listeners = new Set<() => void>();

  /** @throws TokenFileError */
  constructor(
    private readonly path: string,
    private readonly log: Logger,
    reloadMs = RELOAD_MS,
  ) {
    this.version = versionOf(path);
    this.tokens = load(path);
    if (this.tokens.length === 0)
      log.warn({ file: path }, 'the token file holds no token, so nobody can read anything');
    this.timer = setInterval(() => this.reload(), reloadMs);
    this.timer.unref();
  }

  /** Whose token it is, or why it is nobody's now. */
  authenticate(token: string): ReturnType<typeof authenticate> {
    return authenticate(this.tokens, token, Date.now());
  }

  /** Called after each change, for connections that stay open: ask for their bearers again. Answers what ends it. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  close(): void {
    clearInterval(this.timer);
    this.listeners.clear();
  }

  private reload(): void {
    const version = versionOf(this.path);
    if (version === this.version) return;
    this.version = version;
    try {
      this.tokens = version === GONE ? [] : load(this.path);
    } catch (error) {
      this.log.error({ file: this.path, err: error }, 'the token file is wrong; the tokens of before stay in force');
      return;
    }
    this.log.info({ file: this.path, tokens: this.tokens.length }, 'token file read');
    for (const listener of [...this.listeners]) listener();
  }
}

const GONE = 'gone';

function versionOf(path: string): string {
  const status = statSync(path, { bigint: true, throwIfNoEntry: false });
  return status === undefined ? GONE : `${status.dev}/${status.ino}/${status.size}/${status.mtimeNs}`;
}

function load(path: string): TokenList {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new TokenFileError(
      `API_TOKENS_FILE: ${path} cannot be read (${(error as { code?: string }).code ?? 'unreadable'})`,
    );
  }
  const read = readTokens(text);
  if (!read.ok)
    throw new TokenFileError(read.problems.map((problem) => `API_TOKENS_FILE: ${path}, ${problem}`).join('\n'));
  return read.tokens;
}
