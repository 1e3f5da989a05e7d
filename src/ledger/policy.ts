/**
 * Changes of a feed's dedup policy through the API (design section 7, "Policy"): compare and set under the head lock, so
 * of two that expect the same version one wins, and a batch is decided under exactly one version. Every attempt is an
 * administrative event, also one that is refused.
 */
import type { Prisma, PrismaClient } from '../generated/prisma/client';
import { policyFaults, policyRefusal } from '../contract/check-policy';
import { hasLoneSurrogate } from '../contract/json-value';
import { loadContract } from '../contract/load';
import type { DedupPolicy, FeedContract } from '../contract/types';

type Transaction = Prisma.TransactionClient;

export interface PolicyChange {
  readonly feed: string;
  /** The version that the change was made up from. */
  readonly expectedVersion: number;
  /** What is left out stays as it is. */
  readonly changes: Partial<DedupPolicy>;
  readonly actor: string;
  readonly reason: string;
}

/** Positions from `from` on, without `to`. */
export interface PositionSpan {
  readonly feedId: number;
  readonly from: bigint;
  readonly to: bigint;
}

export type PolicyUpdate =
  | {
      readonly result: 'updated';
      readonly feedId: number;
      readonly version: number;
      /** What lay in the window of before and does not lie in the new one; empty unless it shrank. */
      readonly leaving: PositionSpan;
    }
  | PolicyRefusal;

export interface PolicyRefusal {
  readonly result: 'refused';
  readonly code: 'NOT_FOUND' | 'VERSION_CONFLICT' | 'BAD_USER_INPUT' | 'FORBIDDEN';
  /** For people; names no more than the caller gave and the feed's contract says. */
  readonly message: string;
  /** Where the feed is known. */
  readonly current: { readonly feedId: number; readonly version: number } | null;
}

export const MAX_REASON_LENGTH = 1000;
const FEED_NAME = /^[a-z0-9-]{1,64}$/;
/** Of what a refused attempt said, for the event: it may be anything. */
const MAX_QUOTED_LENGTH = 200;

/** The event kinds of this file. */
export const POLICY_CHANGED = 'POLICY_CHANGED';
export const POLICY_CHANGE_REFUSED = 'POLICY_CHANGE_REFUSED';

interface Current {
  readonly feedId: number;
  readonly size: bigint;
  readonly version: number;
  readonly policy: DedupPolicy;
  readonly contract: FeedContract;
  /** Of the contract. */
  readonly file: string;
  /** Database time, under the lock, as microseconds. */
  readonly nowMicros: string;
}

/**
 * Makes the next version and puts it in force, or says why not. It is in force for the next batch of every instance:
 * each reads the version of the head that it locks.
 */
export async function updatePolicy(prisma: PrismaClient, change: PolicyChange): Promise<PolicyUpdate> {
  const fault = faultOf(change);
  if (fault !== null) {
    await recordRefusal(prisma, change, fault.code, fault.message);
    return fault;
  }
  return prisma.$transaction(async (tx) => {
    const current = await lockCurrent(tx, change.feed);
    const update =
      current === null
        ? refuse('NOT_FOUND', `there is no feed ${change.feed}`)
        : (judge(current, change) ?? (await put(tx, current, change)));
    if (update.result === 'refused') await recordRefusal(tx, change, update.code, update.message);
    return update;
  });
}

/** An attempt that was refused, also one that was refused before it came here. */
export async function recordRefusal(
  prisma: Pick<PrismaClient, '$queryRaw'>,
  { feed, expectedVersion, changes, actor, reason }: PolicyChange,
  code: string,
  message: string,
): Promise<void> {
  const detail = JSON.stringify({
    code,
    message: quoted(message),
    feed: quoted(feed),
    expectedVersion,
    changes: { ...changes, ...quotedJump(changes) },
    reason: quoted(reason),
  });
  const name = FEED_NAME.test(feed) ? feed : null;
  await prisma.$queryRaw`
    SELECT append_admin_event(${POLICY_CHANGE_REFUSED}, (SELECT id FROM feed WHERE name = ${name}), ${actor}, ${detail})`;
}

/**
 * Keys, each with a payload digest, that were decided first within the span, i.e. originals that the window forgets with
 * it. Entries never change, so it may be asked at any time: without the lock, because a window may hold millions.
 */
export async function countClaims(
  prisma: Pick<PrismaClient, '$queryRaw'>,
  { feedId, from, to }: PositionSpan,
): Promise<bigint> {
  const rows = await prisma.$queryRaw<{ count: bigint }[]>`
    SELECT count(*) AS count FROM ledger_entry
    WHERE feed_id = ${feedId} AND position >= ${from} AND position < ${to} AND claim_digest IS NOT NULL`;
  return rows[0]?.count ?? 0n;
}

/** What is wrong with an attempt whatever the feed is. */
function faultOf({ feed, changes, reason }: PolicyChange): PolicyRefusal | null {
  if (!FEED_NAME.test(feed)) return refuse('NOT_FOUND', `there is no feed ${quoted(feed)}`);
  if (reason.trim() === '') return refuse('BAD_USER_INPUT', 'reason must say why the policy is changed');
  if (reason.length > MAX_REASON_LENGTH) {
    return refuse('BAD_USER_INPUT', `reason must not exceed ${MAX_REASON_LENGTH} characters`);
  }
  // Postgres stores neither.
  if (reason.includes('\0') || hasLoneSurrogate(reason)) {
    return refuse('BAD_USER_INPUT', 'reason must be well-formed Unicode without NUL');
  }
  if (Object.keys(changes).length === 0) {
    return refuse('BAD_USER_INPUT', 'policy must name at least one field to change');
  }
  return null;
}

