/**
 * Contracts at start (design section 7): all files must hold, each alone, and all that will be in force together; then
 * each is put in force if it is new to its feed, all of them or none.
 */
import { readContracts } from './contract-files';
import type { Config } from '../config';
import { formatContractError } from '../contract/check-error';
import { compileContract } from '../contract/decode';
import { loadContract } from '../contract/load';
import { checkContracts } from '../contract/overlap';
import type { LoadedContract } from '../contract/types';
import type { Database } from '../ledger/client';
import { contractsOf, contractsThatDecided } from '../ledger/contract-history';
import { ActivationRefused, activateTogether, contractByDigest, contractsInForce } from '../ledger/feeds';
import type { Activation, ActivationOptions, StoredContract } from '../ledger/feeds';
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
  for (const { contract, warnings } of files) {
    for (const warning of warnings) log.warn({ feed: contract.feed }, warning);
  }
  for (const { loaded, activation } of await putInForce(database, files, { actor: ACTOR, commit: null })) {
    const { file, digest, contract } = loaded;
    const { feed } = contract;
    if (activation.result === 'activated') log.info({ feed, digest }, 'contract activated');
    if (activation.result !== 'drift') continue;
    log.warn({ feed, file }, 'the file is an earlier contract of the feed; the one in force stays');
  }
  const inForce = await contractsInForce(prisma);
  for (const { feed, file } of inForce) {
    if (!names.has(feed)) log.warn({ feed, file }, 'the file is gone; its contract stays in force');
  }
  if (inForce.length === 0) log.warn({ dir: config.contractsDir }, 'there is no contract, so nothing is consumed');
  const feeds: FeedRuntime[] = [];
  // One after another: an embedded database has one connection, and there are few feeds.
  for (const stored of inForce) {
    const active = await activeContract(database, stored, config.maxPayloadBytes);
    feeds.push({ feedId: stored.feedId, name: stored.feed, active, memory: null, reached: new Map() });
  }
  return feeds;
}

export function contractSource(database: Database, maxPayloadBytes: number): ContractSource {
  return {
    load: async (feedId, digest) =>
      activeContract(database, await contractByDigest(database.prisma, feedId, digest), maxPayloadBytes),
  };
}

/**
 * Puts files in force, all or none. What is checked among contracts is what will be in force: for a feed without a file,
 * or with a file of earlier, the contract that stays.
 * @returns what became of each, in their order
 * @throws StartError
 */
export async function putInForce(
  { prisma }: Database,
  files: readonly LoadedContract[],
  options: Pick<ActivationOptions, 'actor' | 'commit' | 'restore'>,
): Promise<{ readonly loaded: LoadedContract; readonly activation: Activation }[]> {
  refuse(checkContracts(files).filter(({ path }) => path === 'feed')); // two files of one feed
  try {
    const activations = await activateTogether(prisma, files, {
      ...options,
      parse: (stored) => reload(stored).contract,
      // An error stands at the later of two: in a file, which can be edited.
      among: (others, coming) => refuse(checkContracts([...others.map(reload), ...coming])),
    });
    return activations.map((activation, index) => ({ loaded: files[index]!, activation })); // one a file
  } catch (error) {
    if (error instanceof ActivationRefused) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

/**
 * Filters that earlier contracts of a feed had and `topics` has not: its session may still be subscribed to them. A
 * contract that this program cannot read any more is passed over.
 */
export async function formerFilters(
  { prisma }: Database,
  feedId: number,
  topics: readonly string[],
): Promise<readonly string[]> {
  const former = new Set<string>();
  for (const { file, sourceText } of await contractsOf(prisma, feedId)) {
    const load = loadContract(file, Buffer.from(sourceText, 'utf8'));
    if (load.ok) for (const filter of load.loaded.contract.topics) former.add(filter);
  }
  for (const filter of topics) former.delete(filter);
  return [...former];
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
