import type { KeyedMessage } from '../../src/contract/types';
import type { Decision } from '../../src/dedup/state';
import type { ReceivedDelivery, Subscriber, SubscriberOptions } from '../../src/mqtt/port';
import { Metrics, type LedgerFacts } from '../../src/ops/metrics';
import { Observer, type CommittedBatch } from '../../src/ops/observe';
import type { Window, WindowHints } from '../../src/window/window';
import { delivery } from '../support/pipeline';

const FACTS: LedgerFacts = { feed: 'cad', size: 12, held: 2, unsent: 3, balanced: true };

function startMetrics(readFacts: () => Promise<readonly LedgerFacts[]> = async () => [FACTS]): Metrics {
  return new Metrics({ feeds: ['cad'], readFacts });
}

/** Sample lines of the product's own, without comments. */
async function samples(metrics: Metrics): Promise<Map<string, number>> {
  const { body } = await metrics.text();
  const lines = body.split('\n').filter((line) => line.startsWith('replay_ledger_'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice('replay_ledger_'.length, space), Number(line.slice(space + 1))];
    }),
  );
}

function message(key: string): KeyedMessage {
  return {
    kind: 'keyed',
    itemIndex: null,
    keyVersion: 1,
    key,
    identity: { agency: 'NFD', sourceId: 'e1', epoch: null, sequence: '1', eventId: null },
    payloadDigest: '',
    claimDigest: '',
    incidentId: null,
    occurredAt: null,
    plan: { ok: true, effects: [], forward: null },
    former: [],
  };
}

function decision(position: number, key: string, rest: Partial<Decision> = {}): Decision {
  const applied = {
    outcome: 'APPLIED',
    tier: 'NONE',
    reason: 'applied',
    late: false,
    original: null,
    note: null,
  } as const;
  return { message: message(key), position, ...applied, ...rest };
}

function batch(decisions: readonly Decision[], rest: Partial<CommittedBatch> = {}): CommittedBatch {
  const write = {
    firstPosition: decisions[0]?.position ?? 0,
    received: decisions.length,
    recordedAtMicros: 100_000_000,
    termOpened: null,
  };
  return { write, decided: { decisions }, claims: new Map(), ...rest };
}

function windowThat(answers: { lookup: WindowHints | null; record?: boolean }): Window {
  return {
    lookup: async () => answers.lookup,
    record: async () => answers.record ?? true,
    close: async () => undefined,
  };
}

const known = (...keys: string[]): WindowHints => ({
  positions: new Map(keys.map((key, position) => [`1:${key}`, position])),
  memory: null,
});

const UPDATE = {
  memory: { term: 1, size: 0, lastLeaf: '' },
  recordedAtMs: 0,
  positions: new Map<string, number>(),
  windowSeconds: 1,
  maxEntries: 1,
};

