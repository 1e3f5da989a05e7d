/**
 * The ledger on Postgres: one transaction a batch, read by one statement and written by one (the functions `read_batch`
 * and `write_batch` of the first migration say what they lock and return).
 */
import type { PrismaClient } from '../generated/prisma/client';
import { claimKey, fieldKey, sourceKey } from '../dedup/state';
import type { Claim, EpochHead, PolicyInForce } from '../dedup/state';
import type { FieldState } from '../effects/state';
import { isDataError, sqlState } from './sql-error';
import { LedgerError } from './port';
import type { LedgerErrorCode, LedgerStore, LedgerTransaction, Locked } from './port';
import { batchJson, entriesJson, keysJson, outboxJson, payloadsJson, requestJson } from './wire';

type Transaction = Parameters<Parameters<PrismaClient['$transaction']>[0]>[0];

export interface StoreOptions {
  /** How long a batch may take inside its transaction, and how long it may wait for a connection. */
  readonly transactionTimeoutMs: number;
}

export function createLedgerStore(prisma: PrismaClient, options: StoreOptions): LedgerStore {
  const limits = { timeout: options.transactionTimeoutMs, maxWait: options.transactionTimeoutMs };

  async function transact<T>(work: (transaction: LedgerTransaction) => Promise<T>): Promise<T> {
    const progress = { workDone: false };
    try {
      return await prisma.$transaction(async (tx) => {
        const result = await work(ledgerTransaction(tx));
        progress.workDone = true;
        return result;
      }, limits);
    } catch (error) {
      // What fails after the work is COMMIT, or its answer.
      throw progress.workDone ? inDoubt(error) : asLedgerError(error);
    }
  }

  async function committed(feedId: number, batchId: string): Promise<boolean> {
    try {
      return await prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM feed_head WHERE feed_id = ${feedId} FOR UPDATE`;
        return (await tx.batch.findUnique({ where: { id: batchId }, select: { id: true } })) !== null;
      }, limits);
    } catch (error) {
      throw asLedgerError(error);
    }
  }

  return { transact, committed };
}

function ledgerTransaction(tx: Transaction): LedgerTransaction {
  return {
    async read(request) {
      const rows = await tx.$queryRaw<{ state: string }[]>`
        SELECT read_batch(${requestJson(request)}::json, ${keysJson(request)}::json)::text AS state`;
      return parseLocked(onlyRow(rows).state);
    },
    async write(batch) {
      await tx.$queryRaw`
        SELECT write_batch(${batchJson(batch)}::json, ${entriesJson(batch)}::json,
                           ${payloadsJson(batch)}::json, ${outboxJson(batch)}::json)`;
    },
  };
}

function onlyRow<T>(rows: readonly T[]): T {
  const row = rows[0];
  if (row === undefined) throw new LedgerError('UNAVAILABLE', 'the database answered nothing', null);
  return row;
}

/** Errors of the caller's own work pass through: they are not the database's. */
function asLedgerError(error: unknown): unknown {
  if (!isDatabaseError(error)) return error;
  const state = sqlState(error);
  const message = `the ledger transaction failed${state === null ? '' : ` (SQLSTATE ${state})`}`;
  return new LedgerError(codeOf(error, state), message, state, { cause: error });
}

function codeOf(error: unknown, state: string | null): LedgerErrorCode {
  // COMMIT itself refuses data where a constraint is deferred.
  if (isDataError(error)) return 'DATA';
  return isTimeout(error, state) ? 'TIMEOUT' : 'UNAVAILABLE';
}

/** A statement that the server cancelled, or a transaction that Prisma gave up. */
function isTimeout(error: unknown, state: string | null): boolean {
  return state === '57014' || (error as { code?: unknown }).code === 'P2028';
}

function inDoubt(error: unknown): LedgerError {
  const state = sqlState(error);
  const ifNotCommitted = codeOf(error, state);
  return new LedgerError('IN_DOUBT', 'the end of the transaction is not known', state, {
    cause: error,
    ifNotCommitted,
  });
}

function isDatabaseError(error: unknown): boolean {
  return error instanceof Error && (/^(PrismaClient|DriverAdapter)/.test(error.name) || sqlState(error) !== null);
}

/** As `read_batch` answers; see there for the short names. */
interface StateJson {
  term: number;
  size: number;
  recordedAt: string;
  policy: PolicyInForce;
  contract: string;
  heads: { v: number; a: string; s: string; e: string; r: string | null; m: string | null; h: string | null }[];
  claims: { v: number; k: string; d: string; p: number; r: string }[];
  fields: {
    i: string;
    f: string;
    value: string | null;
    feed: number;
    a: string;
    s: string;
    e: string | null;
    r: string | null;
    n: string | null;
  }[];
  leaves: { size: number; leaf: string }[];
}

function parseLocked(text: string): Locked {
  const state = JSON.parse(text) as StateJson;
  return {
    term: state.term,
    size: state.size,
    recordedAtMicros: Number(state.recordedAt),
    policy: state.policy,
    contractDigest: state.contract,
    sources: sourcesOf(state),
    claims: claimsOf(state),
    fields: fieldsOf(state),
    leaves: new Map(state.leaves.map(({ size, leaf }) => [size, leaf])),
  };
}

function sourcesOf(state: StateJson): Map<string, Map<string, EpochHead>> {
  const sources = new Map<string, Map<string, EpochHead>>();
  for (const { v, a, s, e, r, m, h } of state.heads) {
    const name = sourceKey(v, a, s);
    let epochs = sources.get(name);
    if (epochs === undefined) sources.set(name, (epochs = new Map<string, EpochHead>()));
    epochs.set(e, { rank: digits(r), mark: digits(m), highest: digits(h) });
  }
  return sources;
}

function claimsOf(state: StateJson): Map<string, Claim[]> {
  const claims = new Map<string, Claim[]>();
  for (const { v, k, d, p, r } of state.claims) {
    const claim = { position: p, recordedAtMicros: Number(r), digest: d };
    const known = claims.get(claimKey(v, k));
    if (known === undefined) claims.set(claimKey(v, k), [claim]);
    else known.push(claim);
  }
  return claims;
}

function fieldsOf(state: StateJson): Map<string, FieldState> {
  return new Map(
    state.fields.map(({ i, f, value, feed, a, s, e, r, n }) => [
      fieldKey(i, f),
      { value, writer: { feedId: feed, agency: a, sourceId: s, epoch: e, rank: r, sequence: n } },
    ]),
  );
}

function digits(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}
