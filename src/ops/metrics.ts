/**
 * What operators see of a running process, in the Prometheus text format (0.0.4). Each app has a registry of its own.
 *
 * Decisions are counted when they are committed, never when they are intended: after a crash the counters of the
 * process are gone, but they never told of more than the ledger holds. Names follow the Prometheus conventions: base
 * units in the name, `_total` for counters.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Outcome, Tier } from '../dedup/state';
import { RecentFacts } from './recent-facts';

/** Of one feed, as the database has it now, whichever instance wrote it. */
export interface LedgerFacts {
  readonly feed: string;
  /** Entries in the ledger. */
  readonly size: number;
  /** Held entries that nobody has released or dismissed. */
  readonly held: number;
  /** Rows of the outbox that no broker has acknowledged. */
  readonly unsent: number;
  /** Whether the two counts of design section 3 are equal. */
  readonly balanced: boolean;
}

export interface MetricsOptions {
  /** Series of these begin at 0, so that the first increase is one. */
  readonly feeds: readonly string[];
  /** Reads what is true of the ledgers now. A rejection makes the series it feeds absent. */
  readonly readFacts: () => Promise<readonly LedgerFacts[]>;
}

export interface MetricsText {
  readonly contentType: string;
  readonly body: string;
}

const FEED = ['feed'] as const;
const PREFIX = 'replay_ledger_';

/** What the tier of an outcome can be (design section 3). */
const DECISIONS: readonly (readonly [Outcome, Tier])[] = [
  ['IGNORED', 'NONE'],
  ['MALFORMED_REJECTED', 'NONE'],
  ['DUPLICATE_SUPPRESSED', 'WINDOW'],
  ['DUPLICATE_SUPPRESSED', 'LEDGER'],
  ['KEY_CONFLICT', 'NONE'],
  ['STALE_OUT_OF_ORDER', 'HIGH_WATER_MARK'],
  ['EFFECT_FAILED', 'NONE'],
  ['APPLIED', 'NONE'],
];

/** The facts are read at most this often, and a scrape waits this long for them: Prometheus gives up after 10 s. */
const FACTS = { minAgeMs: 5_000, waitMs: 3_000 };

export class Metrics {
  readonly registry = new Registry();
  private readonly beforeScrapes: (() => void)[] = [];
  private readonly facts: RecentFacts<readonly LedgerFacts[]>;

  readonly deliveriesReceived = this.counter(
    'deliveries_received_total',
    'Deliveries that reached this process, by the QoS that they came with; those of QoS 0 are lost if it dies before the commit.',
    ['feed', 'qos'],
  );
  readonly messagesReceived = this.counter(
    'messages_received_total',
    'Messages of committed batches, counted when they were decoded.',
    FEED,
  );
  readonly decisions = this.counter('decisions_total', 'Committed decisions, by outcome and tier.', [
    'feed',
    'outcome',
    'tier',
  ]);
  readonly windowLookups = this.counter(
    'window_lookups_total',
    'Committed messages, by whether the window knew their key (hit), did not (miss), or could not be asked (unavailable).',
    ['feed', 'result'],
  );
  readonly windowFallbackHits = this.counter(
    'window_fallback_hits_total',
    'Duplicates whose original only the ledger remembered: the window did not know the key.',
    FEED,
  );
  readonly batchRetries = this.counter(
    'batch_retries_total',
    'Batches that were begun again, because the attempt before was not committed.',
    FEED,
  );
  readonly termsOpened = this.counter(
    'terms_opened_total',
    'Terms opened because the database had gone back in time.',
    FEED,
  );
  readonly sessionsLost = this.counter(
    'mqtt_sessions_lost_total',
    'Times that the broker no longer had our session: messages may be lost.',
    FEED,
  );
  readonly disconnects = this.counter(
    'mqtt_disconnects_total',
    'Connections to the broker that ended, and attempts that failed.',
    FEED,
  );

  readonly batchMessages = this.histogram(
    'batch_messages',
    'Messages of a committed batch.',
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
  );
  readonly batchDuration = this.histogram(
    'batch_duration_seconds',
    'From asking the window for a batch until it is committed.',
    [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
  );
  readonly acknowledgementDelay = this.histogram(
    'acknowledgement_delay_seconds',
    'From the arrival of the oldest delivery of a batch to its acknowledgement.',
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300],
  );
  readonly replayLag = this.histogram(
    'replay_lag_seconds',
    'From the decision about an original to that about its duplicate. Compare with the window of the policy.',
    [0.1, 0.5, 1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 86_400],
  );

