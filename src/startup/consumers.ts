/**
 * Consumers: one runner a feed and broker, while its lease is ours (design section 9).
 */
import { createLeases } from '../ledger/leases';
import type { Leases } from '../ledger/port';
import { createLedgerStore } from '../ledger/store';
import type { SubscriberEvent } from '../mqtt/port';
import { createSubscriber } from '../mqtt/subscriber';
import type { Health } from '../ops/health';
import type { Metrics } from '../ops/metrics';
import { Observer } from '../ops/observe';
import type { Logger } from '../ops/port';
import type { ContractSource, FeedRuntime } from '../pipeline/feed';
import { FeedRunner } from '../pipeline/feed-runner';
import type { Connection, RunnerOptions, RunnerPorts } from '../pipeline/feed-runner';
import { LeaseKeeper } from '../pipeline/lease-keeper';
import type { Step } from '../pipeline/process-batch';
import type { Window } from '../window/window';
import { contractSource, formerFilters } from './contracts';
import { FeedConsumer } from './feed-consumer';
import { FeedsInForce } from './feeds-in-force';
import type { FeedInForce } from './feeds-in-force';
import { BROKER, instanceName } from './parts';
import type { Parts } from './parts';
import { SessionNotes } from './session-notes';

export interface ConsumerParts extends Parts {
  readonly window: Window;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly onStep: (step: Step, feed: string) => void;
}

/** A batch may wait this long for a connection, and take this long: a stopped disk must not hold a head for ever. */
const TRANSACTION_TIMEOUT_MS = 30_000;
const RETRY = { minMs: 50, maxMs: 5_000 };
/** Of one transaction: what an interrupted one costs to repeat, and a bound on its memory. */
const BATCH_MAX_BYTES = 1_048_576;
const DRAIN_MS = 20_000;

export function startConsumers(parts: ConsumerParts): void {
  const { config, log, database, metrics, cleanup } = parts;
  const instanceId = instanceName(database.kind);
  const leases = createLeases(database.prisma, instanceId, config.leaseTtlMs);
  const contracts = contractSource(database, config.maxPayloadBytes);
  const feeds = new FeedsInForce(parts.feeds, database, contracts, log);
  const byLease = new Map<string, FeedInForce>();
  /** Feeds whose series have begun. */
  const begun = new Set(parts.feeds.map(({ name }) => name));
  const consumers = new Map<string, Consumption>();
  const observer = new Observer(metrics);
  const ports = runnerPorts(parts, observer, contracts);
  metrics.beforeScrape(() => {
    for (const { feed, consumer } of consumers.values())
      metrics.deliveriesWaiting.set({ feed: feed.name }, consumer.waiting);
  });

  const keeper = new LeaseKeeper({
    group: 'consumer',
    instanceId,
    names: async () => {
      byLease.clear();
      for (const one of await feeds.read()) {
        byLease.set(`feed/${one.feed.name}/${BROKER}`, one);
        if (!begun.has(one.feed.name)) metrics.begin(one.feed.name);
        begun.add(one.feed.name);
      }
      for (const [name, { contract }] of byLease) consumers.get(name)?.consumer.inForce(contract);
      return [...byLease.keys()];
    },
    leases,
    ttlMs: config.leaseTtlMs,
    log,
    onAcquired: async (name) => {
      const one = byLease.get(name);
      if (one === undefined) return;
      const consumption = consume(parts, ports, observer, one.feed, () => mayConnect(leases, name));
      consumers.set(name, consumption);
      await consumption.consumer.start(one.contract);
    },
    onLost: async (name) => {
      const consumption = consumers.get(name);
      await consumption?.stop();
      consumers.delete(name);
    },
  });
  cleanup.add('consumers', () => keeper.stop());
  keeper.start();
}

interface Consumption {
  readonly feed: FeedRuntime;
  readonly consumer: FeedConsumer;
  stop(): Promise<void>;
}

type SharedPorts = Omit<RunnerPorts, 'createSubscriber' | 'onSubscriberEvent'>;

