import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { type DebianPackage, fetchDebianPackages } from './debian-packages';
import { reachableToServers, serverUser, spawnAsServerUser } from './server-user';

export type ServerName = 'postgres' | 'redis' | 'mosquitto';

/** A server that can be started on this machine. */
export interface ServerProgram {
  /** Absolute path of `postgres`, `redis-server` or `mosquitto`; Postgres' other programs lie beside it. */
  readonly path: string;
  /** What its environment needs; empty for installed ones. */
  readonly env: Readonly<Record<string, string>>;
  readonly version: string;
}

export type ServerPrograms = Readonly<Record<ServerName, ServerProgram>>;

interface Kind {
  readonly program: string;
  readonly package: DebianPackage;
  readonly minimum: readonly [number, number];
  readonly versionFlag: string;
  readonly version: RegExp;
  /** What has to lie beside it. */
  readonly beside: readonly string[];
  /** Where it lies in an unpacked package. */
  readonly unpacked: (tree: string) => string[];
}

const KINDS: Readonly<Record<ServerName, Kind>> = {
  postgres: {
    program: 'postgres',
    package: 'postgresql',
    minimum: [14, 0],
    versionFlag: '--version',
    version: /PostgreSQL\) (\d+)(?:\.(\d+))?/,
    beside: ['initdb'],
    unpacked: (tree) => versionedFolders(join(tree, 'usr/lib/postgresql')),
  },
  redis: {
    program: 'redis-server',
    package: 'redis-server',
    minimum: [6, 2],
    versionFlag: '--version',
    version: /v=(\d+)\.(\d+)/,
    beside: [],
    unpacked: (tree) => [join(tree, 'usr/bin')],
  },
  mosquitto: {
    program: 'mosquitto',
    package: 'mosquitto',
    minimum: [2, 0],
    versionFlag: '-h',
    version: /mosquitto version (\d+)\.(\d+)/,
    beside: [],
    unpacked: (tree) => [join(tree, 'usr/sbin')],
  },
};

const NAMES = Object.keys(KINDS) as ServerName[];
const REPOSITORY = resolve(__dirname, '../..');
/** How the global setup hands its findings to the test files. */
const FOUND = 'TEST_SERVER_PROGRAMS';

let found: Promise<ServerPrograms> | null = null;

/**
 * Finds Postgres 14+, Redis 6.2+ and mosquitto 2.0+: on PATH and where Debian and Homebrew put them, else in the cache
 * folder, else fetched into it (Debian and its kin, no rights needed). `REPLAY_LEDGER_CACHE` names the cache folder;
 * `REPLAY_LEDGER_IGNORE_SYSTEM=1` leaves installed servers aside.
 *
 * @throws {MissingServersError} that says what to install. A missing server is an error, never a reason to skip.
 */
export function serverPrograms(): Promise<ServerPrograms> {
  const handed = process.env[FOUND];
  if (handed !== undefined) return Promise.resolve(JSON.parse(handed) as ServerPrograms);
  found ??= locate();
  return found;
}

/** Lets `serverPrograms` of other processes that inherit our environment answer at once. */
export function handOnServerPrograms(programs: ServerPrograms): void {
  process.env[FOUND] = JSON.stringify(programs);
}

export class MissingServersError extends Error {
  override readonly name = 'MissingServersError';

  constructor(missing: readonly ServerName[], reason: unknown) {
    super(
      [
        `Not found: ${missing.map((name) => KINDS[name].program).join(', ')}. Needed are Postgres 14+, Redis 6.2+ and mosquitto 2.0+:`,
        '  Debian, Ubuntu:  sudo apt-get install postgresql redis-server mosquitto',
        '  macOS:           brew install postgresql@16 redis mosquitto',
        `Fetching Debian's packages without installing them did not work: ${reasonText(reason)}`,
      ].join('\n'),
      { cause: reason },
    );
  }
}

