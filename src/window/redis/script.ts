import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';

/** A Lua command: sent by its digest, and in full to a server that does not have it (restarted, SCRIPT FLUSH). */
export class Script {
  private readonly source: string;
  private readonly digest: string;

  /** @param file beside this module */
  constructor(file: 'lookup.lua' | 'record.lua') {
    this.source = readFileSync(join(__dirname, file), 'utf8');
    this.digest = createHash('sha1').update(this.source).digest('hex');
  }

  async run(redis: Redis, keys: readonly string[], args: ReadonlyArray<string | Buffer>): Promise<unknown> {
    // Arguments go as one array: tens of thousands of them, spread, would overflow the stack.
    const rest = [keys.length, ...keys];
    try {
      return await redis.call('EVALSHA', ([this.digest, ...rest] as Array<string | Buffer | number>).concat(args));
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) {
        return redis.call('EVAL', ([this.source, ...rest] as Array<string | Buffer | number>).concat(args));
      }
      throw error;
    }
  }
}
