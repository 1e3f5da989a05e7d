/**
 * Tells the metrics what the main path did, from outside: decorators of its ports and listeners of its events, so that
 * the path itself stays the order of its steps.
 */
import type { KeyedMessage } from '../contract/types';
import { claimAt } from '../dedup/originals';
import { deliverySize } from '../contract/delivery-size';
import { claimKey } from '../dedup/state';
import type { DecidedBatch } from '../dedup/state';
import type { BatchToWrite, Locked } from '../ledger/port';
import type { ReceivedDelivery, Subscriber, SubscriberEvent, SubscriberOptions } from '../mqtt/port';
import type { Window } from '../window/window';
import type { Metrics } from './metrics';

/** What the pipeline reports of a batch. */
export interface CommittedBatch {
  readonly write: Pick<BatchToWrite, 'firstPosition' | 'received' | 'recordedAtMicros' | 'termOpened'>;
  readonly decided: Pick<DecidedBatch, 'decisions'>;
  /** Originals as they were read under the lock. */
  readonly claims: Locked['claims'];
}

/** A feed's batch under way; one at a time (design section 5). */
interface Attempt {
  readonly startedAtMs: number;
  /** What the window knew; null where it could not answer. */
  readonly known: ReadonlyMap<string, number> | null;
}

/** What came of a feed, kept as plain numbers until somebody looks: a labelled series costs as much as a hash. */
interface Arrivals {
  /** By QoS, since the last scrape. */
  readonly received: [number, number, number];
  inFlight: number;
  bytesInFlight: number;
}

export class Observer {
  private readonly attempts = new Map<string, Attempt>();
  private readonly arrivals = new Map<string, Arrivals>();

  constructor(private readonly metrics: Metrics) {
    metrics.beforeScrape(() => this.showArrivals());
  }

  /** The window, with its answers and failures noted. */
  window(window: Window): Window {
    const { windowUnavailable } = this.metrics;
    return {
      lookup: async (feed, keys) => {
        const startedAtMs = performance.now();
        const hints = await window.lookup(feed, keys);
        windowUnavailable.set({ operation: 'lookup' }, hints === null ? 1 : 0);
        // A committed attempt is forgotten, so one that is still there failed.
        if (this.attempts.has(feed)) this.metrics.batchRetries.inc({ feed });
        this.attempts.set(feed, { startedAtMs, known: hints?.positions ?? null });
        return hints;
      },
      record: async (feed, update) => {
        const recorded = await window.record(feed, update);
        windowUnavailable.set({ operation: 'record' }, recorded ? 0 : 1);
        return recorded;
      },
      close: () => window.close(),
    };
  }

  /** A batch is committed. */
  committed(feed: string, { write, decided, claims }: CommittedBatch): void {
    const { metrics } = this;
    const attempt = this.attempts.get(feed);
    this.attempts.delete(feed);
    metrics.messagesReceived.inc({ feed }, write.received);
    metrics.batchMessages.observe({ feed }, write.received);
    if (attempt !== undefined)
      metrics.batchDuration.observe({ feed }, (performance.now() - attempt.startedAtMs) / 1000);
    if (write.termOpened !== null) metrics.termsOpened.inc({ feed });
    this.count(feed, decided);
    this.lookups(feed, write.firstPosition, decided, attempt?.known ?? null);
    this.lags(feed, write, decided, claims);
  }

  /** A subscriber that is seen through: what comes, and what of it was acknowledged. */
  subscriber(feed: string, options: SubscriberOptions, create: (options: SubscriberOptions) => Subscriber): Subscriber {
    const arrivals = this.arrivalsOf(feed);
    const subscriber = create({
      ...options,
      sink: {
        offer: (delivery) => {
          arrivals.received[delivery.qos] += 1;
          arrivals.inFlight += 1;
          arrivals.bytesInFlight += deliverySize(delivery);
          return options.sink.offer(delivery);
        },
      },
    });
    return {
      start: () => subscriber.start(),
      resume: () => subscriber.resume(),
      stopIntake: () => subscriber.stopIntake(),
      close: () => subscriber.close(),
      acknowledge: (deliveries) => {
        const written = subscriber.acknowledge(deliveries);
        arrivals.inFlight -= deliveries.length;
        arrivals.bytesInFlight -= bytesOf(deliveries);
        const [oldest] = deliveries;
        const delayMs = oldest === undefined ? null : Math.max(0, Date.now() - oldest.receivedAtMs);
        if (delayMs !== null) this.metrics.acknowledgementDelay.observe({ feed }, delayMs / 1000);
        return written;
      },
    };
  }

