/** The start-up check of a Redis server: what would quietly make the window useless. Pure but for `ask`. */
import { RedisError } from './error';

export interface RedisCheck {
  readonly reachable: boolean;
  /** As the server says it; null where it does not. */
  readonly version: string | null;
  readonly maxmemoryPolicy: string | null;
  /** For people, one sentence each; empty when all is well. */
  readonly warnings: readonly string[];
}

/** Sends one command; rejects with RedisError. */
export type Ask = (command: string, args: string[]) => Promise<unknown>;

export const UNREACHABLE: RedisCheck = {
  reachable: false,
  version: null,
  maxmemoryPolicy: null,
  warnings: ['Redis is not reachable: the window is off until it is, and every look-up goes to the ledger.'],
};

/**
 * INFO first: managed servers forbid CONFIG. Where both are forbidden the policy is unknown, and the warning says so.
 */
export async function checkServer(ask: Ask): Promise<RedisCheck> {
  const version = infoField(await answer(ask, 'INFO', ['server']), 'redis_version');
  const maxmemoryPolicy =
    infoField(await answer(ask, 'INFO', ['memory']), 'maxmemory_policy') ??
    configValue(await answer(ask, 'CONFIG', ['GET', 'maxmemory-policy']));
  return {
    reachable: true,
    version,
    maxmemoryPolicy,
    warnings: [...versionWarnings(version), ...policyWarnings(maxmemoryPolicy)],
  };
}

/** null where the server refuses. */
async function answer(ask: Ask, command: string, args: string[]): Promise<unknown> {
  try {
    return await ask(command, args);
  } catch (error) {
    if (error instanceof RedisError) {
      return null;
    }
    throw error;
  }
}

function infoField(info: unknown, field: string): string | null {
  const lines = typeof info === 'string' ? info.split('\r\n') : [];
  const line = lines.find((each) => each.startsWith(`${field}:`));
  return line === undefined ? null : line.slice(field.length + 1);
}

function configValue(reply: unknown): string | null {
  const value: unknown = Array.isArray(reply) ? reply[1] : null;
  return typeof value === 'string' ? value : null;
}

/** ZMSCORE and ZADD GT came with 6.2. */
export function versionWarnings(version: string | null): string[] {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (major === undefined || minor === undefined) {
    return [];
  }
  const isOld = Number(major) < 6 || (Number(major) === 6 && Number(minor) < 2);
  return isOld
    ? [`Redis ${version} is too old: 6.2 or newer is needed. The window is off, and every look-up goes to the ledger.`]
    : [];
}

function policyWarnings(policy: string | null): string[] {
  if (policy === null) {
    return ['Redis does not tell its maxmemory-policy: make sure that it is noeviction.'];
  }
  return policy === 'noeviction'
    ? []
    : [`Redis has maxmemory-policy ${policy}: it may evict the window under memory pressure; set noeviction.`];
}
