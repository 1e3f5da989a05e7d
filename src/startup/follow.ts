/**
 * Follows the contracts in force, whoever changes them: `contract apply`, the API, another instance. A new feed is consumed
 * without a restart, and a feed whose topics changed is subscribed again.
 *
 * What a batch is decoded under is not touched here: the worker takes the new contract when the ledger says so, under the
 * head lock (pipeline/worker.ts).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../ledger/client';
import { digestsInForce } from '../ledger/in-force';
import type { Logger } from '../ops/port';
import type { ContractSource, FeedRuntime } from '../pipeline/feed';

export interface FollowOptions {
  readonly database: Database;
  readonly contracts: ContractSource;
  /** Known from the start; new ones are added to it. */
  readonly feeds: FeedRuntime[];
  readonly log: Logger;
  readonly intervalMs?: number;
}

export interface FeedListener {
  readonly added: (feed: FeedRuntime) => void;
  /** Another contract is in force. Called again at the next look if it rejects. */
  readonly changed: (feed: FeedRuntime, digest: string) => Promise<void>;
}

/** A policy or contract is to be in force everywhere within two seconds. */
const INTERVAL_MS = 1_000;

export class FeedFollower {
  private readonly listeners: FeedListener[] = [];
  private readonly stopped = new AbortController();
  private running: Promise<void> | null = null;
  /** Digests that were followed, by feed id. */
  private readonly followed: Map<number, string>;

  constructor(private readonly options: FollowOptions) {
    this.followed = new Map(options.feeds.map(({ feedId, active }) => [feedId, active.digest]));
  }

  listen(listener: FeedListener): void {
    this.listeners.push(listener);
  }

  start(): void {
    this.running ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopped;
    const { log, intervalMs = INTERVAL_MS } = this.options;
    while (!signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        log.debug({ err: error }, 'the contracts in force could not be followed; they are looked at again');
      }
      // An abort ends the sleep; that is how stopping works, not an error.
      await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
    }
  }

  private async look(): Promise<void> {
    const { database, feeds } = this.options;
    for (const { feedId, feed: name, digest } of await digestsInForce(database.prisma)) {
      if (this.followed.get(feedId) === digest) continue;
      const known = feeds.find((feed) => feed.feedId === feedId);
      if (known === undefined) await this.add(feedId, name, digest);
      else await Promise.all(this.listeners.map((listener) => listener.changed(known, digest)));
      this.followed.set(feedId, digest);
    }
  }

  private async add(feedId: number, name: string, digest: string): Promise<void> {
    const { contracts, feeds, log } = this.options;
    const feed: FeedRuntime = { feedId, name, active: await contracts.load(feedId, digest), memory: null };
    feeds.push(feed);
    log.info({ feed: name }, 'a new feed');
    for (const listener of this.listeners) listener.added(feed);
  }
}