  subscriberEvent(feed: string, event: SubscriberEvent): void {
    if (event.type === 'connected') this.metrics.connected.set({ feed }, 1);
    if (event.type !== 'disconnected') return;
    this.metrics.connected.set({ feed }, 0);
    this.metrics.disconnects.inc({ feed });
  }

  leaseTaken(feed: string): void {
    this.metrics.leaseOwner.set({ feed }, 1);
  }

  /** Nothing of the feed is in this process any more; what was not acknowledged is the broker's again. */
  leaseGiven(feed: string): void {
    this.attempts.delete(feed);
    const arrivals = this.arrivalsOf(feed);
    arrivals.inFlight = 0;
    arrivals.bytesInFlight = 0;
    const { leaseOwner, connected, deliveriesWaiting } = this.metrics;
    for (const gauge of [leaseOwner, connected, deliveriesWaiting]) gauge.set({ feed }, 0);
  }

  private arrivalsOf(feed: string): Arrivals {
    let arrivals = this.arrivals.get(feed);
    if (arrivals === undefined) {
      arrivals = { received: [0, 0, 0], inFlight: 0, bytesInFlight: 0 };
      this.arrivals.set(feed, arrivals);
    }
    return arrivals;
  }

  private showArrivals(): void {
    const { deliveriesReceived, deliveriesInFlight, bytesInFlight } = this.metrics;
    for (const [feed, arrivals] of this.arrivals) {
      arrivals.received.forEach((count, qos) => {
        if (count > 0) deliveriesReceived.inc({ feed, qos: String(qos) }, count);
      });
      arrivals.received.fill(0);
      deliveriesInFlight.set({ feed }, arrivals.inFlight);
      bytesInFlight.set({ feed }, arrivals.bytesInFlight);
    }
  }

  /** Summed up first: an increment costs more than an addition. */
  private count(feed: string, { decisions }: CommittedBatch['decided']): void {
    const counts = new Map<string, { readonly outcome: string; readonly tier: string; count: number }>();
    for (const { outcome, tier } of decisions) {
      const name = `${outcome} ${tier}`;
      const seen = counts.get(name);
      if (seen === undefined) counts.set(name, { outcome, tier, count: 1 });
      else seen.count += 1;
    }
    for (const { outcome, tier, count } of counts.values()) this.metrics.decisions.inc({ feed, outcome, tier }, count);
  }

  private lookups(
    feed: string,
    firstPosition: number,
    { decisions }: CommittedBatch['decided'],
    known: Attempt['known'],
  ): void {
    let hits = 0;
    let misses = 0;
    let fallbackHits = 0;
    for (const { message, outcome, original } of decisions) {
      if (message.kind !== 'keyed') continue;
      const isKnown = known !== null && knows(known, message);
      if (isKnown) hits += 1;
      else misses += 1;
      // An original of the same batch could be in no window yet.
      const fromLedger = outcome === 'DUPLICATE_SUPPRESSED' && original !== null && original < firstPosition;
      if (fromLedger && !isKnown) fallbackHits += 1;
    }
    const { windowLookups, windowFallbackHits } = this.metrics;
    windowLookups.inc({ feed, result: 'hit' }, hits);
    windowLookups.inc({ feed, result: known === null ? 'unavailable' : 'miss' }, misses);
    windowFallbackHits.inc({ feed }, fallbackHits);
  }

  private lags(
    feed: string,
    { recordedAtMicros }: CommittedBatch['write'],
    { decisions }: CommittedBatch['decided'],
    claims: CommittedBatch['claims'],
  ): void {
    for (const { message, outcome, original } of decisions) {
      if (outcome !== 'DUPLICATE_SUPPRESSED' || message.kind !== 'keyed') continue;
      const found = original === null ? null : claimAt(claims, message, original);
      // Not among the claims that were read: an original of the same batch, recorded at the same time.
      const lagMicros = found === null ? 0 : recordedAtMicros - found.claim.recordedAtMicros;
      this.metrics.replayLag.observe({ feed }, lagMicros / 1e6);
    }
  }
}

/** Under its own key, or under one of a former identity version. */
function knows(known: ReadonlyMap<string, number>, { keyVersion, key, former }: KeyedMessage): boolean {
  if (known.has(claimKey(keyVersion, key))) return true;
  return former.some(({ claims }) => claims.some((claim) => known.has(claimKey(claim.keyVersion, claim.key))));
}

function bytesOf(deliveries: readonly ReceivedDelivery[]): number {
  return deliveries.reduce((sum, delivery) => sum + deliverySize(delivery), 0);
}
