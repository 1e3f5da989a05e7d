/**
 * Notes every CONNACK of a session, in order, until it is noted (design section 9): a session that the broker lost shows
 * only once, at the first CONNACK after, so a note that fails must not be given up.
 */
import type { Database } from '../ledger/client';
import { noteSession, readSession } from '../ledger/sessions';
import type { SessionState } from '../ledger/sessions';
import type { Logger } from '../ops/port';
import { Backoff } from '../pipeline/backoff';
import type { BackoffLimits } from '../pipeline/backoff';

export interface SessionNotesOptions {
  readonly database: Pick<Database, 'prisma'>;
  readonly feedId: number;
  readonly feed: string;
  readonly clientId: string;
  readonly retry: BackoffLimits;
  readonly log: Logger;
  readonly onNoted: (state: SessionState) => void;
}

export class SessionNotes {
  private readonly stopped = new AbortController();
  private latest: Promise<void> = Promise.resolve();

  constructor(private readonly options: SessionNotesOptions) {}

  /** The broker accepted us, with or without our session. */
  connected(sessionPresent: boolean): void {
    this.latest = this.latest.then(() => this.note(sessionPresent));
  }

  /** Tries once more what is not noted yet, then gives it up. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.latest;
  }

  private async note(sessionPresent: boolean): Promise<void> {
    const { database, feedId, feed, clientId, log, onNoted } = this.options;
    const { prisma } = database;
    try {
      const before = await this.untilDone(() => readSession(prisma, clientId));
      onNoted(await this.untilDone(() => noteSession(prisma, feedId, clientId, sessionPresent, before)));
    } catch (error) {
      log.error({ feed, sessionPresent, err: error }, 'the session could not be noted before this instance stopped');
    }
  }

  private async untilDone<T>(work: () => Promise<T>): Promise<T> {
    const backoff = new Backoff(this.options.retry);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (this.stopped.signal.aborted) throw error;
        this.options.log.warn(
          { feed: this.options.feed, err: error },
          'the session is not noted yet; it is tried again',
        );
        // Stopping ends the wait, and one more try follows.
        await backoff.wait(this.stopped.signal).catch(() => undefined);
      }
    }
  }
}
