import type { LedgerMemory, Window, WindowHints, WindowUpdate } from '../window';
import { type RedisCheck, UNREACHABLE, checkServer } from './check';
import { RedisConnection } from './connection';
import { type RedisError, toRedisError } from './error';
import { encodeMember, feedKeys } from './keys';
import { Outage } from './outage';
import { Script } from './script';

/** Keys of a feed without traffic outlive the policy's seconds by this, against clocks that differ. */
const EXPIRY_SLACK_MS = 60_000;

export interface RedisWindowOptions {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** Before the hash tag of every key; letters, digits, `:`, `.`, `_` and `-`, at most 64. */
  readonly keyPrefix: string;
  /** Default 250. A batch waits no longer than this for a look-up, and then not again until Redis answers. */
  readonly commandTimeoutMs?: number;
  /** Once at the start of an outage, however many commands it fails. Must not throw. */
  readonly onProblem: (error: RedisError) => void;
  /** When everything that failed works again. Must not throw. */
  readonly onRecovered: () => void;
}

export interface RedisWindow extends Window {
  /** For start-up: waits for the first connection, no longer than `timeoutMs` (default 2000). Never rejects. */
  checkRedis(timeoutMs?: number): Promise<RedisCheck>;
}

/**
 * The window in Redis 6.2 or newer: one script call a batch, each on keys of one hash slot (design section 5).
 * Connects in the background, and again whenever the connection is lost.
 *
 * A Redis that is away, slow, full, read-only, empty or full of nonsense makes `lookup` null and `record` false; a full or
 * read-only one still answers look-ups.
 *
 * @throws RedisUrlError
 * @throws RangeError for a prefix that would break the keys
 */
export function createRedisWindow(options: RedisWindowOptions): RedisWindow {
  const { url, keyPrefix, commandTimeoutMs = 250 } = options;
  if (!/^[A-Za-z0-9:._-]{1,64}$/.test(keyPrefix)) {
    throw new RangeError('a key prefix has 1 to 64 letters, digits, ":", ".", "_" or "-"');
  }
  const lookupScript = new Script('lookup.lua');
  const recordScript = new Script('record.lua');
  const outage = new Outage(options.onProblem, options.onRecovered);
  const connection = new RedisConnection({ url, commandTimeoutMs, outage });

  /** Null for any error; the connection reports its own, what a server answers is reported here. */
  async function attempt<T>(part: 'lookup' | 'record', act: () => Promise<T>): Promise<T | null> {
    try {
      const result = await act();
      outage.worked(part);
      return result;
    } catch (cause) {
      const error = toRedisError(cause);
      if (error.code !== 'unreachable' && error.code !== 'timeout') {
        outage.failed(part, error);
      }
      if (error.code === 'read_only') {
        connection.reconnectOnReadOnly();
      }
      return null;
    }
  }

  return {
    async lookup(feed: string, keys: readonly string[]): Promise<WindowHints | null> {
      const names = feedKeys(keyPrefix, feed);
      return attempt('lookup', async () => {
        const reply = await connection.run(lookupScript, [names.memory, names.keys], keys.map(encodeMember));
        return readHints(keys, reply);
      });
    },

    async record(feed: string, update: WindowUpdate): Promise<boolean> {
      const names = feedKeys(keyPrefix, feed);
      const reply = await attempt('record', () =>
        connection.run(recordScript, [names.memory, names.keys, names.marks], recordArguments(update)),
      );
      return reply !== null;
    },

    async checkRedis(timeoutMs = 2000): Promise<RedisCheck> {
      const isUp = await connection.whenUp(timeoutMs);
      return isUp ? checkServer((command, args) => connection.ask(command, args)) : UNREACHABLE;
    },

    close: () => connection.close(),
  };
}

/** ARGV of `record.lua`. */
function recordArguments(update: WindowUpdate): Array<string | Buffer> {
  const { memory, recordedAtMs, windowSeconds, maxEntries } = update;
  const args: Array<string | Buffer> = [
    String(memory.term),
    String(memory.size),
    memory.lastLeaf,
    String(recordedAtMs),
    String(recordedAtMs - windowSeconds * 1000),
    String(maxEntries),
    String(Math.ceil(windowSeconds * 1000) + EXPIRY_SLACK_MS),
  ];
  for (const [key, position] of update.positions) {
    args.push(String(position), encodeMember(key));
  }
  return args;
}

/** The reply of `lookup.lua`. Redis is not trusted: what does not read as ours was never there. */
function readHints(keys: readonly string[], reply: unknown): WindowHints {
  const positions = new Map<string, number>();
  const [fields, scores] = Array.isArray(reply) ? (reply as unknown[]) : [];
  const memory = readMemory(fields);
  if (memory !== null && Array.isArray(scores)) {
    keys.forEach((key, index) => {
      const position = readCount(scores[index]);
      if (position !== null) {
        positions.set(key, position);
      }
    });
  }
  return { positions, memory };
}

function readMemory(fields: unknown): LedgerMemory | null {
  const [termText, sizeText, lastLeaf] = Array.isArray(fields) ? (fields as unknown[]) : [];
  const term = readCount(termText);
  const size = readCount(sizeText);
  if (term === null || size === null || typeof lastLeaf !== 'string') {
    return null;
  }
  const isLeaf = size === 0 ? lastLeaf === '' : /^[0-9a-f]{64}$/.test(lastLeaf);
  return isLeaf ? { term, size, lastLeaf } : null;
}

/** The same rule as `count` in `record.lua`. */
function readCount(value: unknown): number | null {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : null;
}
