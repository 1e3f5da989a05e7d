/**
 * A feed as the pipeline knows it.
 */
import type { Decoder } from '../contract/decode';
import type { FeedContract } from '../contract/types';
import type { LedgerMemory } from '../window/window';

/** A contract that decides, compiled. */
export interface ActiveContract {
  /** SHA-256 of the file it came from, hex. */
  readonly digest: string;
  readonly contract: FeedContract;
  readonly decoder: Decoder;
}

export interface FeedRuntime {
  readonly feedId: number;
  readonly name: string;
  /** What batches are decoded under; replaced when the ledger says that another is in force. */
  active: ActiveContract;
  /** What this instance last saw committed. A ledger that knows less went back in time. */
  memory: LedgerMemory | null;
  /** Highest sequence of the sources of the last batch, by `epochKey`: the window cannot know what lies above. */
  reached: ReadonlyMap<string, bigint>;
}

export interface ContractSource {
  /** The contract of a feed by its digest. Rejects when the store cannot answer. */
  load(feedId: number, digest: string): Promise<ActiveContract>;
}
