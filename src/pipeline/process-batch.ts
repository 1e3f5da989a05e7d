/**
 * One batch of one feed: the ten steps of design section 5, in their order. This is the file to read first.
 *
 * Guarantees: when it resolves, every message of the batch has exactly one committed entry. When it rejects, nothing was
 * written, unless the error is IN_DOUBT, which `settle` turns into one of the two.
 * Step 8 (`recordInWindow`) needs nothing of the ledger, so the next batch does not wait for it. Steps 9 (PUBACK) and 10
 * (wake-up) are the worker's, because they follow the whole batch, also one taken apart.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { decide } from '../dedup/decide';
import { claimAt } from '../dedup/originals';
import { claimKey, claims } from '../dedup/state';
import type { DecidedBatch, PolicyInForce } from '../dedup/state';
import type { BatchToWrite, LedgerStore, Locked } from '../ledger/port';
import { LedgerError } from '../ledger/port';
import { checkTerm } from '../ledger/term';
import type { LedgerMemory, Window, WindowHints } from '../window/window';
import { composeBatch } from './compose';
import type { FeedRuntime } from './feed';
import { memories, payloadsOf, reachedAfter, readRequest, windowKeys } from './prepare';
import type { Received } from './prepare';

/** Where a batch is. Observers see each step as it is reached; the fault suite kills the process there. */
export type Step = 'looked-up' | 'read' | 'decided' | 'written' | 'committed' | 'recorded' | 'acknowledged' | 'woken';

export interface BatchPorts {
  readonly ledger: LedgerStore;
  readonly window: Window;
  readonly onStep: (step: Step, feed: string) => void;
}

export interface Committed {
  readonly write: BatchToWrite;
  readonly decided: DecidedBatch;
  readonly policy: PolicyInForce;
  readonly memory: LedgerMemory;
  /** Originals as they were read under the lock. */
  readonly claims: Locked['claims'];
}

/** The batch was decoded under a contract that is no longer in force: decode it again. */
export class ContractChanged extends Error {
  constructor(readonly digest: string) {
    super('another contract is in force');
    this.name = 'ContractChanged';
  }
}

/**
 * @throws ContractChanged
 * @throws LedgerError
 */
export async function processBatch(
  ports: BatchPorts,
  feed: FeedRuntime,
  received: readonly Received[],
  settle: (feedId: number, batchId: string) => Promise<boolean>,
): Promise<Committed> {
  // 1. Ask the window where the keys were seen.
  const hints = await ports.window.lookup(feed.name, windowKeys(received, feed.reached));
  ports.onStep('looked-up', feed.name);
  // 2 to 7. One transaction.
  const committed = await commitBatch(ports, feed, received, hints, settle);
  ports.onStep('committed', feed.name);
  feed.memory = committed.memory;
  feed.reached = reachedAfter(committed.write.sources);
  return committed;
}

async function commitBatch(
  ports: BatchPorts,
  feed: FeedRuntime,
  received: readonly Received[],
  hints: WindowHints | null,
  settle: (feedId: number, batchId: string) => Promise<boolean>,
): Promise<Committed> {
  const id = randomUUID();
  const remembered = memories(hints, feed.memory);
  let done: Committed | undefined;
  try {
    return await ports.ledger.transact(async (transaction) => {
      // 2, 3. Lock the head and the incidents; read what the decision needs.
      const locked = await transaction.read(readRequest(feed.feedId, received, hints, feed.memory));
      ports.onStep('read', feed.name);
      if (locked.contractDigest !== feed.active.digest) throw new ContractChanged(locked.contractDigest);
      const term = checkTerm(locked, remembered, (size) => locked.leaves.get(size));
      const decideAndCompose = async () => {
        await nextTurn(); // what came is on its way to the database
        // 4. Decide.
        const decided = decide(
          stateOf(feed, locked),
          received.map(({ message }) => message),
        );
        ports.onStep('decided', feed.name);
        return {
          decided,
          write: composeBatch({ id, feed: feed.name, feedId: feed.feedId, locked, term }, received, decided),
        };
      };
      const stored = transaction.store(feed.feedId, payloadsOf(received));
      const [{ decided, write }] = await Promise.all([decideAndCompose(), stored]);
      // 5, 6. Effects, entries, heads.
      await transaction.write(write);
      ports.onStep('written', feed.name);
      done = { write, decided, policy: locked.policy, memory: memoryAfter(write), claims: locked.claims };
      return done;
      // 7. Commit.
    });
  } catch (error) {
    if (!(error instanceof LedgerError) || error.code !== 'IN_DOUBT' || done === undefined) throw error;
    if (await settle(feed.feedId, id)) return done;
    throw new LedgerError(error.ifNotCommitted, error.message, error.sqlState, { cause: error });
  }
}

function stateOf(feed: FeedRuntime, locked: Locked) {
  const { identity } = feed.active.contract;
  const epochOrder = identity.mode === 'sequence' && identity.epoch !== null ? identity.epoch.order : 'opaque';
  return { ...locked, feedId: feed.feedId, epochOrder };
}

function memoryAfter(write: BatchToWrite): LedgerMemory {
  const last = write.entries[write.entries.length - 1];
  return { term: write.term, size: write.firstPosition + write.entries.length, lastLeaf: last?.leafHash ?? '' };
}

/**
 * 8. Tell the window: claims under their own position, and originals again, so that a window that forgot them is warm
 * after the first replay. Never rejects.
 */
export async function recordInWindow(
  { window, onStep }: Pick<BatchPorts, 'window' | 'onStep'>,
  feed: string,
  { write, decided, policy, memory, claims: read }: Committed,
): Promise<void> {
  const positions = new Map<string, number>();
  for (const { message, outcome, position, original } of decided.decisions) {
    if (message.kind !== 'keyed') continue;
    const key = claimKey(message.keyVersion, message.key);
    if (claims(outcome)) positions.set(key, position);
    else if (original !== null) positions.set(claimAt(read, message, original)?.name ?? key, original);
  }
  await window.record(feed, {
    memory,
    recordedAtMs: Math.floor(write.recordedAtMicros / 1000),
    positions,
    windowSeconds: policy.windowSeconds,
    maxEntries: policy.maxEntries,
  });
  onStep('recorded', feed);
}
