/**
 * Consumes one feed on one broker while the lease is ours: subscriber → intake → worker.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Subscriber, SubscriberEvent, SubscriberOptions } from '../mqtt/port';
import type { FeedRuntime } from './feed';
import { Intake } from './intake';
import type { BatchLimits } from './intake';
import { FeedWorker } from './worker';
import type { WorkerOptions, WorkerPorts } from './worker';

export interface RunnerOptions extends WorkerOptions {
  readonly intake: BatchLimits;
  /** How long stopping waits for what was taken to be landed. */
  readonly drainMs: number;
}

/** With the filters that the session had and the contract has not. */
export type Connection = Omit<SubscriberOptions, 'filters' | 'sessionExpirySeconds' | 'sink' | 'onEvent'>;

export interface RunnerPorts extends WorkerPorts {
  readonly createSubscriber: (options: SubscriberOptions) => Subscriber;
  readonly onSubscriberEvent: (feed: FeedRuntime, event: SubscriberEvent) => void;
}

export class FeedRunner {
  private readonly subscriber: Subscriber;
  private readonly intake: Intake;
  private readonly worker: FeedWorker;

  constructor(
    ports: RunnerPorts,
    feed: FeedRuntime,
    connection: Connection,
    private readonly options: RunnerOptions,
  ) {
    const { contract } = feed.active;
    this.intake = new Intake(options.intake, () => this.subscriber.resume());
    this.subscriber = ports.createSubscriber({
      ...connection,
      filters: contract.topics,
      sessionExpirySeconds: contract.delivery.sessionExpirySeconds,
      sink: this.intake,
      onEvent: (event) => ports.onSubscriberEvent(feed, event),
    });
    this.worker = new FeedWorker(ports, feed, this.intake, this.subscriber, options);
  }

  start(): void {
    this.worker.start();
    this.subscriber.start();
  }

  /** Deliveries that wait for their batch. */
  get waiting(): number {
    return this.intake.depth;
  }

  /** Stops intake, finishes the batch, acknowledges, closes. What is not landed in time stays with the broker. */
  async stop(): Promise<void> {
    this.subscriber.stopIntake();
    const timer = new AbortController();
    const landed = this.worker.stop();
    const late = sleep(this.options.drainMs, undefined, { signal: timer.signal, ref: false }).then(
      () => this.worker.abandon(),
      () => undefined,
    );
    await landed;
    timer.abort();
    await late;
    await this.subscriber.close();
  }
}
