/**
 * Contracts at start (design section 7): all files must hold, each alone and all together, also with the contracts of
 * feeds whose file is gone; then each is put in force if it is new to its feed.
 */
import { readContracts } from './contract-files';
import type { Config } from '../config';
import { formatContractError } from '../contract/check-error';
import { compileContract } from '../contract/decode';
import { loadContract } from '../contract/load';
import { checkContracts } from '../contract/overlap';
import type { FeedContract, LoadedContract } from '../contract/types';
import type { Database } from '../ledger/client';
import { contractsThatDecided } from '../ledger/contract-history';
import { ActivationRefused, activateContract, contractByDigest, contractsInForce } from '../ledger/feeds';
import type { StoredContract } from '../ledger/feeds';
import type { Logger } from '../ops/port';
import type { ActiveContract, ContractSource, FeedRuntime } from '../pipeline/feed';
import { StartError } from './parts';

const ACTOR = 'replay-ledger';

/** @throws StartError with every error of every file */
export async function readContractFiles(dir: string): Promise<readonly LoadedContract[]> {
  const { loaded, errors } = await readContracts(dir);
  if (errors.length > 0) throw new StartError(errors.map(formatContractError).join('\n'));
  return loaded;
}

/** @throws StartError */
export async function activateContracts(
  database: Database,
  files: readonly LoadedContract[],
  config: Config,
  log: Logger,
): Promise<FeedRuntime[]> {
  const { prisma } = database;
  const names = new Set(files.map(({ contract }) => contract.feed));
  const orphans = (await contractsInForce(prisma)).filter(({ feed }) => !names.has(feed));
  for (const { feed, file } of orphans) log.warn({ feed, file }, 'the file is gone; its contract stays in force');
  refuse(checkContracts([...files, ...orphans.map(reload)]));
  for (const loaded of files) await activate(database, loaded, log);
  const inForce = await contractsInForce(prisma);
  if (inForce.length === 0) log.warn({ dir: config.contractsDir }, 'there is no contract, so nothing is consumed');
  const feeds: FeedRuntime[] = [];
  // One after another: an embedded database has one connection, and there are few feeds.
  for (const stored of inForce) {
    const active = await activeContract(database, stored, config.maxPayloadBytes);
    feeds.push({ feedId: stored.feedId, name: stored.feed, active, memory: null });
  }
  return feeds;
}

export function contractSource(database: Database, maxPayloadBytes: number): ContractSource {
  return {
    load: async (feedId, digest) =>
      activeContract(database, await contractByDigest(database.prisma, feedId, digest), maxPayloadBytes),
  };
}

async function activate(database: Database, loaded: LoadedContract, log: Logger): Promise<void> {
  const { feed } = loaded.contract;
  for (const warning of loaded.warnings) log.warn({ feed }, warning);
  try {
    const parse = (stored: StoredContract): FeedContract => reload(stored).contract;
    const { result } = await activateContract(database.prisma, loaded, { actor: ACTOR, commit: null, parse });
    if (result === 'activated') log.info({ feed, digest: loaded.digest }, 'contract activated');
    if (result === 'drift') {
      log.warn({ feed, file: loaded.file }, 'the file is an earlier contract of the feed; the one in force stays');
    }
  } catch (error) {
    if (error instanceof ActivationRefused) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

/** Its history is read after it came into force: from then on nothing more is decided under a lower identity version. */
async function activeContract(
  { prisma }: Database,
  stored: StoredContract,
  maxPayloadBytes: number,
): Promise<ActiveContract> {
  const { contract, digest } = reload(stored);
  const history = contract.identity.version === 1 ? [] : await contractsThatDecided(prisma, stored.feedId);
  const former = history.map((one) => reload(one).contract);
  return { digest, contract, decoder: compileContract(contract, { maxPayloadBytes }, former) };
}

/** A stored contract was valid when it was stored. @throws StartError where this program cannot read it */
export function reload({ file, sourceText }: StoredContract): LoadedContract {
  const load = loadContract(file, Buffer.from(sourceText, 'utf8'));
  if (!load.ok) throw new StartError(`stored contract: ${load.errors.map(formatContractError).join('\n')}`);
  return load.loaded;
}

function refuse(errors: ReturnType<typeof checkContracts>): void {
  if (errors.length > 0) throw new StartError(errors.map(formatContractError).join('\n'));
}
