/**
 * Which feeds there are and which contract each has, as the database says now: another instance may bring a feed, and
 * may change a contract, at any time (design section 7).
 */
import { digestsInForce } from '../ledger/in-force';
import type { Database } from '../ledger/client';
import type { Logger } from '../ops/port';
import type { ActiveContract, ContractSource, FeedRuntime } from '../pipeline/feed';
import { StartError } from './parts';

export interface FeedInForce {
  readonly feed: FeedRuntime;
  /** In force now. `feed.active` is what batches are decoded under, until they meet this one. */
  readonly contract: ActiveContract;
}

export class FeedsInForce {
  private readonly feeds: Map<string, FeedInForce>;
  /** Digests that this program cannot read: it is older than the one that put them in force. */
  private readonly unreadable = new Set<string>();

  constructor(
    known: readonly FeedRuntime[],
    private readonly database: Pick<Database, 'prisma'>,
    private readonly contracts: ContractSource,
    private readonly log: Logger,
  ) {
    this.feeds = new Map(known.map((feed) => [feed.name, { feed, contract: feed.active }]));
  }

  /**
   * Every feed whose contract this program can read. One that it cannot is left to the instance that can.
   * Rejects where the database does not answer.
   */
  async read(): Promise<readonly FeedInForce[]> {
    const readable: FeedInForce[] = [];
    for (const { feedId, feed: name, digest } of await digestsInForce(this.database.prisma)) {
      const known = this.feeds.get(name);
      if (known?.contract.digest === digest) {
        readable.push(known);
        continue;
      }
      const contract = await this.load(name, feedId, digest);
      if (contract === null) continue;
      const feed = known?.feed ?? { feedId, name, active: contract, memory: null, reached: new Map() };
      const now = { feed, contract };
      this.feeds.set(name, now);
      readable.push(now);
    }
    return readable;
  }

  private async load(feed: string, feedId: number, digest: string): Promise<ActiveContract | null> {
    try {
      return await this.contracts.load(feedId, digest);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      if (!this.unreadable.has(digest))
        this.log.error({ feed, err: error }, 'a newer program changed the contract; the feed is left to it');
      this.unreadable.add(digest);
      return null;
    }
  }
}
