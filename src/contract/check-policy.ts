/**
 * What a dedup policy may be, by itself and beside what the broker and the producers can do (design section 7). Pure.
 */
import { dedup } from './schema';
import type { DedupPolicy, FeedContract } from './types';

/**
 * Everything that is wrong with a policy for a feed under that contract, one sentence each; empty where it is right.
 * The bounds are those of a contract file.
 */
export function policyFaults(policy: DedupPolicy, contract: FeedContract): string[] {
  const { maxSequenceJump, ...rest } = policy;
  const shape = dedup.safeParse(maxSequenceJump === null ? rest : policy);
  const faults = shape.success ? [] : shape.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  if (contract.identity.mode === 'eventId' && policy.ordering === 'strict') {
    faults.push('ordering strict needs sequences, and a feed in eventId mode has none');
  }
  const shortfall = windowShortfall(policy, contract.delivery);
  return shortfall === null ? faults : [...faults, shortfall];
}

/**
 * Why the API must not change the policy of a feed, or null: its contract says `policy: { managedBy: contract }`.
 * Names the file without its folder, which is no client's business.
 */
export function policyRefusal({ feed, policy }: FeedContract, file: string): string | null {
  if (policy.managedBy !== 'contract') return null;
  const name = file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1);
  return `the policy of feed ${feed} is managed by its contract: change dedup in ${name}, and apply it`;
}

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