/** A consumer of one feed, with the parts of this process that watch it. */
function consume(
  parts: ConsumerParts,
  ports: SharedPorts,
  observer: Observer,
  feed: FeedRuntime,
  mayConnect: () => Promise<boolean>,
): Consumption {
  const { log, health, database } = parts;
  const notes = sessionNotes(parts, feed);
  const runnerPorts: RunnerPorts = {
    ...ports,
    createSubscriber: observedSubscriber(observer, feed),
    onSubscriberEvent: (_, event) => {
      health.subscriberEvent(feed.name, event);
      observer.subscriberEvent(feed.name, event);
      if (event.type === 'connected') notes.connected(event.sessionPresent);
      logEvent(log, feed.name, event);
    },
  };
  const consumer = new FeedConsumer({
    feed,
    log,
    formerFilters: (feedId, topics) => formerFilters(database, feedId, topics),
    createRunner: (former) => {
      observer.leaseTaken(feed.name);
      const connection = { ...connectionOf(parts, feed, mayConnect), formerFilters: former };
      return new FeedRunner(runnerPorts, feed, connection, options(parts));
    },
    onRunnerEnded: () => {
      health.feedReleased(feed.name);
      observer.leaseGiven(feed.name);
    },
  });
  const stop = async (): Promise<void> => {
    await consumer.stop();
    await notes.stop();
  };
  return { feed, consumer, stop };
}

function sessionNotes({ config, log, database, metrics }: ConsumerParts, feed: FeedRuntime): SessionNotes {
  return new SessionNotes({
    database,
    feedId: feed.feedId,
    feed: feed.name,
    clientId: clientIdOf(config.mqttClientIdPrefix, feed),
    retry: RETRY,
    log,
    onNoted: (state) => {
      if (state !== 'lost') return;
      metrics.sessionsLost.inc({ feed: feed.name });
      log.warn({ feed: feed.name }, 'the broker lost our session: messages may be lost');
    },
  });
}

function runnerPorts(parts: ConsumerParts, observer: Observer, contracts: ContractSource): SharedPorts {
  const { log, database, window, wakeUps, onStep } = parts;
  return {
    ledger: createLedgerStore(database.prisma, { transactionTimeoutMs: TRANSACTION_TIMEOUT_MS }),
    window: observer.window(window),
    wakeUps,
    contracts,
    log,
    onStep,
    onCommitted: (feed, committed) => observer.committed(feed, committed),
  };
}

function observedSubscriber(observer: Observer, feed: FeedRuntime): RunnerPorts['createSubscriber'] {
  return (options) =>
    observer.subscriber(feed.name, options, (inner) => createSubscriber({ ...inner, broker: BROKER }));
}

function options({ config }: ConsumerParts): RunnerOptions {
  return {
    batch: { maxDeliveries: config.batchMaxDeliveries, maxBytes: BATCH_MAX_BYTES },
    intake: { maxDeliveries: config.maxInFlight, maxBytes: config.maxInFlightBytes },
    retry: RETRY,
    drainMs: DRAIN_MS,
  };
}

function connectionOf({ config, mqttUrls }: Parts, feed: FeedRuntime, mayConnect: () => Promise<boolean>): Connection {
  return {
    urls: mqttUrls,
    username: config.mqttUsername,
    password: config.mqttPassword,
    tls: config.mqttTls,
    clientId: clientIdOf(config.mqttClientIdPrefix, feed),
    protocolVersion: config.mqttVersion,
    mayConnect,
  };
}

function clientIdOf(prefix: string, feed: FeedRuntime): string {
  return `${prefix}-${feed.name}-${BROKER}`;
}

/** A session is connected only under its lease; where that cannot be known, the broker keeps the messages. */
async function mayConnect(leases: Leases, name: string): Promise<boolean> {
  try {
    // Renewed, never taken: a lease that was just given back belongs to whoever takes it next.
    return await leases.renew(name);
  } catch {
    return false; // The keeper reports that the database is away.
  }
}

function logEvent(log: Logger, feed: string, event: SubscriberEvent): void {
  switch (event.type) {
    case 'connected':
      log.info({ feed, sessionPresent: event.sessionPresent }, 'connected to the broker');
      return;
    case 'disconnected':
      log.warn({ feed, reason: event.reason }, 'not connected to the broker');
      return;
    case 'refused':
      log.error({ feed, filters: event.filters, reason: event.reason }, 'the broker refused a subscription');
      return;
    case 'subscribed':
      log.debug({ feed, filters: event.filters }, 'subscribed');
  }
}
