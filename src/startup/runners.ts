/**
 * The feeds that this instance consumes: each has one runner while its lease is ours, connected as the contract in force
 * says. What is asked about one lease is done in turn, so that a runner is never stopped while it is replaced.
 */
import type { FeedContract } from '../contract/types';
import type { ContractSource, FeedRuntime } from '../pipeline/feed';
import type { FeedRunner } from '../pipeline/feed-runner';

interface Running {
  readonly feed: FeedRuntime;
  readonly runner: FeedRunner;
  /** What its connection was made for. */
  readonly contract: FeedContract;
}

export class Runners {
  private readonly running = new Map<string, Running>();
  private readonly turns = new Map<string, Promise<void>>();

  constructor(
    private readonly create: (name: string, feed: FeedRuntime) => FeedRunner,
    private readonly contracts: ContractSource,
  ) {}

  /** Deliveries that wait for their batch, by feed. */
  list(): { readonly feed: string; readonly waiting: number }[] {
    return Array.from(this.running.values(), ({ feed, runner }) => ({ feed: feed.name, waiting: runner.waiting }));
  }

  /** Consumes under a contract, which is loaded first: that of the start may be long gone. */
  start(name: string, feed: FeedRuntime, digest: string): Promise<void> {
    return this.inTurn(name, async () => {
      feed.active = feed.active.digest === digest ? feed.active : await this.contracts.load(feed.feedId, digest);
      this.run(name, feed);
    });
  }

  /** Connects again where another contract asks the broker for something else. Nothing where we do not consume it. */
  follow(name: string, digest: string): Promise<void> {
    return this.inTurn(name, async () => {
      const current = this.running.get(name);
      if (current === undefined) return;
      const { feed, runner, contract } = current;
      const next = await this.contracts.load(feed.feedId, digest);
      if (connectionOf(next.contract) === connectionOf(contract)) return;
      // Deliveries that are decoded already belong to the contract of before: its worker lands them, and only then is the
      // other contract that of the feed.
      await runner.stop();
      feed.active = next;
      this.run(name, feed);
    });
  }

  stop(name: string): Promise<void> {
    return this.inTurn(name, async () => {
      await this.running.get(name)?.runner.stop();
      this.running.delete(name);
    });
  }

  private run(name: string, feed: FeedRuntime): void {
    const runner = this.create(name, feed);
    this.running.set(name, { feed, runner, contract: feed.active.contract });
    runner.start();
  }

  private inTurn(name: string, work: () => Promise<void>): Promise<void> {
    // The one before reports its failure to who asked for it.
    const turn = (this.turns.get(name) ?? Promise.resolve()).catch(() => undefined).then(work);
    this.turns.set(name, turn);
    return turn;
  }
}

/** What a connection is made of. */
function connectionOf({ topics, delivery }: FeedContract): string {
  return JSON.stringify([topics, delivery.sessionExpirySeconds]);
}