  readonly deliveriesInFlight = this.gauge(
    'deliveries_in_flight',
    'Deliveries in this process that are not acknowledged yet.',
    FEED,
  );
  readonly bytesInFlight = this.gauge('deliveries_in_flight_bytes', 'Payload bytes of the deliveries in flight.', FEED);
  readonly deliveriesWaiting = this.gauge(
    'deliveries_waiting',
    'Deliveries in flight that no batch has taken yet.',
    FEED,
  );
  readonly leaseOwner = this.gauge(
    'lease_owner',
    '1 where this instance owns the lease of the feed, else 0. The sum over instances is 1.',
    FEED,
  );
  readonly connected = this.gauge(
    'mqtt_connected',
    '1 while this instance is connected to the broker for the feed, else 0.',
    FEED,
  );
  readonly windowUnavailable = this.gauge(
    'window_unavailable',
    '1 while the window fails the operation: every decision stays the same, but costs more. Alarm on it.',
    ['operation'],
  );
  readonly contractErrors = this.gauge(
    'contract_errors',
    'Errors in the contract file of the feed, whose contract of before stays in force. Empty label: of no known feed.',
    FEED,
  );
  readonly oidcKeysUnavailable = this.gauge(
    'oidc_keys_unavailable',
    '1 while the keys of the OpenID provider cannot be read: before long its tokens cannot be checked. Alarm on it.',
    [],
  );
  readonly subscriptions = this.gauge('subscriptions', 'GraphQL subscriptions that are open in this process.', []);
  private readonly entries = this.gauge('ledger_entries', 'Entries in the ledger of the feed.', FEED);
  private readonly held = this.gauge(
    'held_entries',
    'Held entries that wait for release or dismissal by a person.',
    FEED,
  );
  private readonly unsent = this.gauge(
    'outbox_unsent_messages',
    'Messages to forward that no broker has acknowledged yet.',
    FEED,
  );
  private readonly balanced = this.gauge(
    'balanced',
    '1 where received messages equal entries and applied keys equal applied entries, else 0. Alarm on 0.',
    FEED,
  );
  private readonly factsAge = this.gauge(
    'facts_age_seconds',
    'Age of ledger_entries, held_entries, outbox_unsent_messages and balanced; absent like these when the database does not answer.',
    [],
  );

  constructor(options: MetricsOptions) {
    this.facts = new RecentFacts(options.readFacts, FACTS);
    collectDefaultMetrics({ register: this.registry });
    for (const feed of options.feeds) this.begin(feed);
    for (const operation of ['lookup', 'record']) this.windowUnavailable.set({ operation }, 0);
  }

  /** Runs before every scrape, for gauges that are read rather than told. Must not throw. */
  beforeScrape(action: () => void): void {
    this.beforeScrapes.push(action);
  }

  /** What `/metrics` answers. Never rejects for a database that is away: its series are absent then. */
  async text(): Promise<MetricsText> {
    for (const action of this.beforeScrapes) action();
    await this.readFacts();
    return { contentType: this.registry.contentType, body: await this.registry.metrics() };
  }

  private async readFacts(): Promise<void> {
    const recent = await this.facts.get();
    for (const gauge of [this.entries, this.held, this.unsent, this.balanced, this.factsAge]) gauge.reset();
    // A gauge without labels begins at 0 again, which would be a lie here.
    this.factsAge.remove();
    if (recent === null) return;
    this.factsAge.set(recent.ageMs / 1000);
    for (const { feed, size, held, unsent, balanced } of recent.value) {
      this.entries.set({ feed }, size);
      this.held.set({ feed }, held);
      this.unsent.set({ feed }, unsent);
      this.balanced.set({ feed }, balanced ? 1 : 0);
    }
  }

  /** The series of a feed begin at 0. */
  begin(feed: string): void {
    for (const [outcome, tier] of DECISIONS) this.decisions.inc({ feed, outcome, tier }, 0);
    for (const qos of ['0', '1']) this.deliveriesReceived.inc({ feed, qos }, 0);
    for (const result of ['hit', 'miss', 'unavailable']) this.windowLookups.inc({ feed, result }, 0);
    const counters = [this.messagesReceived, this.windowFallbackHits, this.batchRetries, this.termsOpened];
    for (const counter of [...counters, this.sessionsLost, this.disconnects]) counter.inc({ feed }, 0);
    for (const histogram of [this.batchMessages, this.batchDuration, this.acknowledgementDelay, this.replayLag]) {
      histogram.zero({ feed });
    }
    const gauges = [
      this.deliveriesInFlight,
      this.bytesInFlight,
      this.deliveriesWaiting,
      this.leaseOwner,
      this.connected,
      this.contractErrors,
    ];
    for (const gauge of gauges) gauge.set({ feed }, 0);
  }

  private counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.registry] });
  }

  private gauge<L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    return new Gauge({ name: PREFIX + name, help, labelNames, registers: [this.registry] });
  }

  private histogram(name: string, help: string, buckets: number[]): Histogram<'feed'> {
    return new Histogram({ name: PREFIX + name, help, labelNames: FEED, buckets, registers: [this.registry] });
  }
}
