/**
 * Subscriptions, executed event by event. As `subscribe` of graphql-js, but every event gets a context of its own: look-
 * ups are collected within an event, and nothing is remembered from one to the next.
 */
import { createSourceEventStream, execute } from 'graphql';
import type { ExecutionArgs, ExecutionResult } from 'graphql';
import { createContext } from './context';
import type { ApiContext } from './context';

/** The arguments' `contextValue` is an ApiContext. */
export async function subscribeWithFreshContexts(args: ExecutionArgs): Promise<ResultStream | ExecutionResult> {
  const source = await createSourceEventStream(args);
  return isAsyncIterable(source) ? new ResultStream(source[Symbol.asyncIterator](), args) : source;
}

type Result = IteratorResult<ExecutionResult, void>;

/** One result an event. Ending it ends the source, at any moment. */
export class ResultStream implements AsyncGenerator<ExecutionResult, void, void> {
  private onEnd: () => void = () => undefined;

  constructor(
    private readonly source: AsyncIterator<unknown>,
    private readonly args: ExecutionArgs,
  ) {}

  /** Called when it ends, by whatever; perhaps more than once. */
  whenEnded(action: () => void): this {
    this.onEnd = action;
    return this;
  }

  async next(): Promise<Result> {
    const event = await this.source.next();
    if (event.done === true) return this.ended();
    const { services, viewer, correlationId } = this.args.contextValue as ApiContext;
    const contextValue = createContext(services, { viewer, correlationId });
    return { done: false, value: await execute({ ...this.args, rootValue: event.value, contextValue }) };
  }

  async return(): Promise<Result> {
    await this.source.return?.();
    return this.ended();
  }

  throw(): Promise<Result> {
    return this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  private ended(): Result {
    this.onEnd();
    return { done: true, value: undefined };
  }
}

function isAsyncIterable(value: AsyncIterable<unknown> | ExecutionResult): value is AsyncIterable<unknown> {
  return Symbol.asyncIterator in value;
}
