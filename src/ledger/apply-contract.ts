/**
 * Puts the text of a contract in force, as the API does it (design sections 7 and 8): the checks are those of a start, and
 * every attempt is an administrative event, also one that is refused.
 */
import type { PrismaClient } from '../generated/prisma/client';
import { formatContractError } from '../contract/check-error';
import type { ContractError } from '../contract/check-error';
import { loadContract } from '../contract/load';
import { checkContracts } from '../contract/overlap';
import { planFeed } from '../contract/plan';
import type { FeedPlan } from '../contract/plan';
import type { LoadedContract } from '../contract/types';
import { ActivationRefused, activateContract, checkActivation, contractsInForce } from './feeds';
import type { StoredContract } from './feeds';
import { readInForce } from './in-force';

export interface ContractToApply {
  readonly text: string;
  /** Name of the file, without a folder; for messages and the history. */
  readonly file: string;
  readonly actor: string;
  readonly commit: string | null;
  /** Answers what would change, and changes nothing. */
  readonly dryRun: boolean;
}

export type ContractApplied =
  | { readonly result: 'applied'; readonly plan: FeedPlan; readonly feed: string }
  | {
      readonly result: 'refused';
      /** For people; one line an error. */
      readonly message: string;
      /** With their places in the text; empty where the contract is right and may not follow the one in force. */
      readonly errors: readonly ContractError[];
    };

/** The event kind of a refused attempt; one that succeeds is CONTRACT_ACTIVATED. */
export const CONTRACT_REFUSED = 'CONTRACT_REFUSED';
const MAX_QUOTED_LENGTH = 2_000;

export async function applyContract(prisma: PrismaClient, wanted: ContractToApply): Promise<ContractApplied> {
  const load = loadContract(wanted.file, Buffer.from(wanted.text, 'utf8'));
  try {
    if (!load.ok) throw new NotAmong(load.errors);
    return await apply(prisma, load.loaded, wanted);
  } catch (error) {
    const errors = error instanceof NotAmong ? error.errors : [];
    if (errors.length === 0 && !(error instanceof ActivationRefused)) throw error;
    const message = error instanceof ActivationRefused ? error.message : errors.map(formatContractError).join('\n');
    await recordContractRefusal(prisma, wanted, message);
    return { result: 'refused', message, errors };
  }
}

/** An attempt that was refused, also one that was refused before it came here. */
export async function recordContractRefusal(
  prisma: Pick<PrismaClient, '$queryRaw'>,
  { file, actor, dryRun }: ContractToApply,
  message: string,
): Promise<void> {
  if (dryRun) return; // Asking is no attempt.
  const detail = JSON.stringify({ file, message: message.slice(0, MAX_QUOTED_LENGTH) });
  await prisma.$queryRaw`SELECT append_admin_event(${CONTRACT_REFUSED}, NULL, ${actor}, ${detail})`;
}

async function apply(prisma: PrismaClient, loaded: LoadedContract, wanted: ContractToApply): Promise<ContractApplied> {
  const { feed } = loaded.contract;
  const inForce = await readInForce(prisma, (stored) => reloadStored(stored).contract);
  const current = inForce.find((candidate) => candidate.feed === feed) ?? null;
  const plan = planFeed(current, loaded);
  if (wanted.dryRun) {
    const others = (await contractsInForce(prisma)).filter((other) => other.feed !== feed);
    requireAmong(loaded, others);
    if (current !== null && current.digest !== loaded.digest) checkActivation(loaded, current);
  } else {
    await activateContract(prisma, loaded, {
      actor: wanted.actor,
      commit: wanted.commit,
      restore: true,
      parse: (stored) => reloadStored(stored).contract,
      among: (others) => requireAmong(loaded, others),
    });
  }
  return { result: 'applied', plan, feed };
}

/** The contract, or those of others beside it, are wrong at places of the text. */
class NotAmong extends Error {
  constructor(readonly errors: readonly ContractError[]) {
    super('the contract cannot be in force');
    this.name = 'NotAmong';
  }
}

/** Errors stand at the later contract, which is the one that is applied; files are named without their folders. */
function requireAmong(loaded: LoadedContract, others: readonly StoredContract[]): void {
  const known = others.map((other) => ({ ...reloadStored(other), file: baseName(other.file) }));
  const errors = checkContracts([...known, loaded]);
  if (errors.length > 0) throw new NotAmong(errors);
}

/** Of a path of either kind of system. */
export function baseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

/** A stored contract was valid when it was stored. @throws Error where this program cannot read it */
function reloadStored({ file, sourceText }: StoredContract): LoadedContract {
  const load = loadContract(file, Buffer.from(sourceText, 'utf8'));
  if (load.ok) return load.loaded;
  throw new Error(`stored contract: ${load.errors.map(formatContractError).join('\n')}`);
}
