/** The rule between a dedup policy and what the broker and the producers can do (design section 7). Pure. */
import type { DedupPolicy, FeedContract } from './types';

/**
 * What is wrong with a window, in words with the arithmetic, or null.
 *
 * A replay can come as late as the broker keeps our session, plus what a failover or a producer adds. A window that does
 * not exceed that sends every such replay to the ledger. It holds for contracts and for policies set through the API.
 */
export function windowShortfall(
  policy: Pick<DedupPolicy, 'windowSeconds'>,
  delivery: FeedContract['delivery'],
): string | null {
  const { sessionExpirySeconds, maxReplayDelaySeconds } = delivery;
  const needed = sessionExpirySeconds + maxReplayDelaySeconds;
  if (policy.windowSeconds > needed) return null;
  return (
    `windowSeconds ${policy.windowSeconds} must exceed sessionExpirySeconds ${sessionExpirySeconds} + ` +
    `maxReplayDelaySeconds ${maxReplayDelaySeconds} = ${needed}: replays can come that late`
  );
}
