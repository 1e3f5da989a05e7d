/**
 * Consumers: one runner a feed and broker, while its lease is ours (design section 9).
 */
import { createLeases } from '../ledger/leases';
import { digestInForce } from '../ledger/in-force';
import type { Leases } from '../ledger/port';
import { noteSession } from '../ledger/sessions';
import { createLedgerStore } from '../ledger/store';
import type { SubscriberEvent } from '../mqtt/port';
import { createSubscriber } from '../mqtt/subscriber';
import type { Health } from '../ops/health';
import type { Metrics } from '../ops/metrics';
import { Observer } from '../ops/observe';
import type { FeedRuntime } from '../pipeline/feed';
import { FeedRunner } from '../pipeline/feed-runner';
import type { Connection, RunnerOptions, RunnerPorts } from '../pipeline/feed-runner';
import { LeaseKeeper } from '../pipeline/lease-keeper';
import type { Step } from '../pipeline/process-batch';
import type { Window } from '../window/window';
import { contractSource } from './contracts';
import { BROKER, instanceName } from './parts';
import { Runners } from './runners';
import type { Parts } from './parts';

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
  const { config, log, database, feeds, follower, health, metrics, cleanup } = parts;
  const instanceId = instanceName(database.kind);
  const leases = createLeases(database.prisma, instanceId, config.leaseTtlMs);
  const byLease = new Map(feeds.map((feed) => [leaseOf(feed), feed]));
  const observer = new Observer(metrics);
  const ports = runnerPorts(parts, observer);
  const runners = new Runners((name, feed) => {
    const observed = { ...ports, createSubscriber: observedSubscriber(observer, feed) };
    return new FeedRunner(
      observed,
      feed,
      connectionOf(parts, feed, () => mayConnect(leases, name)),
      options(parts),
    );
  }, ports.contracts);
  metrics.beforeScrape(() => {
    for (const { feed, waiting } of runners.list()) metrics.deliveriesWaiting.set({ feed }, waiting);
  });
  follower.listen({
    added: (feed) => {
      metrics.begin(feed.name);
      byLease.set(leaseOf(feed), feed);
    },
    changed: (feed, digest) => runners.follow(leaseOf(feed), digest),
  });

  const keeper = new LeaseKeeper({
    group: 'consumer',
    instanceId,
    names: () => [...byLease.keys()],
    leases,
    ttlMs: config.leaseTtlMs,
    log,
    onAcquired: async (name) => {
      const feed = byLease.get(name);
      if (feed === undefined) return;
      const digest = await digestInForce(database.prisma, feed.feedId);
      await runners.start(name, feed, digest);
      observer.leaseTaken(feed.name);
    },
    onLost: async (name) => {
      await runners.stop(name);
      const feed = byLease.get(name);
      if (feed === undefined) return;
      health.feedReleased(feed.name);
      observer.leaseGiven(feed.name);
    },
  });
  cleanup.add('consumers', () => keeper.stop());
  keeper.start();
}

function leaseOf(feed: FeedRuntime): string {
  return `feed/${feed.name}/${BROKER}`;
}

function runnerPorts(parts: ConsumerParts, observer: Observer): Omit<RunnerPorts, 'createSubscriber'> {
  const { config, log, database, window, wakeUps, health, onStep } = parts;
  return {
    ledger: createLedgerStore(database.prisma, { transactionTimeoutMs: TRANSACTION_TIMEOUT_MS }),
    window: observer.window(window),
    wakeUps,
    contracts: contractSource(database, config.maxPayloadBytes),
    log,
    onStep,
    onCommitted: (feed, committed) => observer.committed(feed, committed),
    onSubscriberEvent: (feed, event) => {
      health.subscriberEvent(feed.name, event);
      observer.subscriberEvent(feed.name, event);
      logEvent(parts, feed, event);
    },
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
    return await leases.acquire(name);
  } catch {
    return false; // The keeper reports that the database is away.
  }
}

function logEvent(parts: ConsumerParts, feed: FeedRuntime, event: SubscriberEvent): void {
  const { log, database, config, metrics } = parts;
  switch (event.type) {
    case 'connected':
      log.info({ feed: feed.name, sessionPresent: event.sessionPresent }, 'connected to the broker');
      noteSession(database.prisma, feed.feedId, clientIdOf(config.mqttClientIdPrefix, feed), event.sessionPresent).then(
        (state) => {
          if (state !== 'lost') return;
          metrics.sessionsLost.inc({ feed: feed.name });
          log.warn({ feed: feed.name }, 'the broker lost our session: messages may be lost');
        },
        (error: unknown) => log.warn({ feed: feed.name, err: error }, 'the session could not be noted'),
      );
      return;
    case 'disconnected':
      log.warn({ feed: feed.name, reason: event.reason }, 'not connected to the broker');
      return;
    case 'refused':
      log.error({ feed: feed.name, filters: event.filters, reason: event.reason }, 'the broker refused a subscription');
      return;
    case 'subscribed':
      log.debug({ feed: feed.name, filters: event.filters }, 'subscribed');
  }
}
