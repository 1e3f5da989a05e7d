/**
 * The composition root: reads top to bottom as the architecture. What opens later is closed earlier.
 */
import { startApi } from './api/server';
import type { Config } from './config';
import { Cleanup } from './ops/cleanup';
import { ContractStatus } from './ops/contract-status';
import { Health } from './ops/health';
import { startOpsServer } from './ops/http';
import type { Logger } from './ops/port';
import type { Step } from './pipeline/process-batch';
import { mayReadMetrics, openTokens } from './startup/access';
import { openBroker } from './startup/broker';
import { startConsumers } from './startup/consumers';
import { activateContracts, readContractFiles } from './startup/contracts';
import { openLive } from './startup/live';
import { openMetrics } from './startup/metrics';
import { startRelays } from './startup/relays';
import { openStorage } from './startup/storage';
import { startWatching } from './startup/watching';
import { openWindow } from './startup/window';

/** Which parts run in this process. */
export type Role = 'all' | 'consumer' | 'api' | 'relay';

export interface App {
  /** null where the API does not run here. */
  readonly apiUrl: string | null;
  readonly mqttUrls: readonly string[];
  /** Stops intake, finishes batches, acknowledges, closes. Calling it again waits for the first call. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly role?: Role;
  /** Told each step of a batch as it is reached. */
  readonly onStep?: (step: Step, feed: string) => void;
}

/**
 * @throws StartError, StorageError, or an error with code EADDRINUSE; what was opened is closed again
 */
export async function startApp(config: Config, log: Logger, options: AppOptions = {}): Promise<App> {
  const cleanup = new Cleanup((what, error) => log.error({ what, err: error }, 'could not be closed'));
  try {
    return await compose(config, log, options, cleanup);
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

async function compose(config: Config, log: Logger, options: AppOptions, cleanup: Cleanup): Promise<App> {
  const { role = 'all', onStep = () => undefined } = options;
  const runs = (part: Role) => role === 'all' || role === part;

  const { tokens, oidc } = openTokens(config, log, cleanup);
  const contracts = await readContractFiles(config.contractsDir);
  const storage = await openStorage(config, cleanup);
  const files = new ContractStatus();
  const health = new Health(storage.main, {
    contracts: () => files.details(),
    oidc: () => oidc && { keys: oidc.state },
  });
  const feeds = await activateContracts(storage.main, contracts, config, log);
  const wakeUps = openLive(config, cleanup);
  const metrics = openMetrics({ database: storage.facts, feeds, files, oidc });
  const operations = {
    readiness: () => health.readiness(),
    metrics: () => metrics.text(),
    mayRead: (authorization: string | undefined) => mayReadMetrics(tokens, authorization),
  };

  const api = runs('api')
    ? await startApi({
        host: config.host,
        port: config.port,
        database: storage.api,
        wakeUps,
        tokens,
        operations,
        contractErrorOf: (feed) => files.errorOf(feed),
        development: config.development,
        log,
      })
    : null;
  if (api !== null) {
    cleanup.add('API', () => api.close());
    metrics.beforeScrape(() => metrics.subscriptions.set(api.stats().subscriptions));
  } else {
    const ops = await startOpsServer({
      host: config.host,
      port: config.port,
      ...operations,
      // It asks for tokens at /metrics alone, and which feeds there are is nobody's business who has none.
      readiness: async () => ({ ...(await health.readiness()), ...(tokens === null ? {} : { details: {} }) }),
      mayReadMetrics: operations.mayRead,
      log,
    });
    cleanup.add('health and metrics', () => ops.close());
    log.info({ url: ops.url }, 'health and metrics are ready');
  }

  const mqttUrls = await openBroker(config, cleanup);
  const parts = { config, log, database: storage.main, feeds, wakeUps, mqttUrls, cleanup };
  if (runs('relay')) startRelays(parts);
  if (runs('consumer'))
    startConsumers({ ...parts, window: await openWindow(config, log, cleanup), health, metrics, onStep });

  startWatching({ config, log, database: storage.main, files, cleanup });

  return { apiUrl: api?.url ?? null, mqttUrls, close: () => cleanup.run() };
}
