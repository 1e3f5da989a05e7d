import { readFeedFacts } from '../ledger/facts';
import type { Database } from '../ledger/client';
import type { ContractStatus } from '../ops/contract-status';
import { Metrics } from '../ops/metrics';
import type { OidcTokens } from '../ops/oidc';
import type { FeedRuntime } from '../pipeline/feed';

export interface MetricsParts {
  /** Not the one that decides: counting a large ledger takes a while. */
  readonly database: Database;
  readonly feeds: readonly FeedRuntime[];
  readonly files: ContractStatus;
  readonly oidc: OidcTokens | null;
}

export function openMetrics({ database, feeds, files, oidc }: MetricsParts): Metrics {
  const metrics = new Metrics({
    feeds: feeds.map(({ name }) => name),
    readFacts: () => readFeedFacts(database.prisma),
  });
  metrics.beforeScrape(() => {
    metrics.oidcKeysUnavailable.set(oidc === null || oidc.state === 'fresh' ? 0 : 1);
    metrics.contractErrors.reset();
    for (const { name } of feeds) metrics.contractErrors.set({ feed: name }, 0);
    for (const { feed } of files.errors) metrics.contractErrors.inc({ feed: feed ?? '' });
  });
  return metrics;
}
