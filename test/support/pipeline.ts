/**
 * The main path without a broker: deliveries go into the production worker, acknowledgements are noted.
 */
import { loadContract } from '../../src/contract/load';
import type { LoadedContract } from '../../src/contract/types';
import { openDatabase } from '../../src/ledger/client';
import type { Database } from '../../src/ledger/client';
import { activateContract } from '../../src/ledger/feeds';
import type { Activation } from '../../src/ledger/feeds';
import { createLedgerStore } from '../../src/ledger/store';
import { createLocalWakeUps } from '../../src/live/local';
import type { WakeUps } from '../../src/live/port';
import type { ReceivedDelivery } from '../../src/mqtt/port';
import { createLogger } from '../../src/ops/logger';
import type { FeedRuntime } from '../../src/pipeline/feed';
import { Intake } from '../../src/pipeline/intake';
import type { Step } from '../../src/pipeline/process-batch';
import { FeedWorker } from '../../src/pipeline/worker';
import { contractSource } from '../../src/startup/contracts';
import { createLocalWindow } from '../../src/window/local';
import type { Window } from '../../src/window/window';
import { onCleanup } from './cleanup';
import { createMigratedDatabase } from './database';
import { until } from './wait';
import type { StoredEntry } from './ledger';
import { readEntries } from './ledger';

export const TOPIC = 'cad/north/e1/incident';

/** The contract of the cases (test/cases): lines may be replaced or added. */
export function caseContract(
  overrides: { feed?: string; dedup?: string; identity?: string; rest?: string; topics?: string } = {},
): string {
  const {
    feed = 'cad-north',
    topics = '["cad/north/+/incident"]',
    dedup = '{ windowSeconds: 600, maxEntries: 1000 }',
    identity = '{ agency: { pointer: /agency }, source: { pointer: /src }, sequence: { pointer: /seq } }',
    rest = 'effects:\n  - { do: set, field: status, to: [{ pointer: /status }, { const: none }] }',
  } = overrides;
  return [
    'apiVersion: replay-ledger/v1',
    `feed: ${feed}`,
    'description: the feed of the cases',
    'owner: tests',
    `topics: ${topics}`,
    'decode: json',
    `identity: ${identity}`,
    'incident: { pointer: /incident }',
    `dedup: ${dedup}`,
    rest,
    '',
  ].join('\n');
}

export function parseContract(yaml: string, file = 'contract.yaml'): LoadedContract {
  const load = loadContract(file, Buffer.from(yaml));
  if (!load.ok) throw new Error(load.errors.map((e) => `${e.line}:${e.column} ${e.message}`).join('\n'));
  return load.loaded;
}

/** `B(n)` of the cases. */
export function b(n: number | string, changes: Record<string, unknown> = {}): string {
  const message = { agency: 'NFD', src: 'e1', seq: '@', incident: 'I-77', status: 'ENROUTE', ...changes };
  return JSON.stringify(message).replace('"@"', String(n));
}

export interface DeliverOptions {
  readonly topic?: string;
  readonly dup?: boolean;
  readonly retained?: boolean;
  readonly qos?: 0 | 1 | 2;
}

export function delivery(payload: string | Uint8Array, options: DeliverOptions = {}): ReceivedDelivery {
  const { topic = TOPIC, dup = false, retained = false, qos = 1 } = options;
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload;
  return {
    broker: 'default',
    topic,
    payload: bytes,
    qos,
    dup,
    retained,
    userProperties: {},
    receivedAtMs: 0,
    acknowledgement: {},
  };
}

export interface TestPipeline {
  readonly url: string;
  readonly database: Database;
  readonly feed: FeedRuntime;
  readonly acknowledged: ReceivedDelivery[];
  readonly steps: Step[];
  readonly wakeUps: WakeUps;
  /** Hands over deliveries as they would come from one connection; does not wait. */
  offer(...deliveries: ReceivedDelivery[]): void;
  /** Lands one delivery after the other and answers the entries that came of it. */
  deliver(...payloads: (string | Uint8Array | ReceivedDelivery)[]): Promise<StoredEntry[]>;
  entries(): Promise<StoredEntry[]>;
  stop(): Promise<void>;
  abandon(): void;
}

export interface PipelineOptions {
  readonly contract?: string;
  readonly url?: string;
  readonly window?: Window;
  readonly poolSize?: number;
  readonly batchMaxDeliveries?: number;
  readonly onStep?: (step: Step) => void;
  readonly onCommitted?: () => void;
  readonly maxPayloadBytes?: number;
  readonly transactionTimeoutMs?: number;
}

/** Puts a contract in force, as a start with a new file does. */
export function activate(database: Database, loaded: LoadedContract): Promise<Activation> {
  return activateContract(database.prisma, loaded, {
    actor: 'test',
    commit: null,
    parse: (stored) => parseContract(stored.sourceText).contract,
  });
}

/** A worker on a feed; several on the same `url` are several instances. */
export async function startPipeline(options: PipelineOptions = {}): Promise<TestPipeline> {
  const url = options.url ?? (await createMigratedDatabase()).url;
  const database = await openDatabase({ url, poolSize: options.poolSize ?? 4, applicationName: 'test' });
  onCleanup(() => database.close());
  const loaded = parseContract(options.contract ?? caseContract());
  const { feedId } = await activate(database, loaded);
  const contracts = contractSource(database, options.maxPayloadBytes ?? 1_048_576);
  const feed: FeedRuntime = {
    feedId,
    name: loaded.contract.feed,
    active: await contracts.load(feedId, loaded.digest),
    memory: null,
    reached: new Map(),
  };
  const acknowledged: ReceivedDelivery[] = [];
  const steps: Step[] = [];
  const wakeUps = createLocalWakeUps();
  const intake = new Intake({ maxDeliveries: 100_000, maxBytes: 1 << 30 }, () => undefined);
  const worker = new FeedWorker(
    {
      ledger: createLedgerStore(database.prisma, { transactionTimeoutMs: options.transactionTimeoutMs ?? 30_000 }),
      window: options.window ?? createLocalWindow(),
      contracts,
      wakeUps,
      log: createLogger(process.env.TEST_LOG_LEVEL ?? 'silent'),
      onCommitted: () => options.onCommitted?.(),
      onStep: (step) => {
        steps.push(step);
        options.onStep?.(step);
      },
    },
    feed,
    intake,
    {
      acknowledge: (deliveries) => {
        acknowledged.push(...deliveries);
        return deliveries.length;
      },
    },
    {
      batch: { maxDeliveries: options.batchMaxDeliveries ?? 500, maxBytes: 1 << 24 },
      retry: { minMs: 10, maxMs: 200 },
    },
  );
  worker.start();
  onCleanup(() => worker.abandon());
  const entries = () => readEntries(url, feed.name);
  return {
    url,
    database,
    feed,
    acknowledged,
    steps,
    wakeUps,
    entries,
    offer: (...deliveries) => deliveries.forEach((d) => intake.offer(d)),
    async deliver(...payloads) {
      const before = (await entries()).length;
      for (const payload of payloads) {
        const one = typeof payload === 'string' || payload instanceof Uint8Array ? delivery(payload) : payload;
        intake.offer(one);
        await until(() => acknowledged.includes(one), { what: 'the acknowledgement' });
      }
      return (await entries()).slice(before);
    },
    stop: () => worker.stop(),
    abandon: () => worker.abandon(),
  };
}
