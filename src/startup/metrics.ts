import { readFeedFacts } from '../ledger/facts';
import type { Database } from '../ledger/client';
import type { ContractStatus } from '../ops/contract-status';
import { Metrics } from '../ops/metrics';
import type { FeedRuntime } from '../pipeline/feed';

/** @param database not the one that decides: counting a large ledger takes a while */
export function openMetrics(database: Database, feeds: readonly FeedRuntime[], files: ContractStatus): Metrics {
  const metrics = new Metrics({
    feeds: feeds.map(({ name }) => name),
    readFacts: () => readFeedFacts(database.prisma),
  });
  metrics.beforeScrape(() => {
    metrics.contractErrors.reset();
    for (const { name } of feeds) metrics.contractErrors.set({ feed: name }, 0);
    for (const { feed } of files.errors) metrics.contractErrors.inc({ feed: feed ?? '' });
  });
  return metrics;
}
