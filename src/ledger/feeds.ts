/**
 * Feeds, the contracts in force and the policy versions (design section 7). Both are changed under the head lock, so a
 * batch is decided under exactly one of each.
 */
import type { Prisma, PrismaClient } from '../generated/prisma/client';
import { takesFilePolicy } from '../contract/plan';
import type { FeedContract, LoadedContract } from '../contract/types';
import { readPolicies } from './policies';
import type { Policies } from './policies';

type Transaction = Prisma.TransactionClient;

export interface StoredContract {
  readonly feedId: number;
  readonly feed: string;
  readonly digest: string;
  readonly file: string;
  readonly sourceText: string;
}

export type Activation =
  /** The file is what is in force. */
  | { readonly result: 'unchanged'; readonly feedId: number }
  | { readonly result: 'activated'; readonly feedId: number; readonly version: number }
  /** The file was in force once and is not now: an older instance must not bring it back. */
  | { readonly result: 'drift'; readonly feedId: number };

/** The contract cannot be put in force; the one before stays. The message is for people and names the file. */
export class ActivationRefused extends Error {
  constructor(
    readonly file: string,
    message: string,
  ) {
    super(`${file}: ${message}`);
    this.name = 'ActivationRefused';
  }
}

export interface ActivationOptions {
  readonly actor: string;
  readonly commit: string | null;
  /** Reads the contract in force, to compare. */
  readonly parse: (stored: StoredContract) => FeedContract;
  /** Goes back to a contract that was in force once: a person asks for it, a starting instance does not. */
  readonly restore?: boolean;
  /**
   * Throws what is wrong among the contract and those in force for other feeds. Called while no other contract can come
   * into force, so that two that overlap cannot both pass.
   */
  readonly among?: (others: readonly StoredContract[]) => void;
}

interface Head {
  readonly size: bigint;
  readonly contract_version: number;
  readonly policy_version: number;
}

/** Contracts in force of all feeds that are not retired, also of those whose file is gone. */
export async function contractsInForce(prisma: PrismaClient | Transaction): Promise<StoredContract[]> {
  return prisma.$queryRaw<StoredContract[]>`
    SELECT f.id AS "feedId", f.name AS feed, encode(c.digest, 'hex') AS digest, c.file, c.source_text AS "sourceText"
    FROM feed f
    JOIN feed_head h ON h.feed_id = f.id
    JOIN feed_contract c ON c.feed_id = f.id AND c.version = h.contract_version
    WHERE f.retired_at IS NULL
    ORDER BY f.name`;
}

/** @throws Error when the feed never had that contract */
export async function contractByDigest(prisma: PrismaClient, feedId: number, digest: string): Promise<StoredContract> {
  const rows = await prisma.$queryRaw<StoredContract[]>`
    SELECT f.id AS "feedId", f.name AS feed, encode(c.digest, 'hex') AS digest, c.file, c.source_text AS "sourceText"
    FROM feed_contract c JOIN feed f ON f.id = c.feed_id
    WHERE c.feed_id = ${feedId} AND c.digest = decode(${digest}, 'hex')`;
  const stored = rows[0];
  if (stored === undefined) throw new Error(`feed ${feedId} has no contract ${digest}`);
  return stored;
}

/**
 * Puts a contract in force, if it is new to its feed (design section 7, "the contract in force").
 * @throws ActivationRefused, or what `among` throws
 */
export async function activateContract(
  prisma: PrismaClient,
  loaded: LoadedContract,
  options: ActivationOptions,
): Promise<Activation> {
  const { feed } = loaded.contract;
  return prisma.$transaction(async (tx) => {
    // Creating and changing are one at a time: the second of two waits here, also while there is no head yet.
    await tx.$queryRaw`INSERT INTO feed (name) VALUES (${feed}) ON CONFLICT (name) DO NOTHING`;
    const feedId = await lockFeed(tx, feed);
    if (options.among !== undefined) options.among(await otherContracts(tx, feed));
    const head = await lockHead(tx, feedId);
    if (head === null) return create(tx, feedId, loaded, options);
    const current = await currentContract(tx, feedId, head);
    if (current.digest === loaded.digest) return { result: 'unchanged', feedId };
    const known = await tx.feedContract.findFirst({ where: { feedId, digest: bytes(loaded.digest) } });
    if (known !== null && options.restore !== true) return { result: 'drift', feedId };
    const policies = await readPolicies(tx, feedId, head.policy_version);
    checkActivation(loaded, { contract: options.parse(current), size: head.size, ...policies });
    return change(tx, { feedId, head, policies, known: known?.version ?? null }, loaded, options);
  });
}

