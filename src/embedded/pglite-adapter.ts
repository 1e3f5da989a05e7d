/**
 * Prisma's driver adapter over PGlite.
 *
 * The conversions are those of pglite-prisma-adapter. Two of its methods are replaced, each shown by a test:
 * - `commit()` there resolves although COMMIT failed, which would acknowledge what was not saved;
 * - `executeScript()` there returns before the script has run, and its error ends the process.
 */
import type { PGlite, Transaction as PGliteTransaction } from '@electric-sql/pglite';
import type {
  IsolationLevel,
  SqlDriverAdapter,
  SqlMigrationAwareDriverAdapterFactory,
  SqlQueryable,
  Transaction,
} from '@prisma/driver-adapter-utils';
import { PrismaPGlite } from 'pglite-prisma-adapter';
import { scriptError } from '../ledger/postgres-adapter';

const ADAPTER = { provider: 'postgres', adapterName: 'pglite' } as const;

export function pgliteAdapterFactory(client: PGlite): SqlMigrationAwareDriverAdapterFactory {
  return {
    ...ADAPTER,
    connect: () => connect(client),
    connectToShadowDb: () => Promise.reject(new Error('the embedded database has no shadow database')),
  };
}

async function connect(client: PGlite): Promise<SqlDriverAdapter> {
  const queries = await queryable(client);
  return {
    ...queries,
    executeScript: async (script) => {
      await client.exec(script).catch(rethrow);
    },
    startTransaction: (isolation) => startTransaction(client, isolation),
    getConnectionInfo: () => ({ schemaName: 'public', supportsRelationJoins: true }),
    dispose: () => Promise.resolve(),
  };
}

/** The library's adapter asks no more of a client than `query`, which a transaction has as well. */
async function queryable(client: Pick<PGliteTransaction, 'query'>): Promise<SqlQueryable> {
  const adapter = await new PrismaPGlite(client as PGlite).connect();
  return {
    ...ADAPTER,
    queryRaw: (query) => adapter.queryRaw(query),
    executeRaw: (query) => adapter.executeRaw(query),
  };
}

/**
 * PGlite runs a transaction as a callback and commits when it resolves; Prisma wants to say when. So the callback waits
 * for Prisma's word, and `outcome` is what became of the COMMIT or ROLLBACK.
 */
function startTransaction(client: PGlite, isolation?: IsolationLevel): Promise<Transaction> {
  return new Promise((resolve, reject) => {
    const outcome = client.transaction(async (tx) => {
      if (isolation !== undefined) await tx.exec(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
      const queries = await queryable(tx);
      await new Promise<void>((end) => resolve(transaction(tx, queries, end, () => outcome.catch(rethrow))));
    });
    // Only a failure to begin: once there is a transaction, this promise is settled.
    outcome.catch(reject);
  });
}

function transaction(
  tx: PGliteTransaction,
  queries: SqlQueryable,
  end: () => void,
  outcome: () => Promise<void>,
): Transaction {
  const run = async (sql: string): Promise<void> => {
    await queries.executeRaw({ sql, args: [], argTypes: [] });
  };
  return {
    ...queries,
    // COMMIT and ROLLBACK are PGlite's to send.
    options: { usePhantomQuery: true },
    commit: () => {
      end();
      return outcome();
    },
    rollback: async () => {
      await tx.rollback();
      end();
      await outcome();
    },
    createSavepoint: (name) => run(`SAVEPOINT ${name}`),
    rollbackToSavepoint: (name) => run(`ROLLBACK TO SAVEPOINT ${name}`),
    releaseSavepoint: (name) => run(`RELEASE SAVEPOINT ${name}`),
  };
}

function rethrow(error: unknown): never {
  throw scriptError(error);
}
