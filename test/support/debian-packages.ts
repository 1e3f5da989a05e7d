import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names of Debian's packages, as asked of apt. */
export type DebianPackage = 'postgresql' | 'redis-server' | 'mosquitto';

/** What the servers themselves are in. Everything else that apt would install beside them is libraries, or not needed. */
const SERVER_PACKAGES = /^(postgresql-\d+|redis-server|redis-tools|mosquitto)$/;
const LIBRARIES = /^(lib.+|zlib1g)$/;
/** The C library must be the machine's own, or nothing starts; LLVM (100 MB) serves only `jit`, Perl only maintainer scripts. */
const UNNEEDED_LIBRARIES =
  /^lib(c6|c-.+|perl.+|.+-perl|llvm.+|z3-.+|pam-modules.*|pam-runtime|semanage.+|sepol.+|gdbm.+)$/;

/**
 * Fetches packages and what they need by the machine's own apt sources, and unpacks each into `<cache>/<name>`. Nothing
 * is installed and no right beyond the cache folder is needed: apt works on a state and a cache of its own, with an
 * empty list of installed packages, so that what the machine has does not matter.
 *
 * Safe against a second process doing the same: each works in a folder of its own and the last step is a rename, which
 * only the first one wins; the other then uses what it finds.
 *
 * @returns the folder of each package.
 * @throws with apt's own words if apt is missing or fails.
 */
export async function fetchDebianPackages(names: readonly DebianPackage[], cache: string): Promise<string[]> {
  const work = mkdtempSync(join(cache, 'fetch-'));
  try {
    const apt = prepareApt(work);
    await run('apt-get', [...apt, '-q', 'update'], work);
    const folders: string[] = [];
    for (const name of names) folders.push(await fetchOne(name, apt, work, cache));
    return folders;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function fetchOne(name: DebianPackage, apt: readonly string[], work: string, cache: string): Promise<string> {
  const plan = await run('apt-get', [...apt, '--simulate', 'install', name], work);
  const wanted = [...plan.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? '').filter(isNeeded);
  const debs = join(work, 'debs', name);
  mkdirSync(debs, { recursive: true });
  await run('apt-get', [...apt, '-q', 'download', ...wanted], debs);

  const tree = join(work, name);
  mkdirSync(tree);
  for (const file of readdirSync(debs)) await run('dpkg-deb', ['--extract', join(debs, file), tree], work);
  chmodSync(tree, 0o755); // also under a strict umask: the servers' account has to read it

  const target = join(cache, name);
  try {
    renameSync(tree, target);
  } catch (error) {
    if (!existsSync(target)) throw error;
  }
  return target;
}

function isNeeded(name: string): boolean {
  return SERVER_PACKAGES.test(name) || (LIBRARIES.test(name) && !UNNEEDED_LIBRARIES.test(name));
}

/** Arguments that keep apt inside `work`. The machine's sources, keys and proxy settings still apply. */
function prepareApt(work: string): string[] {
  for (const folder of ['state/lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(work, folder), { recursive: true });
  }
  writeFileSync(join(work, 'status'), '');
  const quoted = (folder: string): string => `"${join(work, folder)}"`;
  const settings = [
    `Dir::State ${quoted('state')};`,
    `Dir::State::status ${quoted('status')};`,
    `Dir::Cache ${quoted('cache')};`,
    'Debug::NoLocking "1";',
    'APT::Sandbox::User "";', // apt's own account cannot write here
    'APT::Install-Recommends "0";',
    'Acquire::Languages "none";',
    'Acquire::Retries "3";',
    'APT::Get::AllowUnauthenticated "0";',
    // Hooks of the machine act on its real cache, and fail without its rights.
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
  ];
  const file = join(work, 'apt.conf');
  writeFileSync(file, `${settings.join('\n')}\n`);
  return ['-c', file];
}

function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    child.once('error', (error) => reject(new Error(`${command} cannot be run: ${error.message}`)));
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${command} ended with ${code}: ${(errors || output).trim().slice(-2_000)}`));
    });
  });
}
