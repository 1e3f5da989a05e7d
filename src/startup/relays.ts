/**
 * Relays: one a feed that forwards, while its lease is ours (design section 7).
 */
import { digestsInForce } from '../ledger/in-force';
import { createLeases } from '../ledger/leases';
import { createOutbox } from '../ledger/outbox';
import type { Outbox } from '../ledger/port';
import { createPublisher } from '../mqtt/publisher';
import type { FeedRuntime } from '../pipeline/feed';
import { LeaseKeeper } from '../pipeline/lease-keeper';
import { Relay } from '../pipeline/relay';
import { instanceName } from './parts';
import type { Parts } from './parts';

type RelayedFeed = Pick<FeedRuntime, 'feedId' | 'name'>;

export function startRelays(parts: Parts): void {
  const { config, log, database, cleanup } = parts;
  const instanceId = instanceName(database.kind);
  const outbox = createOutbox(database.prisma);
  const byLease = new Map<string, RelayedFeed>();
  const running = new Map<string, () => Promise<void>>();

  const keeper = new LeaseKeeper({
    group: 'relay',
    instanceId,
    names: async () => {
      // Also feeds that another instance brought since this one started.
      for (const { feedId, feed } of await digestsInForce(database.prisma)) {
        byLease.set(`relay/${feed}`, { feedId, name: feed });
      }
      return [...byLease.keys()];
    },
    leases: createLeases(database.prisma, instanceId, config.leaseTtlMs),
    ttlMs: config.leaseTtlMs,
    log,
    onAcquired: (name) => {
      const feed = byLease.get(name);
      // A feed whose contract forwards nothing now may have unsent rows of before, so every feed has its relay; the
      // publisher connects when there is something to send.
      if (feed !== undefined) running.set(name, startRelay(parts, outbox, feed));
      return Promise.resolve();
    },
    onLost: async (name) => {
      await running.get(name)?.();
      running.delete(name);
    },
  });
  cleanup.add('relays', () => keeper.stop());
  keeper.start();
}

function startRelay(parts: Parts, outbox: Outbox, feed: RelayedFeed): () => Promise<void> {
  const { config, log, wakeUps, mqttUrls } = parts;
  const publisher = createPublisher({
    urls: mqttUrls,
    username: config.mqttUsername,
    password: config.mqttPassword,
    tls: config.mqttTls,
    clientId: `${config.mqttClientIdPrefix}-${feed.name}-relay`,
    protocolVersion: config.mqttVersion,
  });
  const relay = new Relay({ feed: feed.name, feedId: feed.feedId, outbox, publisher, log });
  const unsubscribe = wakeUps.subscribe((name) => {
    if (name === feed.name) relay.wake();
  });
  relay.start();
  return async () => {
    unsubscribe();
    await relay.stop();
    await publisher.close();
  };
}
