/**
 * Consumes one feed while its lease is ours, under the filters of the contract in force.
 *
 * States: idle → running (`start`) → (changing → running)* → stopped (`stop`). It is changing while the runner of the
 * former filters is landing what it took and the next one is made; `stop` waits for that. Whoever consumes under a
 * former contract would never see what comes on topics that the one in force adds.
 */
import type { FeedContract } from '../contract/types';
import type { Logger } from '../ops/port';
import type { ActiveContract, FeedRuntime } from '../pipeline/feed';
import type { FeedRunner } from '../pipeline/feed-runner';

export interface FeedConsumerOptions {
  readonly feed: FeedRuntime;
  readonly log: Logger;
  /** Makes the runner of `feed.active`; not started. */
  readonly createRunner: (formerFilters: readonly string[]) => FeedRunner;
  /** Filters of earlier contracts that are not among `topics`. */
  readonly formerFilters: (feedId: number, topics: readonly string[]) => Promise<readonly string[]>;
  /** A runner ended: nothing of the feed is in this process. */
  readonly onRunnerEnded: () => void;
}

export class FeedConsumer {
  private runner: FeedRunner | null = null;
  /** What the session is subscribed under; `feed.active` may be ahead of it. */
  private subscribed: ActiveContract;
  private changing: Promise<void> | null = null;
  private stopped = false;

  constructor(private readonly options: FeedConsumerOptions) {
    this.subscribed = options.feed.active;
  }

  /** Deliveries that wait for their batch. */
  get waiting(): number {
    return this.runner?.waiting ?? 0;
  }

  /** Rejects, with nothing started, where the database does not answer. */
  async start(contract: ActiveContract): Promise<void> {
    await this.run(contract);
  }

  /** Tells which contract is in force. Does not wait; what fails is tried again when it is told again. */
  inForce(contract: ActiveContract): void {
    if (this.stopped || this.changing !== null || contract.digest === this.subscribed.digest) return;
    if (sameSession(contract.contract, this.subscribed.contract)) {
      // Batches meet the new contract by themselves, under the lock of the head.
      this.subscribed = contract;
      return;
    }
    const { feed, log } = this.options;
    log.info({ feed: feed.name, digest: contract.digest }, 'the topics changed; the feed is subscribed anew');
    this.changing = this.change(contract)
      .catch((error: unknown) => log.warn({ feed: feed.name, err: error }, 'the feed is not subscribed anew yet'))
      .finally(() => (this.changing = null));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.changing;
    await this.end();
  }

  private async change(contract: ActiveContract): Promise<void> {
    await this.end();
    if (!this.stopped) await this.run(contract);
  }

  private async end(): Promise<void> {
    const { runner } = this;
    if (runner === null) return;
    await runner.stop();
    this.runner = null;
    this.options.onRunnerEnded();
  }

  private async run(contract: ActiveContract): Promise<void> {
    const { feed, createRunner, formerFilters } = this.options;
    const former = await formerFilters(feed.feedId, contract.contract.topics);
    // No worker runs now, so nothing is decoded under the one contract and compared with the other.
    feed.active = contract;
    this.subscribed = contract;
    this.runner = createRunner(former);
    this.runner.start();
  }
}

/** Whether the two ask the same of the broker. */
function sameSession(a: FeedContract, b: FeedContract): boolean {
  const asked = ({ topics, delivery }: FeedContract) => JSON.stringify([topics, delivery.sessionExpirySeconds]);
  return asked(a) === asked(b);
}
