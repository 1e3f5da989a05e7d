import type { Config } from '../config';
import type { Database } from '../ledger/client';
import type { Cleanup } from '../ops/cleanup';
import type { ContractStatus } from '../ops/contract-status';
import type { Logger } from '../ops/port';
import type { FeedRuntime } from '../pipeline/feed';
import { ContractWatcher } from './contract-watch';
import { contractSource } from './contracts';
import { FeedFollower } from './follow';

/** @param feeds those that come later are added to it */
export function openFollower(config: Config, log: Logger, database: Database, feeds: FeedRuntime[]): FeedFollower {
  return new FeedFollower({ database, contracts: contractSource(database, config.maxPayloadBytes), feeds, log });
}

/** Files → contracts in force (`CONTRACTS_MODE=watch`), and contracts in force → what is consumed here. */
export function startFollowing(of: {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  readonly follower: FeedFollower;
  readonly files: ContractStatus;
  readonly cleanup: Cleanup;
}): void {
  const { config, log, database, follower, files, cleanup } = of;
  cleanup.add('following of contracts', () => follower.stop());
  follower.start();
  if (config.contractsMode !== 'watch') return;
  const watcher = new ContractWatcher({ dir: config.contractsDir, database, status: files, log });
  cleanup.add('watch on contract files', () => watcher.stop());
  watcher.start();
}
