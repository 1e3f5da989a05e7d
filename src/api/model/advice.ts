/**
 * How large a window should be, from what was measured (design section 8, `feed { window { advice } }`). Pure. Each figure
 * comes with its reason, so that an administrator can disagree with it.
 */
import { MAX_WINDOW_ENTRIES, MAX_WINDOW_SECONDS } from '../../contract/schema';

/** Seconds; null where there was no replay. */
export interface ReplayLags {
  readonly replays: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

export interface Advised {
  readonly value: number;
  readonly reason: string;
}

/** Above what was measured, for what was not seen yet. */
const SECONDS_MARGIN = 1.5;
const ENTRIES_MARGIN = 1.25;

/**
 * Not by the latest replay of all: one that came after a week would make every window a week long, and the ledger proves
 * it without one.
 *
 * @param horizonSeconds what the contract says that replays can come late by; null where it cannot be read
 */
export function adviseSeconds({ replays, p99, max }: ReplayLags, horizonSeconds: number | null): Advised {
  const least = (horizonSeconds ?? 0) + 1;
  const measured = p99 === null ? 0 : Math.ceil(p99 * SECONDS_MARGIN);
  const value = Math.min(MAX_WINDOW_SECONDS, Math.max(least, measured));
  const late =
    max !== null && max > value ? `; the latest came after ${shown(max)} s, and the ledger proves such ones` : '';
  if (p99 !== null && measured > least) {
    return {
      value,
      reason: `99 % of ${replays} replays came within ${shown(p99)} s; a half more for what is to come${late}`,
    };
  }
  const seen = p99 === null ? 'no replay came' : `99 % of ${replays} replays came within ${shown(p99)} s`;
  const why =
    horizonSeconds === null
      ? 'the contract cannot be read'
      : `the contract says that replays can come ${horizonSeconds} s late`;
  return { value, reason: `${why}; ${seen}${late}` };
}

/** @param peak the most entries within the advised seconds */
export function adviseEntries(seconds: number, peak: number): Advised {
  const value = Math.min(MAX_WINDOW_ENTRIES, Math.max(1, Math.ceil(peak * ENTRIES_MARGIN)));
  return { value, reason: `up to ${peak} entries came within ${seconds} s; a quarter more for bursts` };
}

export interface WindowInForce {
  readonly windowSeconds: number;
  readonly maxEntries: number;
  /** The most entries within `windowSeconds`. */
  readonly peak: number;
  /** Replays within the seconds whose original the count had pushed out. */
  readonly pushedOut: number;
}

/** Whether entries leave by count before their time, in words; null: they do not. */
export function warnOfCount({ windowSeconds, maxEntries, peak, pushedOut }: WindowInForce): string | null {
  if (peak <= maxEntries) return null;
  const hit = pushedOut === 0 ? '' : `; ${pushedOut} replays came in time and found their original gone`;
  return (
    `entries leave by count before their time: up to ${peak} came within windowSeconds ${windowSeconds}, and ` +
    `maxEntries keeps ${maxEntries}${hit}`
  );
}

function shown(seconds: number): string {
  return String(Math.round(seconds * 1000) / 1000);
}