describe('what a scrape shows', () => {
  it('begins every series of a feed at 0, so that the first increase is one', async () => {
    const shown = await samples(startMetrics());
    expect(shown.get('decisions_total{feed="cad",outcome="DUPLICATE_SUPPRESSED",tier="WINDOW"}')).toBe(0);
    expect(shown.get('replay_lag_seconds_count{feed="cad"}')).toBe(0);
    expect(shown.get('lease_owner{feed="cad"}')).toBe(0);
    expect(shown.get('window_unavailable{operation="lookup"}')).toBe(0);
  });

  it('has names and units as Prometheus asks, and a help text each', async () => {
    const metrics = startMetrics();
    const all = await metrics.registry.getMetricsAsJSON();
    const own = all.filter(({ name }) => name.startsWith('replay_ledger_'));
    expect(own.length).toBeGreaterThan(20);
    for (const { name, help, type } of own) {
      expect(name).toMatch(/^replay_ledger_[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
      expect(name.endsWith('_total')).toBe(String(type) === 'counter');
      expect(name).not.toMatch(/_(ms|millis|kb|mb|minutes)(_|$)/);
      expect(help.length).toBeGreaterThan(20);
    }
    expect((await metrics.text()).contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(all.some(({ name }) => name === 'process_resident_memory_bytes')).toBe(true);
  });

  it('has a registry of its own: two apps in a process do not count together', async () => {
    const [one, other] = [startMetrics(), startMetrics()];
    new Observer(one).committed('cad', batch([decision(0, 'a')]));
    expect((await samples(one)).get('messages_received_total{feed="cad"}')).toBe(1);
    expect((await samples(other)).get('messages_received_total{feed="cad"}')).toBe(0);
  });

  it('shows what the database says, and nothing in its place when it does not answer', async () => {
    const shown = await samples(startMetrics());
    expect(shown.get('ledger_entries{feed="cad"}')).toBe(12);
    expect(shown.get('held_entries{feed="cad"}')).toBe(2);
    expect(shown.get('outbox_unsent_messages{feed="cad"}')).toBe(3);
    expect(shown.get('balanced{feed="cad"}')).toBe(1);
    expect(shown.get('facts_age_seconds')).toBeGreaterThanOrEqual(0);

    const unbalanced = await samples(startMetrics(async () => [{ ...FACTS, balanced: false }]));
    expect(unbalanced.get('balanced{feed="cad"}')).toBe(0);

    const away = await samples(startMetrics(() => Promise.reject(new Error('away'))));
    const ofDatabase = [...away.keys()].filter((name) => /^(ledger_entries|held|outbox|balanced|facts)/.test(name));
    expect(ofDatabase).toEqual([]);
    expect(away.get('messages_received_total{feed="cad"}')).toBe(0);
  });

  it('asks what is to be read before each scrape', async () => {
    const metrics = startMetrics();
    let open = 0;
    metrics.beforeScrape(() => metrics.subscriptions.set(open));
    open = 7;
    expect((await samples(metrics)).get('subscriptions')).toBe(7);
  });
});

describe('what a committed batch counts', () => {
  it('counts messages, and outcomes by tier', async () => {
    const metrics = startMetrics();
    const replay = { outcome: 'DUPLICATE_SUPPRESSED', tier: 'WINDOW', original: 0 } as const;
    new Observer(metrics).committed(
      'cad',
      batch([decision(3, 'a'), decision(4, 'b', replay), decision(5, 'c', replay)]),
    );
    const shown = await samples(metrics);
    expect(shown.get('messages_received_total{feed="cad"}')).toBe(3);
    expect(shown.get('decisions_total{feed="cad",outcome="APPLIED",tier="NONE"}')).toBe(1);
    expect(shown.get('decisions_total{feed="cad",outcome="DUPLICATE_SUPPRESSED",tier="WINDOW"}')).toBe(2);
    expect(shown.get('batch_messages_sum{feed="cad"}')).toBe(3);
  });

  it('C060: a duplicate whose original the window did not know is a fallback hit', async () => {
    const metrics = startMetrics();
    const observer = new Observer(metrics);
    await observer.window(windowThat({ lookup: known('a') })).lookup('cad', ['1:a', '1:b', '1:c']);
    const replay = { outcome: 'DUPLICATE_SUPPRESSED', tier: 'WINDOW' } as const;
    const decisions = [
      decision(10, 'a', { ...replay, original: 0 }),
      decision(11, 'b', { ...replay, original: 1 }),
      decision(12, 'c'),
      // Its original is in the same batch: no window could have known it.
      decision(13, 'c', { ...replay, original: 12 }),
    ];
    observer.committed('cad', batch(decisions));
    const shown = await samples(metrics);
    expect(shown.get('window_fallback_hits_total{feed="cad"}')).toBe(1);
    expect(shown.get('window_lookups_total{feed="cad",result="hit"}')).toBe(1);
    expect(shown.get('window_lookups_total{feed="cad",result="miss"}')).toBe(3);
  });

  it('C066: a window that fails raises the alarm, for each operation, until it works again', async () => {
    const metrics = startMetrics();
    const observer = new Observer(metrics);
    const full = observer.window(windowThat({ lookup: known(), record: false }));
    await full.lookup('cad', []);
    expect(await full.record('cad', UPDATE)).toBe(false);
    expect((await samples(metrics)).get('window_unavailable{operation="lookup"}')).toBe(0);
    expect((await samples(metrics)).get('window_unavailable{operation="record"}')).toBe(1);

    const away = observer.window(windowThat({ lookup: null, record: false }));
    expect(await away.lookup('cad', ['1:a'])).toBeNull();
    observer.committed('cad', batch([decision(0, 'a')]));
    const shown = await samples(metrics);
    expect(shown.get('window_unavailable{operation="lookup"}')).toBe(1);
    expect(shown.get('window_lookups_total{feed="cad",result="unavailable"}')).toBe(1);

    const well = observer.window(windowThat({ lookup: known() }));
    await well.lookup('cad', []);
    await well.record('cad', UPDATE);
    expect((await samples(metrics)).get('window_unavailable{operation="lookup"}')).toBe(0);
    expect((await samples(metrics)).get('window_unavailable{operation="record"}')).toBe(0);
  });

  it('measures the lag of a replay by the times of the ledger', async () => {
    const metrics = startMetrics();
    const decisions = [
      decision(10, 'a', { outcome: 'DUPLICATE_SUPPRESSED', tier: 'WINDOW', original: 4 }),
      decision(11, 'b'),
      decision(12, 'b', { outcome: 'DUPLICATE_SUPPRESSED', tier: 'WINDOW', original: 11 }),
    ];
    const claims = new Map([['1:a', [{ position: 4, recordedAtMicros: 57_500_000, digest: '' }]]]);
    new Observer(metrics).committed('cad', batch(decisions, { claims }));
    const shown = await samples(metrics);
    expect(shown.get('replay_lag_seconds_sum{feed="cad"}')).toBe(42.5);
    expect(shown.get('replay_lag_seconds_count{feed="cad"}')).toBe(2);
  });

  it('counts an attempt that was not committed as a retry, and times the one that was', async () => {
    const metrics = startMetrics();
    const observer = new Observer(metrics);
    const window = observer.window(windowThat({ lookup: known() }));
    await window.lookup('cad', []);
    await window.lookup('cad', []);
    observer.committed('cad', batch([decision(0, 'a')]));
    await window.lookup('cad', []);
    observer.committed('cad', batch([decision(1, 'b')]));
    const shown = await samples(metrics);
    expect(shown.get('batch_retries_total{feed="cad"}')).toBe(1);
    expect(shown.get('batch_duration_seconds_count{feed="cad"}')).toBe(2);
  });

  it('counts a term that was opened', async () => {
    const metrics = startMetrics();
    const { write, ...rest } = batch([decision(0, 'a')]);
    new Observer(metrics).committed('cad', { write: { ...write, termOpened: '{}' }, ...rest });
    expect((await samples(metrics)).get('terms_opened_total{feed="cad"}')).toBe(1);
  });
});

describe('what is seen of a subscriber', () => {
  function observed(metrics: Metrics) {
    const offered: ReceivedDelivery[] = [];
    let inner: SubscriberOptions | undefined;
    const options = { sink: { offer: (one: ReceivedDelivery) => offered.push(one) < 3 } } as SubscriberOptions;
    const subscriber = new Observer(metrics).subscriber('cad', options, (given): Subscriber => {
      inner = given;
      const nothing = (): void => undefined;
      return {
        start: nothing,
        resume: nothing,
        stopIntake: nothing,
        acknowledge: () => 1,
        close: async () => undefined,
      };
    });
    return { offered, subscriber, offer: (one: ReceivedDelivery) => inner?.sink.offer(one) };
  }

  it('counts deliveries by QoS when they come, and holds them in flight until they are acknowledged', async () => {
    const metrics = startMetrics();
    const { offered, subscriber, offer } = observed(metrics);
    expect(offer({ ...delivery('12345', { topic: 'ab' }), userProperties: { id: '7' } })).toBe(true);
    expect(offer(delivery('123', { qos: 0, topic: 'ab' }))).toBe(true);
    expect(offer(delivery('1', { topic: 'ab' }))).toBe(false);
    let shown = await samples(metrics);
    expect(shown.get('deliveries_received_total{feed="cad",qos="0"}')).toBe(1);
    expect(shown.get('deliveries_received_total{feed="cad",qos="1"}')).toBe(2);
    expect(shown.get('deliveries_in_flight{feed="cad"}')).toBe(3);
    expect(shown.get('deliveries_in_flight_bytes{feed="cad"}')).toBe(9 + 3 * 2 + 3);

    expect(subscriber.acknowledge(offered.slice(0, 2))).toBe(1);
    shown = await samples(metrics);
    expect(shown.get('deliveries_in_flight{feed="cad"}')).toBe(1);
    expect(shown.get('deliveries_in_flight_bytes{feed="cad"}')).toBe(1 + 2);
    expect(shown.get('acknowledgement_delay_seconds_count{feed="cad"}')).toBe(1);
  });

  it('shows connection and lease, and nothing of a feed that was given away', async () => {
    const metrics = startMetrics();
    const observer = new Observer(metrics);
    observer.leaseTaken('cad');
    observer.subscriberEvent('cad', { type: 'connected', sessionPresent: true });
    let shown = await samples(metrics);
    expect([shown.get('lease_owner{feed="cad"}'), shown.get('mqtt_connected{feed="cad"}')]).toEqual([1, 1]);
    observer.subscriberEvent('cad', { type: 'disconnected', reason: 'gone' });
    shown = await samples(metrics);
    expect([shown.get('mqtt_connected{feed="cad"}'), shown.get('mqtt_disconnects_total{feed="cad"}')]).toEqual([0, 1]);
    metrics.deliveriesInFlight.set({ feed: 'cad' }, 5);
    observer.leaseGiven('cad');
    shown = await samples(metrics);
    expect([shown.get('lease_owner{feed="cad"}'), shown.get('deliveries_in_flight{feed="cad"}')]).toEqual([0, 0]);
  });
});
