import type { Config } from '../config';
import type { Database } from '../ledger/client';
import type { Cleanup } from '../ops/cleanup';
import type { ContractStatus } from '../ops/contract-status';
import type { Logger } from '../ops/port';
import { ContractWatcher } from './contract-watch';

/** Files → contracts in force, under `CONTRACTS_MODE=watch`; what is in force is followed by the consumers themselves. */
export function startWatching(of: {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  readonly files: ContractStatus;
  readonly cleanup: Cleanup;
}): void {
  const { config, log, database, files, cleanup } = of;
  if (config.contractsMode !== 'watch') return;
  const watcher = new ContractWatcher({ dir: config.contractsDir, database, status: files, log });
  cleanup.add('watch on contract files', () => watcher.stop());
  watcher.start();
}
