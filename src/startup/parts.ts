/** What the parts of the program are started with, and what stops them from starting. */
import { randomUUID } from 'node:crypto';
import type { Config } from '../config';
import type { Database } from '../ledger/client';
import type { WakeUps } from '../live/port';
import type { Cleanup } from '../ops/cleanup';
import type { Logger } from '../ops/port';
import type { FeedRuntime } from '../pipeline/feed';

export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly database: Database;
  readonly feeds: readonly FeedRuntime[];
  readonly wakeUps: WakeUps;
  readonly mqttUrls: readonly string[];
  readonly cleanup: Cleanup;
}

/** The program cannot start. The message is for people: one line, or one line a problem. */
export class StartError extends Error {
  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** Contracts may name brokers later; until then there is one. */
export const BROKER = 'default';

/** Embedded, the folder lock lets one process in: it takes its own leases back at once after a crash. */
export function instanceName(kind: 'postgres' | 'embedded'): string {
  return kind === 'embedded' ? 'embedded' : randomUUID();
}
