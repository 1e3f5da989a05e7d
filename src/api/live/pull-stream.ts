/**
 * What subscriptions read from the database at the pace of the client: nothing is read before the client took what was
 * read before.
 *
 * An iterator written by hand, not a generator: `return` of a generator waits for the `await` that it stands at, which
 * may be a wait for a message that never comes. Here `return` ends a pending `next` at once, at any moment.
 *
 * States: open → ended, by `return`, by an error (given as a last event) or by the end of the service.
 */
import type { ApiServices } from '../context';
import { ApiError } from '../errors';
import type { HeadNews, HeadWait } from './heads';

/** Why the subscription ends. An error thrown by an iterator would end the socket instead. */
export interface StreamFailure {
  readonly failure: unknown;
}

const RETRY_PAUSE_MS = 500;

export abstract class PullStream<E extends object> implements AsyncGenerator<E | StreamFailure, undefined, undefined> {
  /** What was read and not yet taken. */
  protected buffer: (E | StreamFailure)[] = [];
  protected ended = false;
  private pending: ((result: IteratorResult<E | StreamFailure, undefined>) => void) | null = null;
  private wait: HeadWait | null = null;
  private failingSince: number | null = null;

  protected constructor(protected readonly services: ApiServices) {}

  /** Fills the buffer, unless the stream ended meanwhile. Answers whether there is nothing more for now. */
  protected abstract read(): Promise<boolean>;

  /** Whether there is something to read after this. */
  protected abstract wants(news: HeadNews): boolean;

  /** One at a time, as `for await` calls it. */
  next(): Promise<IteratorResult<E | StreamFailure, undefined>> {
    if (this.ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.pending = resolve;
      void this.pull();
    });
  }

  return(): Promise<IteratorResult<E | StreamFailure, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  throw(): Promise<IteratorResult<E | StreamFailure, undefined>> {
    return this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  private end(): void {
    this.ended = true;
    this.buffer = [];
    this.wait?.cancel();
    this.settle({ done: true, value: undefined });
  }

  private settle(result: IteratorResult<E | StreamFailure, undefined>): void {
    const { pending } = this;
    this.pending = null;
    pending?.(result);
  }

  /** Never rejects. Ends when the pending `next` is settled. */
  private async pull(): Promise<void> {
    while (!this.ended && this.buffer.length === 0) {
      const moment = this.services.heads.moment;
      try {
        const caughtUp = await this.services.streamReads.run(() => (this.ended ? Promise.resolve(true) : this.read()));
        this.failingSince = null;
        if (caughtUp && this.buffer.length === 0 && !this.ended) await this.pause(moment);
      } catch (error) {
        await this.recover(error);
      }
    }
    const event = this.buffer.shift();
    if (event === undefined) return;
    this.settle({ done: false, value: event });
    if ('failure' in event) this.end();
  }

  private async pause(moment: number): Promise<void> {
    this.wait = this.services.heads.wait(moment, (news) => this.wants(news));
    await this.wait.done;
    this.wait = null;
  }

  /** A database that is away for a moment is no reason to end; what the client did, or a new term, is. */
  private async recover(error: unknown): Promise<void> {
    this.failingSince ??= Date.now();
    if (error instanceof ApiError || Date.now() - this.failingSince >= this.services.limits.streamRetryMs) {
      this.buffer = [{ failure: error }];
      return;
    }
    let cancel = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, RETRY_PAUSE_MS);
      cancel = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wait = { done, cancel };
    await done;
    this.wait = null;
  }
}
