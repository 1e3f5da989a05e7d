/**
 * `CONTRACTS_MODE=watch`: activates changes of contract files that are graded safe, as they come. All others wait for
 * `contract apply`, and so does going back to an earlier contract, or two instances with different files would take turns.
 * A file that is broken leaves the contract of before in force.
 *
 * The folder is looked at, not listened to: mounted configuration is swapped by links, which listeners miss.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { formatContractError } from '../contract/check-error';
import type { ContractError } from '../contract/check-error';
import type { LoadedContract } from '../contract/types';
import type { Database } from '../ledger/client';
import { ActivationRefused, activateContract } from '../ledger/feeds';
import type { ContractStatus, WaitingContract } from '../ops/contract-status';
import type { Logger } from '../ops/port';
import { readContracts } from './contract-files';
import { planContracts } from './contract-plan';
import type { PlannedFeed } from './contract-plan';
import { reload } from './contracts';

export interface WatchOptions {
  readonly dir: string;
  readonly database: Database;
  readonly status: ContractStatus;
  readonly log: Logger;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 1_000;
/** As the history names who activated. */
const ACTOR = 'replay-ledger watch';

export class ContractWatcher {
  private readonly stopped = new AbortController();
  private running: Promise<void> | null = null;
  /** What the folder held when all of it was last dealt with. */
  private seen = '';
  private reported = '';

  constructor(private readonly options: WatchOptions) {}

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        this.options.log.warn({ err: error }, 'contract files could not be compared; they are looked at again');
      }
      // An abort ends the sleep; that is how stopping works, not an error.
      await sleep(this.options.intervalMs ?? INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** One look at the folder. What waits is looked at every time: somebody may have applied it. */
  private async look(): Promise<void> {
    const { dir, database, status } = this.options;
    const { loaded, errors } = await readContracts(dir);
    const found = JSON.stringify([loaded.map(({ file, digest }) => [file, digest]), errors]);
    if (found === this.seen && status.details() === null) return;
    const plan = await planContracts(database, loaded);
    const faults = [...errors, ...plan.errors];
    const waiting: WaitingContract[] = [];
    const refused: string[][] = [];
    for (const loadedOne of loaded) {
      const planned = plan.feeds.find(({ feed, file }) => feed === loadedOne.contract.feed && file === loadedOne.file);
      if (planned === undefined || faults.some(({ file }) => file === loadedOne.file)) continue;
      if (planned.refusal !== null) refused.push([planned.feed, planned.refusal]);
      else if (!isDue(planned)) continue;
      else if (planned.restores || planned.grade !== 'safe') waiting.push(waitingOf(planned));
      else await this.activate(loadedOne, refused);
    }
    const byFeed = faults.map((fault) => ({ feed: feedOf(fault, plan.feeds), message: formatContractError(fault) }));
    const all = [...byFeed, ...refused.map(([feed = '', message = '']) => ({ feed, message }))];
    status.set(
      all.map(({ feed, message }) => ({ feed, message: this.withoutFolder(message) })),
      waiting,
    );
    this.report();
    this.seen = found;
  }

  private async activate(loaded: LoadedContract, refused: string[][]): Promise<void> {
    const { feed } = loaded.contract;
    try {
      const { result } = await activateContract(this.options.database.prisma, loaded, {
        actor: ACTOR,
        commit: null,
        parse: (stored) => reload(stored).contract,
      });
      if (result === 'activated') this.options.log.info({ feed, digest: loaded.digest }, 'contract activated');
    } catch (error) {
      if (!(error instanceof ActivationRefused)) throw error;
      refused.push([feed, error.message]); // The feed changed since the plan.
    }
  }

  /** Once, when it changes. */
  private report(): void {
    const details = this.options.status.details();
    const text = JSON.stringify(details);
    if (text === this.reported) return;
    this.reported = text;
    if (details !== null)
      this.options.log.warn({ contracts: details }, 'contract files are wrong, or wait to be applied');
    else this.options.log.info({}, 'all contract files are in force');
  }

  /** Messages go to clients of the API, whom folders do not concern. */
  private withoutFolder(message: string): string {
    const { dir } = this.options;
    return message.split(dir.endsWith('/') ? dir : `${dir}/`).join('');
  }
}

/** Comments count as well: the text in force is the one that people read. */
function isDue({ status, textDiffers }: PlannedFeed): boolean {
  return status === 'new' || status === 'changed' || textDiffers;
}

function waitingOf({ feed, grade, restores }: PlannedFeed): WaitingContract {
  const why = restores ? 'it is an earlier contract' : `it is graded ${grade}`;
  return { feed, reason: `the file waits for "contract apply": ${why}` };
}

/** The feed that a file with errors is of: what it says, or what it said when it was last in force. */
function feedOf({ file }: ContractError, feeds: readonly PlannedFeed[]): string | null {
  const ofFile = feeds.filter((planned) => planned.file === file);
  return (ofFile.find(({ status }) => status === 'without_file') ?? ofFile[0])?.feed ?? null;
}
