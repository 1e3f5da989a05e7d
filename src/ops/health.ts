/**
 * What `/readyz` says: can this process decide now?
 */
import type { SubscriberEvent } from '../mqtt/port';

export interface Readiness {
  readonly ready: boolean;
  readonly details: Record<string, unknown>;
}

/** Runs a query that touches nothing. */
export interface Probe {
  readonly prisma: { $queryRawUnsafe(query: string): PromiseLike<unknown> };
}

/** How long the database may take to answer before we say that we cannot decide. */
const PROBE_TIMEOUT_MS = 2_000;

export class Health {
  private readonly feeds = new Map<string, string>();

  /** @param asides what else to show, by name; null: nothing */
  constructor(
    private readonly database: Probe,
    private readonly asides: Readonly<Record<string, () => object | null>> = {},
  ) {}

  subscriberEvent(feed: string, event: SubscriberEvent): void {
    if (event.type === 'connected') this.feeds.set(feed, 'connected');
    if (event.type === 'subscribed') this.feeds.set(feed, 'subscribed');
    if (event.type === 'disconnected') this.feeds.set(feed, 'disconnected');
    if (event.type === 'refused') this.feeds.set(feed, `refused: ${event.reason}`);
  }

  /** Another instance may consume it now. */
  feedReleased(feed: string): void {
    this.feeds.delete(feed);
  }

  /** Deciding needs the database alone; feeds that this instance owns are shown beside it. */
  async readiness(): Promise<Readiness> {
    const database = await this.databaseAnswers();
    const feeds = Object.fromEntries(this.feeds);
    // A broken file does not keep the contract of before from deciding, nor does an OpenID provider that is away.
    const asides = Object.entries(this.asides).flatMap(([name, read]) => {
      const aside = read();
      return aside === null ? [] : [[name, aside] as const];
    });
    const details = { database: database ? 'ok' : 'unavailable', feeds, ...Object.fromEntries(asides) };
    return { ready: database, details };
  }

  private async databaseAnswers(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
    });
    const answer = Promise.resolve(this.database.prisma.$queryRawUnsafe('SELECT 1')).then(
      () => true,
      () => false,
    );
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