async function lockFeed(tx: Transaction, name: string): Promise<number> {
  const rows = await tx.$queryRaw<{ id: number }[]>`SELECT id FROM feed WHERE name = ${name} FOR UPDATE`;
  return first(rows).id;
}

async function lockHead(tx: Transaction, feedId: number): Promise<Head | null> {
  const rows = await tx.$queryRaw<Head[]>`
    SELECT size, contract_version, policy_version FROM feed_head WHERE feed_id = ${feedId} FOR UPDATE`;
  return rows[0] ?? null;
}

async function currentContract(tx: Transaction, feedId: number, head: Head): Promise<StoredContract> {
  const rows = await tx.$queryRaw<StoredContract[]>`
    SELECT feed_id AS "feedId", '' AS feed, encode(digest, 'hex') AS digest, file, source_text AS "sourceText"
    FROM feed_contract WHERE feed_id = ${feedId} AND version = ${head.contract_version}`;
  return first(rows);
}

async function create(
  tx: Transaction,
  feedId: number,
  loaded: LoadedContract,
  options: ActivationOptions,
): Promise<Activation> {
  await tx.$executeRaw`
    INSERT INTO feed_head (feed_id, recorded_at, contract_version, policy_version)
    VALUES (${feedId}, clock_timestamp(), 1, 1)`;
  await insertContract(tx, feedId, 1, 0n, loaded, options);
  await insertPolicy(tx, feedId, 1, 0n, loaded, options, `first contract of the feed, from ${loaded.file}`);
  await recordActivation(tx, feedId, 1, loaded, options);
  return { result: 'activated', feedId, version: 1 };
}

interface Changing {
  readonly feedId: number;
  readonly head: Head;
  readonly policies: Policies;
  /** Version that the contract had before; null: it is new. */
  readonly known: number | null;
}

async function change(
  tx: Transaction,
  { feedId, head, policies, known }: Changing,
  loaded: LoadedContract,
  options: ActivationOptions,
): Promise<Activation> {
  const version = known ?? (await latestVersion(tx, feedId)) + 1;
  if (known === null) await insertContract(tx, feedId, version, head.size, loaded, options);
  await tx.$executeRaw`UPDATE feed_head SET contract_version = ${version} WHERE feed_id = ${feedId}`;
  if (takesFilePolicy(policies, loaded.contract)) {
    const policyVersion = head.policy_version + 1;
    await insertPolicy(tx, feedId, policyVersion, head.size, loaded, options, `dedup of ${loaded.file} changed`);
    await tx.$executeRaw`UPDATE feed_head SET policy_version = ${policyVersion} WHERE feed_id = ${feedId}`;
  }
  await recordActivation(tx, feedId, version, loaded, options);
  return { result: 'activated', feedId, version };
}

/** Not that in force: an earlier one may have been restored. */
async function latestVersion(tx: Transaction, feedId: number): Promise<number> {
  const { _max } = await tx.feedContract.aggregate({ where: { feedId }, _max: { version: true } });
  return _max.version ?? 0;
}

/** Waits for other activations that look at each other's contracts; taken before any head, so no lock order is broken. */
async function otherContracts(tx: Transaction, feed: string): Promise<StoredContract[]> {
  await tx.$queryRaw`SELECT 1 AS locked FROM pg_advisory_xact_lock(hashtext('replay-ledger/contracts'))`;
  return (await contractsInForce(tx)).filter((other) => other.feed !== feed);
}

