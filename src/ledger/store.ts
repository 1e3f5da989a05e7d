/**
 * The ledger on Postgres: one transaction a batch, read by one statement and written by one, with the bytes that came
 * stored in between (`read_batch`, `write_batch` and `store_payloads`; the migrations say what they lock and return).
 */
import type { PrismaClient } from '../generated/prisma/client';
import { claimKey, fieldKey, sourceKey } from '../dedup/state';
import type { Claim, EpochHead, PolicyInForce } from '../dedup/state';
import type { FieldState } from '../effects/state';
import { isDataError, sqlState } from './sql-error';
import { LedgerError } from './port';
import type { LedgerErrorCode, LedgerStore, LedgerTransaction, Locked, ReadRequest, WantedKey } from './port';
import { batchJson, entriesJson, outboxJson, payloadsJson, requestJson, wantedKeys } from './wire';

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
      const documents = requestJson(request);
      const rows = await tx.$queryRaw<{ state: string }[]>`
        SELECT read_batch(${request.feedId}::integer, ${documents.request}::json, ${documents.keys}::json)::text AS state`;
      return parseLocked(onlyRow(rows).state, request);
    },
    async store(feedId, payloads) {
      // Prisma cannot read what a function of type void answers.
      await tx.$executeRaw`SELECT store_payloads(${feedId}::integer, ${payloadsJson(payloads)}::json)`;
    },
    async write(batch) {
      await tx.$queryRaw`
        SELECT write_batch(${batch.feedId}::integer, ${batchJson(batch)}::json, ${entriesJson(batch)}::json,
                           ${outboxJson(batch)}::json)`;
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

/** Rows, column by column, each as long; null for none. `k`: the place of what was asked for. */
type Columns<Row> = { readonly [Name in keyof Row]: readonly Row[Name][] } | { readonly [Name in keyof Row]: null };

/** As `read_batch` answers; see there for the short names. */
interface StateJson {
  term: number;
  size: number;
  recordedAt: number;
  policy: PolicyInForce;
  contract: string;
  heads: { v: number; a: string; s: string; e: string; r: string | null; m: string | null; h: string | null }[];
  claims: Columns<{ k: number; p: number; r: number; d: string | null }>;
  fields: Columns<{
    k: number;
    value: string | null;
    feed: number;
    a: string;
    s: string;
    e: string | null;
    r: string | null;
    n: string | null;
  }>;
  leaves: { size: number; leaf: string }[];
}

function parseLocked(text: string, request: ReadRequest): Locked {
  const state = JSON.parse(text) as StateJson;
  return {
    term: state.term,
    size: state.size,
    recordedAtMicros: state.recordedAt,
    policy: state.policy,
    contractDigest: state.contract,
    sources: sourcesOf(state),
    claims: claimsOf(state, wantedKeys(request)),
    fields: fieldsOf(state, request.fields),
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

function claimsOf({ claims: found }: StateJson, wanted: readonly WantedKey[]): Map<string, Claim[]> {
  const claims = new Map<string, Claim[]>();
  if (found.k === null) return claims;
  const { k, p, r, d } = found;
  for (let row = 0; row < k.length; row += 1) {
    const { keyVersion, key, claimDigest } = cell(wanted, cell(k, row));
    const claim: Claim = {
      position: cell(p, row),
      recordedAtMicros: cell(r, row),
      digest: cell(d, row) ?? claimDigest,
    };
    const name = claimKey(keyVersion, key);
    const known = claims.get(name);
    if (known === undefined) claims.set(name, [claim]);
    // Asked for by several keys, a claim comes several times in a row.
    else if (known.at(-1)?.position !== claim.position) known.push(claim);
  }
  return claims;
}

function fieldsOf({ fields: found }: StateJson, wanted: ReadRequest['fields']): Map<string, FieldState> {
  const fields = new Map<string, FieldState>();
  if (found.k === null) return fields;
  const { k, value, feed, a, s, e, r, n } = found;
  for (let row = 0; row < k.length; row += 1) {
    const { incidentId, field } = cell(wanted, cell(k, row));
    const source = { feedId: cell(feed, row), agency: cell(a, row), sourceId: cell(s, row) };
    const writer = { ...source, epoch: cell(e, row), rank: cell(r, row), sequence: cell(n, row) };
    fields.set(fieldKey(incidentId, field), { value: cell(value, row), writer });
  }
  return fields;
}

/** Of a column that has so many rows, or of what was asked for. */
function cell<T>(column: readonly T[], row: number): T {
  return column[row] as T;
}

function digits(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}
