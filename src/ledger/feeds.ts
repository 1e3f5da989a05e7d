/**
 * Feeds, the contracts in force and the policy versions (design section 7). Both are changed under the head lock, so a
 * batch is decided under exactly one of each.
 */
import type { Prisma, PrismaClient } from '../generated/prisma/client';
import { takesFilePolicy } from '../contract/plan';
import type { FeedContract, LoadedContract } from '../contract/types';
import { insertContract, insertPolicy, recordActivation } from './activation-rows';
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
   * Throws what is wrong among the contracts that will be in force: `others` stay as they are (no file, or an earlier
   * one), `files` come or are in force already. Called while no other contract can come into force, so that two that
   * overlap cannot both pass.
   */
  readonly among?: (others: readonly StoredContract[], files: readonly LoadedContract[]) => void;
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

/** `activateTogether` with one. */
export async function activateContract(
  prisma: PrismaClient,
  loaded: LoadedContract,
  options: ActivationOptions,
): Promise<Activation> {
  return first(await activateTogether(prisma, [loaded], options));
}

/** Transactions that put many contracts in force wait for the batches under way of each of their feeds. */
const ACTIVATION_TIMEOUT_MS = 120_000;

/**
 * Puts contracts in force that are new to their feeds (design section 7, "the contract in force"): all of them, or none
 * where one is refused.
 *
 * Lock order: activations (one at a time, so which contracts are in force stands still from then on), the heads of the
 * feeds that change, the administrative head. Nobody else holds two heads, so no two wait for each other.
 *
 * @param files of different feeds
 * @returns in the order of the files
 * @throws ActivationRefused, or what `among` throws
 */
export async function activateTogether(
  prisma: PrismaClient,
  files: readonly LoadedContract[],
  options: ActivationOptions,
): Promise<Activation[]> {
  const work = async (tx: Transaction): Promise<Activation[]> => {
    await tx.$queryRaw`SELECT 1 AS locked FROM pg_advisory_xact_lock(hashtext('replay-ledger/contracts'))`;
    const candidates: Candidate[] = [];
    for (const loaded of files) candidates.push(await findCandidate(tx, loaded, options));
    await checkAmong(tx, candidates, options);
    const heads = new Map<number, Head | null>();
    for (const { feedId, verdict } of candidates) {
      if (verdict === 'activated') heads.set(feedId, await lockHead(tx, feedId));
    }
    const activations: Activation[] = [];
    for (const candidate of candidates) {
      const head = heads.get(candidate.feedId) ?? null;
      activations.push(await settle(tx, candidate, head, options));
    }
    return activations;
  };
  return prisma.$transaction(work, { timeout: ACTIVATION_TIMEOUT_MS, maxWait: ACTIVATION_TIMEOUT_MS });
}

interface Candidate {
  readonly loaded: LoadedContract;
  readonly feedId: number;
  readonly verdict: Activation['result'];
  /** Version that the contract has in the feed's history; null: it is new. */
  readonly known: number | null;
}

async function findCandidate(
  tx: Transaction,
  loaded: LoadedContract,
  { restore }: ActivationOptions,
): Promise<Candidate> {
  const { feed } = loaded.contract;
  await tx.$executeRaw`INSERT INTO feed (name) VALUES (${feed}) ON CONFLICT (name) DO NOTHING`;
  const { feedId, known, current } = first(
    await tx.$queryRaw<{ feedId: number; known: number | null; current: boolean | null }[]>`
      SELECT f.id AS "feedId", c.version AS known, c.version = h.contract_version AS current
      FROM feed f
      LEFT JOIN feed_head h ON h.feed_id = f.id
      LEFT JOIN feed_contract c ON c.feed_id = f.id AND c.digest = decode(${loaded.digest}, 'hex')
      WHERE f.name = ${feed}`,
  );
  if (current === true) return { loaded, feedId, known, verdict: 'unchanged' };
  return { loaded, feedId, known, verdict: known !== null && restore !== true ? 'drift' : 'activated' };
}

/** What a file of `drift` says is not in force, so it can neither be wrong nor hide what is. */
async function checkAmong(tx: Transaction, candidates: readonly Candidate[], { among }: ActivationOptions) {
  if (among === undefined) return;
  const files = candidates.filter(({ verdict }) => verdict !== 'drift').map(({ loaded }) => loaded);
  const named = new Set(files.map(({ contract }) => contract.feed));
  const inForce = await contractsInForce(tx);
  among(
    inForce.filter(({ feed }) => !named.has(feed)),
    files,
  );
}

async function settle(
  tx: Transaction,
  { loaded, feedId, verdict, known }: Candidate,
  head: Head | null,
  options: ActivationOptions,
): Promise<Activation> {
  if (verdict !== 'activated') return { result: verdict, feedId };
  if (head === null) return create(tx, feedId, loaded, options);
  const current = await currentContract(tx, feedId, head);
  const policies = await readPolicies(tx, feedId, head.policy_version);
  checkActivation(loaded, { contract: options.parse(current), size: head.size, ...policies });
  return change(tx, { feedId, head, policies, known }, loaded, options);
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

function first<T>(rows: readonly T[]): T {
  const row = rows[0];
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}
