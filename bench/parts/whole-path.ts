/** The product as it is shipped: `startApp` of the build as a consumer, on Postgres and Redis. */
import type * as AppModule from '../../src/app';
import type * as ConfigModule from '../../src/config';
import type { Logger } from '../../src/ops/port';
import { type Measured, peakRssBytes, serveJob } from '../child';
import { built } from '../product';
import { Ledger } from '../ledger';

export interface WholePathJob {
  /** The variables that configure the product. */
  readonly env: Readonly<Record<string, string>>;
  readonly feed: string;
  readonly messages: number;
  /** Ledger sizes at which the heap is measured after a garbage collection; needs `--expose-gc`. */
  readonly heapAt: readonly number[];
}

export interface HeapSample {
  /** Entries in the ledger. */
  readonly messages: number;
  readonly heapUsedBytes: number;
}

export interface WholePathResult extends Measured {
  readonly heap: readonly HeapSample[];
}

const POLL_MS = 20;

async function drain({ env, feed, messages, heapAt }: WholePathJob): Promise<WholePathResult> {
  const { readConfig } = built<typeof ConfigModule>('config');
  const { startApp } = built<typeof AppModule>('app');
  const config = readConfig(env, () => '');
  const ledger = await Ledger.open(env.DATABASE_URL ?? '', feed);
  const before = await ledger.size();
  const connection = new Connection();
  const batches = { committed: 0, acknowledged: 0, acknowledgedAt: 0 };
  const app = await startApp(config, connection.log, {
    role: 'consumer',
    onStep: (step) => {
      if (step === 'committed') batches.committed += 1;
      if (step !== 'acknowledged') return;
      batches.acknowledged += 1;
      batches.acknowledgedAt = performance.now();
    },
  });
  const heap: HeapSample[] = [];
  // The ledger says when it is over; the time is that of the acknowledgement, however late the ledger was asked.
  for (;;) {
    const landed = (await ledger.size()) - before;
    const mark = heapAt[heap.length];
    if (mark !== undefined && landed >= mark) heap.push({ messages: landed, heapUsedBytes: heapAfterCollection() });
    if (landed >= messages && batches.acknowledged === batches.committed) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  connection.quiet = true;
  await app.close();
  await ledger.close();
  const seconds = (batches.acknowledgedAt - connection.acceptedAt()) / 1000;
  return { messages, seconds, peakRssBytes: peakRssBytes(), heap };
}

function heapAfterCollection(): number {
  if (globalThis.gc === undefined) throw new Error('the heap is measured under --expose-gc');
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

/** Learns from the log when the broker accepted the consumer, and shows what goes wrong. */
class Connection {
  private accepted: number | null = null;
  /** Its end, which we bring about, is no warning. */
  quiet = false;

  readonly log: Logger = {
    debug: () => undefined,
    info: (_fields, message) => {
      if (message === 'connected to the broker') this.accepted ??= performance.now();
    },
    warn: (fields, message) => this.show(fields, message),
    error: (fields, message) => this.show(fields, message),
  };

  /** As `performance.now()`. */
  acceptedAt(): number {
    if (this.accepted === null) throw new Error('the product did not log its connection');
    return this.accepted;
  }

  private show(fields: object, message: string): void {
    if (!this.quiet) console.error(message, fields);
  }
}

serveJob(drain);