function reasonText(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

async function locate(): Promise<ServerPrograms> {
  const cache = cacheFolder();
  const programs = new Map<ServerName, ServerProgram>();
  for (const name of NAMES) {
    const program = installed(name) ?? unpacked(name, cache);
    if (program !== null) programs.set(name, program);
  }
  const missing = NAMES.filter((name) => !programs.has(name));
  if (missing.length > 0) {
    await fetchMissing(missing, cache);
    for (const name of missing) {
      const program = unpacked(name, cache);
      if (program === null) {
        throw new MissingServersError(missing, `the ${KINDS[name].program} there is too old or does not start`);
      }
      programs.set(name, program);
    }
  }
  return Object.fromEntries(programs) as unknown as ServerPrograms; // NAMES are all in it by now
}

async function fetchMissing(missing: readonly ServerName[], cache: string): Promise<void> {
  process.stderr.write(`replay-ledger: fetching ${missing.join(', ')} into ${cache} (nothing is installed)\n`);
  const packages = missing.map((name) => KINDS[name].package);
  try {
    await fetchDebianPackages(packages, cache);
  } catch (error) {
    throw new MissingServersError(missing, error);
  }
}

function installed(name: ServerName): ServerProgram | null {
  if (process.env.REPLAY_LEDGER_IGNORE_SYSTEM === '1') return null;
  const onPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const known = ['/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin', '/opt/homebrew/sbin'];
  const postgres = [
    ...versionedFolders('/usr/lib/postgresql'),
    ...brewPostgres('/opt/homebrew/opt'),
    ...brewPostgres('/usr/local/opt'),
  ];
  return firstUsable(name, [...onPath, ...known, ...(name === 'postgres' ? postgres : [])], {});
}

function unpacked(name: ServerName, cache: string): ServerProgram | null {
  const tree = join(cache, KINDS[name].package);
  if (!existsSync(tree)) return null;
  const env = { LD_LIBRARY_PATH: libraryFolders(tree).join(delimiter) };
  const program = firstUsable(name, KINDS[name].unpacked(tree), env);
  // It does not start, perhaps for another release of the system: away with it at once, to be fetched anew. Later, it
  // might be what another process has fetched meanwhile.
  if (program === null) rmSync(tree, { recursive: true, force: true });
  return program;
}

function firstUsable(name: ServerName, folders: readonly string[], env: Record<string, string>): ServerProgram | null {
  for (const folder of folders) {
    const program = usable(KINDS[name], join(folder, KINDS[name].program), env);
    if (program !== null) return program;
  }
  return null;
}

/** Runs it under the servers' account, which shows at once that it is readable to it, complete and new enough. */
function usable(kind: Kind, path: string, env: Record<string, string>): ServerProgram | null {
  if (!existsSync(path)) return null;
  const real = kind.beside.length > 0 ? realpathSync(path) : path; // redis-server may be a link that goes by its name
  if (!kind.beside.every((other) => existsSync(join(dirname(real), other)))) return null;
  const result = spawnSync(real, [kind.versionFlag], {
    ...spawnAsServerUser(),
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  const match = kind.version.exec(result.stdout ?? '');
  if (match === null) return null;
  const [major, minor] = [Number(match[1]), Number(match[2] ?? 0)];
  const [leastMajor, leastMinor] = kind.minimum;
  if (major < leastMajor || (major === leastMajor && minor < leastMinor)) return null;
  return { path: real, env, version: `${major}.${minor}` };
}

/** `<folder>/<version>/bin`, newest first. */
function versionedFolders(folder: string): string[] {
  const versions = entries(folder).filter((name) => /^\d+$/.test(name));
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(folder, version, 'bin'));
}

function brewPostgres(folder: string): string[] {
  const kegs = entries(folder).filter((name) => /^postgresql@\d+$/.test(name));
  return kegs.sort((a, b) => Number(b.split('@')[1]) - Number(a.split('@')[1])).map((keg) => join(folder, keg, 'bin'));
}

/** Debian keeps libraries in `lib`, `usr/lib` and one level below (`x86_64-linux-gnu`). */
function libraryFolders(tree: string): string[] {
  return ['usr/lib', 'lib']
    .map((folder) => join(tree, folder))
    .flatMap((folder) => [folder, ...entries(folder).map((name) => join(folder, name))])
    .filter((folder) => entries(folder).some((name) => /\.so(\.|$)/.test(name)));
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // absent, or a file
  }
}

/**
 * `REPLAY_LEDGER_CACHE`, else `.cache/servers` of the repository. Where that cannot be made, or the servers' account
 * cannot get there (root's checkout below /root), a folder of ours below the system's temporary folder.
 */
function cacheFolder(): string {
  const wanted = resolve(process.env.REPLAY_LEDGER_CACHE ?? join(REPOSITORY, '.cache/servers'));
  if (canMake(wanted) && (serverUser() === null || reachableToServers(wanted))) return wanted;
  const uid = process.getuid?.() ?? 0;
  const own = join(tmpdir(), `replay-ledger-servers-${uid}`);
  mkdirSync(own, { recursive: true, mode: 0o755 });
  const status = lstatSync(own);
  // Anybody may create that name: what another account can write to is never run.
  if (!status.isDirectory() || status.uid !== uid || (status.mode & 0o022) !== 0) {
    throw new Error(`${own} belongs to another account or is open to others: remove it, or set REPLAY_LEDGER_CACHE`);
  }
  chmodSync(own, 0o755); // also under a strict umask: the servers' account has to read it
  return own;
}

function canMake(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    return true;
  } catch {
    return false; // a checkout that is another account's
  }
}
