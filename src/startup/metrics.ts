import { readFeedFacts } from '../ledger/facts';
import type { Database } from '../ledger/client';
import { Metrics } from '../ops/metrics';
import type { FeedRuntime } from '../pipeline/feed';

/** @param database not the one that decides: counting a large ledger takes a while */
export function openMetrics(database: Database, feeds: readonly FeedRuntime[]): Metrics {
  return new Metrics({
    feeds: feeds.map(({ name }) => name),
    readFacts: () => readFeedFacts(database.prisma),
  });
}
