import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTokenIn } from '../../src/cli/token';
import { readConfig } from '../../src/config';
import { AccessTokens } from '../../src/ops/access-tokens';
import { Refusal } from '../../src/ops/bearer';
import { AGENCY_ROLES, PERMISSIONS, ROLES, may } from '../../src/ops/roles';
import { TokenFile, TokenFileError } from '../../src/ops/token-file';
import {
  TokenError,
  authenticate,
  createToken,
  readTokens,
  type TokenHolder,
  type TokenList,
} from '../../src/ops/tokens';
import { onCleanup } from '../support/cleanup';
import { until } from '../support/wait';

const VIEWER: TokenHolder = { name: 'floor', role: 'viewer', agencies: null, expiresAtMs: null };
const HASH = 'ab'.repeat(32);

function tokensOf(...lines: string[]): TokenList {
  const read = readTokens(lines.join('\n'));
  if (!read.ok) throw new Error(read.problems.join('\n'));
  return read.tokens;
}

function problemsOf(text: string): readonly string[] {
  const read = readTokens(text);
  return read.ok ? [] : read.problems;
}

function temporaryFile(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-tokens-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

interface Logged {
  readonly fields: object;
  readonly text: string;
}

function silentLog() {
  const lines: Logged[] = [];
  const note = (fields: object, text: string): void => void lines.push({ fields, text });
  return { lines, log: { debug: note, info: note, warn: note, error: note } };
}

describe('a token', () => {
  it('is 256 random bits, and the file knows its hash alone', () => {
    const [one, other] = [createToken(VIEWER), createToken(VIEWER)];
    expect(one.token).toMatch(/^rl_[A-Za-z0-9_-]{43}$/);
    expect(one.token).not.toBe(other.token);
    expect(one.line).not.toContain(one.token.slice(3));
    expect(JSON.parse(one.line)).toEqual({
      name: 'floor',
      role: 'viewer',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it('names its bearer, with role and agencies', () => {
    const holder: TokenHolder = {
      name: 'review',
      role: 'reviewer',
      agencies: ['county-fire', 'a|b c'],
      expiresAtMs: null,
    };
    const [mine, theirs] = [createToken(holder), createToken(VIEWER)];
    const tokens = tokensOf(mine.line, theirs.line);
    expect(authenticate(tokens, mine.token, 0)).toEqual(holder);
    expect(authenticate(tokens, theirs.token, 0)).toEqual(VIEWER);
  });

  it('is refused in every other form', async () => {
    const { token, line } = createToken(VIEWER);
    const path = temporaryFile('tokens');
    writeFileSync(path, line);
    const file = new TokenFile(path, silentLog().log);
    onCleanup(() => file.close());
    const tokens = new AccessTokens(file, null);
    const { sha256 } = JSON.parse(line) as { sha256: string };
    const forms: [form: string | undefined, reason: string][] = [
      [undefined, 'no token'],
      ['', 'no bearer token'],
      [token, 'no bearer token'],
      [`Basic ${token}`, 'no bearer token'],
      ['Bearer ', 'no bearer token'],
      [`Bearer  ${token}`, 'no bearer token'],
      [`Bearer ${token}, Bearer ${token}`, 'no bearer token'],
      [`Bearer ${'x'.repeat(8193)}`, 'too long'],
      [`Bearer ${'x'.repeat(8192)}`, 'unknown token'],
      [`Bearer ${token}x`, 'unknown token'],
      [`Bearer ${token.slice(0, -1)}`, 'unknown token'],
      [`Bearer ${token.toUpperCase()}`, 'unknown token'],
      // The hash that is stored is no token.
      [`Bearer ${sha256}`, 'unknown token'],
    ];
    for (const [form, reason] of forms) expect(await tokens.authenticate(form)).toEqual(new Refusal('refused', reason));
    for (const scheme of ['Bearer', 'bearer']) {
      expect(await tokens.authenticate(`${scheme} ${token}`)).toMatchObject({ name: 'floor', roles: ['viewer'] });
    }
    expect(authenticate([], token, 0)).toBe('unknown token');
  });

  it('is refused from the moment that it expires', () => {
    const expiresAtMs = Date.parse('2030-01-31T00:00:00Z');
    const { token, line } = createToken({ ...VIEWER, expiresAtMs });
    const tokens = tokensOf(line);
    expect(authenticate(tokens, token, expiresAtMs - 1)).toMatchObject({ expiresAtMs });
    expect(authenticate(tokens, token, expiresAtMs)).toBe('expired');
  });
});

describe('a token file', () => {
  it('may have comments and empty lines', () => {
    expect(tokensOf('# the floor', '', `{"name":"a","role":"admin","sha256":"${HASH}"}`, '\r')).toHaveLength(1);
  });

  it('is refused as a whole, with the number of each wrong line and never its content', () => {
    const secret = 'rl_this-is-a-token-that-somebody-pasted';
    const good = `{"name":"a","role":"viewer","sha256":"${HASH}"}`;
    const wrong: readonly (readonly [string, string])[] = [
      [secret, 'is no JSON object'],
      [`["${secret}"]`, 'is no JSON object'],
      [
        good.replace('"name"', `"token":"${secret}","name"`),
        'has members beside name, role, agencies, expires, sha256',
      ],
      [good.replace('"a"', `"${secret} "`), 'name: must be'],
      [good.replace('viewer', 'root'), 'role: must be one of viewer, reviewer, policy-admin, admin'],
      [good.replace('}', ',"agencies":[]}'), 'agencies: must be a list of agencies, at least one'],
      [good.replace('}', ',"agencies":[""]}'), 'agencies: must be a list of agencies, at least one'],
      [good.replace('}', `,"agencies":["${'x'.repeat(513)}"]}`), 'agencies: must be a list of agencies, at least one'],
      [good.replace('}', ',"agencies":["a\\u0000"]}'), 'agencies: must be a list of agencies, at least one'],
      [good.replace('}', ',"agencies":"county-fire"}'), 'agencies: must be a list of agencies, at least one'],
      [good.replace('viewer', 'admin').replace('}', ',"agencies":["x"]}'), 'agencies: only for viewer and reviewer'],
      [good.replace('}', ',"expires":"tomorrow"}'), 'expires: must be a time like'],
      [good.replace('}', ',"expires":"2030-02-31T99:00:00Z"}'), 'expires: must be a time like'],
      [good.replace(HASH, secret), 'sha256: must be 64 lower-case hexadecimal digits'],
      [good.replace(HASH, HASH.toUpperCase()), 'sha256: must be 64 lower-case hexadecimal digits'],
    ];
    const problems = problemsOf(wrong.map(([line]) => line).join('\n'));
    expect(problems).toHaveLength(wrong.length);
    problems.forEach((problem, index) => expect(problem).toContain(`line ${index + 1}: ${wrong[index]?.[1]}`));
    expect(problems.join('\n')).not.toContain(secret);
  });

  it('names and hashes nobody twice', () => {
    const line = (name: string, hash: string) => `{"name":"${name}","role":"viewer","sha256":"${hash}"}`;
    expect(problemsOf([line('a', HASH), line('a', 'cd'.repeat(32)), line('b', HASH)].join('\n'))).toEqual([
      'line 2: its name or hash is on a line before',
      'line 3: its name or hash is on a line before',
    ]);
  });
});

describe('the token file of a running service', () => {
  it('is read again when it changes: who was added comes in, who was deleted does not', async () => {
    const path = temporaryFile('tokens');
    const [one, two] = [createToken({ ...VIEWER, name: 'one' }), createToken({ ...VIEWER, name: 'two' })];
    writeFileSync(path, `${one.line}\n`);
    const { log } = silentLog();
    const file = new TokenFile(path, log, 10);
    onCleanup(() => file.close());
    let changes = 0;
    file.onChange(() => (changes += 1));
    const stateOf = ({ token }: { readonly token: string }) => {
      const holder = file.authenticate(token);
      return typeof holder === 'string' ? holder : holder.name;
    };
    expect([stateOf(one), stateOf(two)]).toEqual(['one', 'unknown token']);

    appendFileSync(path, `${two.line}\n`);
    await until(() => stateOf(two) === 'two', { what: 'the second token' });
    expect(changes).toBe(1);
    // As secret stores do it: another file takes its name.
    writeFileSync(`${path}.new`, `${two.line}\n`);
    renameSync(`${path}.new`, path);
    await until(() => stateOf(one) === 'unknown token', { what: 'the revocation' });
    rmSync(path);
    await until(() => stateOf(two) === 'unknown token', { what: 'the end of all tokens' });
  });

  it('keeps the tokens of before, and says so, while the file is wrong', async () => {
    const path = temporaryFile('tokens');
    const { token, line } = createToken(VIEWER);
    writeFileSync(path, line);
    const { log, lines } = silentLog();
    const file = new TokenFile(path, log, 10);
    onCleanup(() => file.close());
    writeFileSync(path, `${token}\n`);
    await until(() => lines.some(({ text }) => text.includes('is wrong')), { what: 'the complaint' });
    expect(file.authenticate(token)).toMatchObject({ name: 'floor' });
    expect(lines.map(({ fields }) => String((fields as { err?: Error }).err)).join()).not.toContain(token);
  });

  it('must be readable and right at the start', () => {
    const { log } = silentLog();
    const path = temporaryFile('tokens');
    expect(() => new TokenFile(path, log)).toThrow(
      new TokenFileError(`API_TOKENS_FILE: ${path} cannot be read (ENOENT)`),
    );
    writeFileSync(path, '\n{}');
    expect(() => new TokenFile(path, log)).toThrow(`API_TOKENS_FILE: ${path}, line 2: name: must be`);
  });
});

describe('token create', () => {
  const OPTIONS = { role: 'viewer', name: 'floor', agencies: [], expiresInDays: null } as const;

  it('appends the hash to a file for its owner alone, on a line of its own', () => {
    const path = temporaryFile('tokens');
    const first = createTokenIn({ ...OPTIONS, file: path }, 0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    writeFileSync(path, readFileSync(path, 'utf8').trimEnd());
    const second = createTokenIn(
      { ...OPTIONS, name: 'review', role: 'reviewer', agencies: ['x'], expiresInDays: 1, file: path },
      0,
    );
    const tokens = tokensOf(readFileSync(path, 'utf8'));
    expect(authenticate(tokens, first.token, 0)).toMatchObject({ name: 'floor' });
    expect(authenticate(tokens, second.token, 0)).toEqual({
      name: 'review',
      role: 'reviewer',
      agencies: ['x'],
      expiresAtMs: 86_400_000,
    });
    expect(readFileSync(path, 'utf8')).not.toContain(first.token);
  });

  it('leaves a file as it was where the new line would make it wrong', () => {
    const path = temporaryFile('tokens');
    createTokenIn({ ...OPTIONS, file: path }, 0);
    const before = readFileSync(path, 'utf8');
    expect(() => createTokenIn({ ...OPTIONS, file: path }, 0)).toThrow(TokenError);
    expect(() => createTokenIn({ ...OPTIONS, role: 'admin', name: 'b', agencies: ['x'], file: path }, 0)).toThrow(
      'agencies: only for viewer and reviewer',
    );
    // `oidc:` begins the names of others.
    for (const name of ['../x', 'oidc:x']) {
      expect(() => createTokenIn({ ...OPTIONS, name, file: path }, 0)).toThrow('name: must be');
    }
    expect(readFileSync(path, 'utf8')).toBe(before);
    expect(() => createTokenIn({ ...OPTIONS, file: join(path, 'x') }, 0)).toThrow('cannot be written (ENOTDIR)');
  });
});

describe('an address that is not loopback', () => {
  const problem = (env: Record<string, string>): string => {
    try {
      return readConfig(env, () => '').host;
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each(['0.0.0.0', '::', '192.0.2.1', 'ledger.example', '127.0.0.1.example', '128.0.0.1'])(
    'is refused without tokens: %s',
    (HOST) => {
      expect(problem({ HOST })).toContain(
        `HOST: ${HOST} is no loopback address, where anybody could read the ledger; set API_TOKENS_FILE`,
      );
      expect(problem({ HOST, API_TOKENS_FILE: '/tokens' })).toBe(HOST);
    },
  );

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('is none of these: %s', (HOST) => {
    expect(problem({ HOST })).toBe(HOST);
  });

  it.each(['a b', 'x/y', 'http://x'])('must be a host: %s', (HOST) => {
    expect(problem({ HOST, API_TOKENS_FILE: '/tokens' })).toContain('HOST: must be an address or a host name');
  });
});

describe('the role matrix', () => {
  it('is what the documentation says', () => {
    const table = Object.keys(PERMISSIONS).map((permission) => [
      permission,
      ...ROLES.map((role) => (may([role], permission as keyof typeof PERMISSIONS) ? 'yes' : 'no')),
    ]);
    expect(ROLES).toEqual(['viewer', 'reviewer', 'policy-admin', 'admin']);
    expect(table).toEqual([
      ['readDecisions', 'yes', 'yes', 'yes', 'yes'],
      ['readMetrics', 'yes', 'yes', 'yes', 'yes'],
      ['readPayloads', 'no', 'yes', 'no', 'yes'],
      ['resolveHeld', 'no', 'yes', 'no', 'yes'],
      ['changePolicy', 'no', 'no', 'yes', 'yes'],
      ['applyContract', 'no', 'no', 'yes', 'yes'],
      ['openSourceEpoch', 'no', 'no', 'no', 'yes'],
    ]);
    expect(AGENCY_ROLES).toEqual(['viewer', 'reviewer']);
  });
});
