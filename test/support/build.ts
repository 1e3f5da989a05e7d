import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const REPOSITORY = resolve(__dirname, '../..');
/** What the build reads, besides its own configuration. */
const SOURCES = ['src', 'prisma', 'scripts', 'tsconfig.json', 'package.json'];
/** Written by the build itself. */
const GENERATED = join(REPOSITORY, 'src/generated');

/** The command line program that spawned tests run. */
export const MAIN = join(REPOSITORY, 'dist/main.js');

/**
 * Builds the product where `dist/main.js` is missing or older than what it is built from: a test that spawns it must
 * not judge yesterday's code. `REPLAY_LEDGER_TEST_BUILD=0` leaves it as it is.
 *
 * @throws with the end of the build's output if it fails.
 */
export function buildIfStale(): void {
  if (process.env.REPLAY_LEDGER_TEST_BUILD === '0' || !hasBuildScript()) return;
  const built = existsSync(MAIN) ? statSync(MAIN).mtimeMs : 0;
  const newest = Math.max(...SOURCES.map((name) => newestChange(join(REPOSITORY, name))));
  if (built >= newest) return;
  const result = spawnSync('npm', ['run', '--silent', 'build'], { cwd: REPOSITORY, encoding: 'utf8' });
  if (result.status === 0) return;
  rmSync(MAIN, { force: true }); // the compiler writes it in spite of errors, and the next run would take it for good
  throw new Error(
    `npm run build failed (REPLAY_LEDGER_TEST_BUILD=0 tests what dist/ holds):\n${`${result.stdout}${result.stderr}`.trim().slice(-4_000)}`,
  );
}

function hasBuildScript(): boolean {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    scripts?: { build?: string };
  };
  return manifest.scripts?.build !== undefined;
}

function newestChange(path: string): number {
  if (path === GENERATED || !existsSync(path)) return 0;
  const status = statSync(path);
  if (!status.isDirectory()) return status.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newestChange(join(path, name))));
}
