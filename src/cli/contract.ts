/** `contract plan`, `apply` and `export`: contracts live in git, and are planned and applied from there (docs/contracts.md). */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Config } from '../config';
import { openEmbeddedDatabase } from '../embedded/database';
import { openDatabase } from '../ledger/client';
import type { Database } from '../ledger/client';
import { Cleanup } from '../ops/cleanup';
import { exportPolicies } from '../startup/contract-export';
import { applyContracts, exitCodeOf, planContracts } from '../startup/contract-plan';
import { readContractFiles } from '../startup/contracts';
import { openStorage } from '../startup/storage';
import { messageOf } from './message';
import { describePlan, planJson } from './contract/describe';

export type Write = (line: string) => void;

/**
 * Prints the difference between what is in force and the files; changes nothing.
 * @returns the exit code: 0 no change, 2 changes, 1 something is wrong
 * @throws StartError, StorageError
 */
export async function planCommand(config: Config, json: boolean, write: Write): Promise<0 | 1 | 2> {
  const files = await readContractFiles(config.contractsDir);
  return withCleanup(async (cleanup) => {
    const plan = await planContracts(await openAsItIs(config, cleanup), files);
    if (json) write(JSON.stringify(planJson(plan), null, 2));
    else describePlan(plan, write);
    return exitCodeOf(plan);
  });
}

export interface ApplyOptions {
  /** null: the user of the operating system. */
  readonly actor: string | null;
  /** null: the one that the folder is checked out at, where it has no local changes. */
  readonly commit: string | null;
}

/** Puts the files in force, all or none. @throws StartError, StorageError */
export async function applyCommand(config: Config, options: ApplyOptions, write: Write): Promise<void> {
  const files = await readContractFiles(config.contractsDir);
  const by = {
    actor: options.actor ?? userInfo().username,
    commit: options.commit ?? (await commitOf(config.contractsDir)),
  };
  await withCleanup(async (cleanup) => {
    const { main } = await openStorage(config, cleanup);
    for (const { feed, file, activation } of await applyContracts(main, files, by)) {
      const done = activation.result === 'activated' ? `contract ${activation.version} is in force` : 'no change';
      write(`${feed} (${file}): ${done}`);
    }
  });
}

/** Writes the policies in force into the files of their feeds. @throws StartError, StorageError */
export async function exportCommand(config: Config, write: Write): Promise<void> {
  const files = await readContractFiles(config.contractsDir);
  await withCleanup(async (cleanup) => {
    const database = await openAsItIs(config, cleanup);
    const exported = database === null ? [] : await exportPolicies(database, files);
    for (const { feed, file, written } of exported) {
      write(`${feed} (${file}): ${written ? 'the policy in force was written' : 'no change'}`);
    }
  });
}

/** Without migrating it, and without making an embedded one that is not there. */
async function openAsItIs(config: Config, cleanup: Cleanup): Promise<Database | null> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === null && !existsSync(join(dataDir, 'database'))) return null;
  const database =
    databaseUrl === null
      ? await openEmbeddedDatabase({ dataDir })
      : await openDatabase({ url: databaseUrl, poolSize: 1, applicationName: 'replay-ledger contract' });
  cleanup.add('database', () => database.close());
  return database;
}

async function withCleanup<T>(work: (cleanup: Cleanup) => Promise<T>): Promise<T> {
  const cleanup = new Cleanup((what, error) => console.error(`${what} could not be closed: ${messageOf(error)}`));
  try {
    return await work(cleanup);
  } finally {
    await cleanup.run();
  }
}

/** null: no repository, no git, or the files are not those of the commit, which must not be named for them. */
async function commitOf(folder: string): Promise<string | null> {
  const git = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)('git', ['-C', folder, ...args], { encoding: 'utf8' })).stdout.trim();
  try {
    const changed = await git('status', '--porcelain', '--', '.');
    return changed === '' ? await git('rev-parse', 'HEAD') : null;
  } catch {
    return null;
  }
}