async function insertContract(
  tx: Transaction,
  feedId: number,
  version: number,
  firstPosition: bigint,
  { digest, file, sourceText }: LoadedContract,
  { actor, commit }: ActivationOptions,
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO feed_contract (feed_id, version, digest, file, source_text, commit, first_position, actor, recorded_at)
    VALUES (${feedId}, ${version}, decode(${digest}, 'hex'), ${file}, ${sourceText}, ${commit}, ${firstPosition},
            ${actor}, clock_timestamp())`;
}

async function insertPolicy(
  tx: Transaction,
  feedId: number,
  version: number,
  firstPosition: bigint,
  { contract, digest }: LoadedContract,
  { actor, commit }: ActivationOptions,
  reason: string,
): Promise<void> {
  const { windowSeconds, maxEntries, ordering, contiguous, maxSequenceJump } = contract.dedup;
  await tx.$executeRaw`
    INSERT INTO policy_version (feed_id, version, first_position, window_seconds, max_entries, ordering, contiguous,
                                max_sequence_jump, origin, contract_digest, commit, actor, reason, recorded_at)
    VALUES (${feedId}, ${version}, ${firstPosition}, ${windowSeconds}, ${maxEntries}, ${ordering}, ${contiguous},
            ${maxSequenceJump}::numeric, 'CONTRACT', decode(${digest}, 'hex'), ${commit}, ${actor}, ${reason},
            clock_timestamp())`;
}

async function recordActivation(
  tx: Transaction,
  feedId: number,
  version: number,
  { digest, file }: LoadedContract,
  { actor, commit }: ActivationOptions,
): Promise<void> {
  const detail = JSON.stringify({ version, digest, file, commit });
  await tx.$queryRaw`SELECT append_admin_event('CONTRACT_ACTIVATED', ${feedId}, ${actor}, ${detail})`;
}

/**
 * Whether a contract may follow the one in force.
 * @param inForce `size`: entries in the ledger
 * @throws ActivationRefused
 */
export function checkActivation(
  loaded: LoadedContract,
  inForce: Policies & { readonly contract: FeedContract; readonly size: bigint },
): void {
  refuseSilentIdentityChange(loaded, inForce.contract, inForce);
  refuseSmallWindow(loaded, inForce);
}

function refuseSilentIdentityChange(loaded: LoadedContract, before: FeedContract, head: Pick<Head, 'size'>): void {
  const identityOf = ({ identity, items, digest }: FeedContract) =>
    JSON.stringify([{ ...identity, version: 0 }, items, digest]);
  const [version, versionBefore] = [loaded.contract.identity.version, before.identity.version];
  if (head.size === 0n || version > versionBefore) return;
  if (version < versionBefore) {
    throw new ActivationRefused(
      loaded.file,
      `identity.version of feed ${loaded.contract.feed} is ${version}, and ${versionBefore} is in force; it only ` +
        'rises while the feed has entries, so that what one version decided is looked up under those after it',
    );
  }
  if (identityOf(loaded.contract) === identityOf(before)) return;
  throw new ActivationRefused(
    loaded.file,
    `identity, items or digest of feed ${loaded.contract.feed} changed while it has ${head.size} entries; ` +
      'the keys of before would no longer be found, so this needs a higher identity.version',
  );
}

/** The policy in force may come from the API: the new file's delivery must fit it, unless the file brings its own. */
function refuseSmallWindow(loaded: LoadedContract, policies: Policies): void {
  const { delivery, feed } = loaded.contract;
  if (takesFilePolicy(policies, loaded.contract)) return;
  const { windowSeconds } = policies.policy;
  const needed = delivery.sessionExpirySeconds + delivery.maxReplayDelaySeconds;
  if (windowSeconds > needed) return;
  throw new ActivationRefused(
    loaded.file,
    `the policy in force for feed ${feed} has windowSeconds ${windowSeconds}, which does not exceed ` +
      `sessionExpirySeconds ${delivery.sessionExpirySeconds} + maxReplayDelaySeconds ${delivery.maxReplayDelaySeconds} = ${needed}`,
  );
}

function bytes(hex: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

function first<T>(rows: readonly T[]): T {
  const row = rows[0];
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}