function judge({ feedId, version, policy, contract, file }: Current, change: PolicyChange): PolicyRefusal | null {
  const at = { feedId, version };
  const managed = policyRefusal(contract, file);
  if (managed !== null) return { ...refuse('FORBIDDEN', managed), current: at };
  if (version !== change.expectedVersion) {
    const message = `the policy of feed ${change.feed} is at version ${version}, not ${change.expectedVersion}`;
    return { ...refuse('VERSION_CONFLICT', message), current: at };
  }
  const faults = policyFaults({ ...policy, ...change.changes }, contract);
  return faults.length === 0 ? null : { ...refuse('BAD_USER_INPUT', faults.join('; ')), current: at };
}

async function lockCurrent(tx: Transaction, feed: string): Promise<Current | null> {
  const heads = await tx.$queryRaw<{ feedId: number; size: bigint; version: number; contract: number }[]>`
    SELECT h.feed_id AS "feedId", h.size, h.policy_version AS version, h.contract_version AS contract
    FROM feed f JOIN feed_head h ON h.feed_id = f.id WHERE f.name = ${feed} FOR UPDATE OF h`;
  const head = heads[0];
  if (head === undefined) return null;
  const { feedId, size, version } = head;
  const rows = await tx.$queryRaw<(DedupPolicy & { file: string; sourceText: string; nowMicros: string })[]>`
    SELECT p.window_seconds AS "windowSeconds", p.max_entries AS "maxEntries", p.ordering, p.contiguous,
           p.max_sequence_jump::text AS "maxSequenceJump", c.file, c.source_text AS "sourceText",
           to_micros(greatest(clock_timestamp(), h.recorded_at))::text AS "nowMicros"
    FROM feed_head h
    JOIN policy_version p ON p.feed_id = h.feed_id AND p.version = h.policy_version
    JOIN feed_contract c ON c.feed_id = h.feed_id AND c.version = h.contract_version
    WHERE h.feed_id = ${feedId}`;
  const row = rows[0];
  if (row === undefined) throw new Error(`feed ${feed} has no policy ${version} or no contract ${head.contract}`);
  const { file, sourceText, nowMicros, ...policy } = row;
  const load = loadContract(file, Buffer.from(sourceText, 'utf8'));
  // As one that a newer program stored: what the policy has to hold against is not known here.
  if (!load.ok) throw new Error(`the contract in force for feed ${feed} cannot be read`);
  return { feedId, size, version, policy, contract: load.loaded.contract, file, nowMicros };
}

async function put(tx: Transaction, current: Current, change: PolicyChange): Promise<PolicyUpdate> {
  const { feedId, size } = current;
  const version = current.version + 1;
  const policy = { ...current.policy, ...change.changes };
  const reason = change.reason.trim();
  await tx.$executeRaw`
    INSERT INTO policy_version (feed_id, version, first_position, window_seconds, max_entries, ordering, contiguous,
                                max_sequence_jump, origin, actor, reason, recorded_at)
    VALUES (${feedId}, ${version}, ${size}, ${policy.windowSeconds}, ${policy.maxEntries}, ${policy.ordering},
            ${policy.contiguous}, ${policy.maxSequenceJump}::numeric, 'API', ${change.actor}, ${reason},
            from_micros(${current.nowMicros}::bigint))`;
  await tx.$executeRaw`UPDATE feed_head SET policy_version = ${version} WHERE feed_id = ${feedId}`;
  const from = await windowStart(tx, current, current.policy);
  const to = await windowStart(tx, current, policy);
  const detail = JSON.stringify({ version, before: current.policy, policy, reason });
  await tx.$queryRaw`SELECT append_admin_event(${POLICY_CHANGED}, ${feedId}, ${change.actor}, ${detail})`;
  return { result: 'updated', feedId, version, leaving: { feedId, from, to: to > from ? to : from } };
}

/** First position within a policy's window, for a message that would come now (design section 3, tier). */
async function windowStart(
  tx: Transaction,
  { feedId, size, nowMicros }: Current,
  { windowSeconds, maxEntries }: DedupPolicy,
): Promise<bigint> {
  const rows = await tx.$queryRaw<{ start: bigint }[]>`
    SELECT greatest(0, ${size}::bigint - ${maxEntries}::bigint, coalesce(
      (SELECT b.first_position FROM batch b
       WHERE b.feed_id = ${feedId}
         AND b.recorded_at >= from_micros(${nowMicros}::bigint - ${windowSeconds}::bigint * 1000000)
       ORDER BY b.recorded_at, b.first_position LIMIT 1), ${size}::bigint)) AS start`;
  return rows[0]?.start ?? size;
}

function refuse(code: PolicyRefusal['code'], message: string): PolicyRefusal {
  return { result: 'refused', code, message, current: null };
}

function quoted(text: string): string {
  return text.length > MAX_QUOTED_LENGTH ? `${text.slice(0, MAX_QUOTED_LENGTH)}…` : text;
}

function quotedJump({ maxSequenceJump }: Partial<DedupPolicy>): Partial<DedupPolicy> {
  return typeof maxSequenceJump === 'string' ? { maxSequenceJump: quoted(maxSequenceJump) } : {};
}
