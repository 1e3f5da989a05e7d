/**
 * The night itself: real brokers, real clients, the real product, in the one order that shows the fault every time.
 *
 * Every step waits for what it needs to be true, never for time to pass, so the numbers are the same in each run:
 *   1. both consumers have their sessions at the primary
 *   2. dispatch opens the incident; both acknowledge
 *   3. engines report; both consumers have got and processed everything, their acknowledgements are still on the way
 *   4. the standby gets its copy of the sessions: the messages of step 3 are in it, unacknowledged
 *   5. the acknowledgements arrive; the engines are released; both acknowledge: the primary owes nobody anything
 *   6. the primary dies, the standby takes its port, and delivers the messages of step 3 again
 *   7. one more event, to the standby
 */
import type { SessionSnapshot } from '../../embedded/sessions';
import { publishInOrder, startNaiveConsumer } from '../../mqtt/naive';
import type { Cleanup } from '../../ops/cleanup';
import type { BrokerPair } from './brokers';
import { messagesReceived, readLedger } from './ledger-view';
import type { LedgerView } from './ledger-view';
import {
  add,
  AFTER_THE_FAILOVER,
  AFTER_THE_SNAPSHOT,
  AT_THE_SNAPSHOT,
  BEFORE_THE_SNAPSHOT,
  describe,
  payloadOf,
  topicOf,
  TOPIC_FILTER,
} from './scenario';
import type { Change, DemoEvent, Picture } from './scenario';
import { DemoFailed } from './stop';
import type { Patience } from './stop';

export interface NightOptions {
  readonly brokers: BrokerPair;
  readonly apiUrl: string;
  /** Client id of the product's session. */
  readonly ourClientId: string;
  readonly patience: Patience;
  readonly cleanup: Cleanup;
  readonly tell: (line: string) => void;
}

export interface NightResult {
  /** Events that producers published, each once. */
  readonly published: number;
  /** Deliveries that came to our consumer; as many came to the naive one. */
  readonly delivered: number;
  /** Of them, those that had come before. */
  readonly redelivered: number;
  readonly naive: Picture;
  readonly ledger: LedgerView;
}

const NAIVE_CLIENT_ID = 'naive-consumer';
const PRODUCER_CLIENT_ID = 'county-fire-cad';

export async function runNight(options: NightOptions): Promise<NightResult> {
  const night = new Night(options);
  const { tell } = options;
  await night.begin();
  await night.publish(BEFORE_THE_SNAPSHOT);
  await night.acknowledged();

  const snapshot = await night.copiedBeforeAcknowledgement(AT_THE_SNAPSHOT);
  tell('       The standby copies the sessions; those acknowledgements are on their way.');
  await night.acknowledged();
  await night.publish(AFTER_THE_SNAPSHOT);
  await night.acknowledged();
  tell('       All is acknowledged: the primary owes nobody anything.');

  tell('       The primary dies. The standby takes its port, and knows only its copy ...');
  await night.failOver(snapshot);
  tell('       It has delivered again what it took for unacknowledged, as QoS 1 allows.');
  await night.publish(AFTER_THE_FAILOVER);
  await night.acknowledged();
  return night.result();
}

class Night {
  private naive: Picture = { casualties: 0, units: {} };
  private naiveDeliveries = 0;
  private published = 0;
  /** Deliveries to each consumer up to now, if the brokers do what they must. */
  private due = 0;
  private readonly clientIds: readonly string[];

  constructor(private readonly options: NightOptions) {
    this.clientIds = [NAIVE_CLIENT_ID, options.ourClientId];
  }

  async begin(): Promise<void> {
    const { brokers, cleanup, patience } = this.options;
    const consumer = await startNaiveConsumer({
      url: brokers.url,
      clientId: NAIVE_CLIENT_ID,
      filter: TOPIC_FILTER,
      onMessage: (_topic, payload) => {
        this.naiveDeliveries += 1;
        this.naive = add(this.naive, { change: JSON.parse(payload.toString('utf8')) as Change });
      },
    });
    cleanup.add('naive consumer', () => consumer.close());
    await patience.until('both consumers to subscribe', async () =>
      (await brokers.sessions(this.clientIds)).every(({ subscriptions }) => subscriptions.length > 0),
    );
  }

  /** Publishes, and waits until both consumers have processed it. */
  async publish(events: readonly DemoEvent[]): Promise<void> {
    const { brokers, patience, tell } = this.options;
    patience.check();
    for (const { sent, source, change } of events)
      tell(`${sent.slice(11, 16)}  ${source.padEnd(11)}${describe(change)}`);
    const messages = events.map((event) => ({ topic: topicOf(event), payload: payloadOf(event) }));
    await publishInOrder(brokers.url, PRODUCER_CLIENT_ID, messages);
    this.published += events.length;
    await this.delivered(events.length);
  }

  /** Publishes, and copies the sessions when everything is processed and nothing of it is acknowledged yet. */
  async copiedBeforeAcknowledgement(events: readonly DemoEvent[]): Promise<readonly SessionSnapshot[]> {
    const { brokers } = this.options;
    const release = brokers.holdAcknowledgements();
    try {
      await this.publish(events);
      return await brokers.sessions(this.clientIds);
    } finally {
      release();
    }
  }

  /** Waits until the broker has every acknowledgement. */
  async acknowledged(): Promise<void> {
    const { brokers, patience } = this.options;
    await patience.until('the acknowledgements', async () =>
      (await brokers.sessions(this.clientIds)).every(({ unacknowledged }) => unacknowledged.length === 0),
    );
  }

  /** Waits until the standby has delivered everything that its copy took for unacknowledged. */
  async failOver(snapshot: readonly SessionSnapshot[]): Promise<void> {
    await this.options.brokers.failOver(snapshot);
    await this.delivered(Math.max(...snapshot.map(({ unacknowledged }) => unacknowledged.length)));
    await this.acknowledged();
  }

  async result(): Promise<NightResult> {
    const ledger = await readLedger(this.options.apiUrl);
    const delivered = ledger.balance.received;
    if (this.naiveDeliveries !== delivered) {
      // The two pictures may be compared only if both consumers were given the same.
      throw new DemoFailed(
        `${delivered} messages came to Replay Ledger, but ${this.naiveDeliveries} to the naive consumer`,
      );
    }
    return { published: this.published, delivered, redelivered: delivered - this.published, naive: this.naive, ledger };
  }

  private async delivered(more: number): Promise<void> {
    const { apiUrl, patience } = this.options;
    this.due += more;
    await patience.until('the deliveries', async () => {
      return this.naiveDeliveries >= this.due && (await messagesReceived(apiUrl)) >= this.due;
    });
  }
}
