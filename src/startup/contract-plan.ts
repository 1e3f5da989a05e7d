/** What applying contract files would do, and doing it (design section 7): the checks are those of a start. */
import { formatContractError } from '../contract/check-error';
import type { ContractError } from '../contract/check-error';
import { checkContracts } from '../contract/overlap';
import { gradeOf, isPending, planFeed, planWithoutFile } from '../contract/plan';
import type { FeedPlan, Grade } from '../contract/plan';
import type { LoadedContract } from '../contract/types';
import type { Database } from '../ledger/client';
import { ActivationRefused, checkActivation } from '../ledger/feeds';
import type { Activation } from '../ledger/feeds';
import { readInForce } from '../ledger/in-force';
import type { FeedInForce } from '../ledger/in-force';
import { putInForce, reload } from './contracts';
import { StartError } from './parts';

export interface PlannedFeed extends FeedPlan {
  /** The gravest grade of its changes. */
  readonly grade: Grade;
  /** Why it cannot be applied; null: it can. */
  readonly refusal: string | null;
}

export interface ContractsPlan {
  /** By the name of the feed. */
  readonly feeds: readonly PlannedFeed[];
  /** Among the contracts, each of which is right by itself. With one of these nothing is applied. */
  readonly errors: readonly ContractError[];
}

/** @param database null where there is none yet, so that every feed is new */
export async function planContracts(
  database: Database | null,
  files: readonly LoadedContract[],
): Promise<ContractsPlan> {
  const inForce = database === null ? [] : await readInForce(database.prisma, (stored) => reload(stored).contract);
  const byFeed = new Map(inForce.map((feed) => [feed.feed, feed]));
  const names = new Set(files.map(({ contract }) => contract.feed));
  const orphans = inForce.filter(({ feed }) => !names.has(feed));
  const planned = files.map((loaded) => planOne(byFeed.get(loaded.contract.feed) ?? null, loaded));
  const unplanned = orphans.map(({ feed, file }) => withVerdict(planWithoutFile(feed, file), null));
  return {
    feeds: [...planned, ...unplanned].sort((a, b) => (a.feed < b.feed ? -1 : 1)),
    // An error stands at the later contract, which is that of the file.
    errors: checkContracts([...orphans.map(reload), ...files]),
  };
}

/** 0: what is in force is what the files say. 2: somebody has something to do. 1: it cannot be applied. */
export function exitCodeOf({ feeds, errors }: ContractsPlan): 0 | 1 | 2 {
  if (errors.length > 0 || feeds.some(({ refusal }) => refusal !== null)) return 1;
  return feeds.some(isPending) ? 2 : 0;
}

export interface Applied {
  readonly feed: string;
  readonly file: string;
  readonly activation: Activation;
}

/**
 * Puts all files in force, or none where one of them would be refused. Doing it again changes nothing.
 * @throws StartError with all that is wrong
 */
export async function applyContracts(
  database: Database,
  files: readonly LoadedContract[],
  by: { readonly actor: string; readonly commit: string | null },
): Promise<Applied[]> {
  const { feeds, errors } = await planContracts(database, files);
  const refusals = feeds.flatMap(({ refusal }) => (refusal === null ? [] : [refusal]));
  const problems = [...errors.map(formatContractError), ...refusals];
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  const activated = await putInForce(database, files, { ...by, restore: true });
  return activated.map(({ loaded, activation }) => ({ feed: loaded.contract.feed, file: loaded.file, activation }));
}

function planOne(inForce: FeedInForce | null, loaded: LoadedContract): PlannedFeed {
  return withVerdict(planFeed(inForce, loaded), inForce === null ? null : refusalOf(inForce, loaded));
}

function withVerdict(plan: FeedPlan, refusal: string | null): PlannedFeed {
  return { ...plan, grade: gradeOf(plan), refusal };
}

function refusalOf(inForce: FeedInForce, loaded: LoadedContract): string | null {
  if (inForce.digest === loaded.digest) return null;
  try {
    checkActivation(loaded, inForce);
    return null;
  } catch (error) {
    if (error instanceof ActivationRefused) return error.message;
    throw error;
  }
}
