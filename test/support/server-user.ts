import { spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The unprivileged account that servers run under where we are root. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

let known: ServerUser | null | undefined;

/**
 * Postgres refuses to run as root: `postgres` if that account exists, else `nobody`. null where we are not root, and
 * servers run as ourselves.
 */
export function serverUser(): ServerUser | null {
  if (known === undefined) known = process.getuid?.() === 0 ? findUser() : null;
  return known;
}

function findUser(): ServerUser {
  for (const name of ['postgres', 'nobody']) {
    const uid = accountId('-u', name);
    const gid = accountId('-g', name);
    if (uid !== null && gid !== null && uid !== 0) return { name, uid, gid };
  }
  throw new Error('running as root, and there is neither an account `postgres` nor `nobody` to run servers under');
}

function accountId(flag: '-u' | '-g', name: string): number | null {
  const result = spawnSync('id', [flag, name], { encoding: 'utf8' });
  return result.status === 0 ? Number(result.stdout.trim()) : null;
}

/** Spawn options that drop root. `cwd` is `/` because ours may be closed to the other account. */
export function spawnAsServerUser(): { cwd: string; uid?: number; gid?: number } {
  const user = serverUser();
  return user === null ? { cwd: '/' } : { cwd: '/', uid: user.uid, gid: user.gid };
}

/** Whether the account that servers run under can pass through a folder. */
export function reachableToServers(folder: string): boolean {
  return spawnSync('test', ['-x', folder], spawnAsServerUser()).status === 0;
}

/** Runs a program to its end as the servers' account. @throws with its output if it fails. */
export function runAsServerUser(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...spawnAsServerUser(),
      env: { ...process.env, LC_ALL: 'C', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output.trim()}`));
    });
  });
}

/** A new folder below the system's temporary folder, owned by the servers' account, mode 0700. */
export function makeServerFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), `replay-ledger-${prefix}-`));
  giveToServers(folder);
  return folder;
}

/** Creates a folder where it is missing, and hands it to the servers' account. */
export function ensureServerFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  giveToServers(folder);
}

export function giveToServers(path: string): void {
  const user = serverUser();
  if (user !== null) chownSync(path, user.uid, user.gid);
}
