import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { MIGRATIONS } from './database';
import { query } from './ledger';
import type { PostgresServer } from './postgres';
import { sharedPostgresUrl } from './shared-servers';
import { startProxy, type TcpProxy } from './tcp-proxy';

/** A proxy before the shared Postgres, and a database's URL through it. */
export async function startPostgresProxy(url: string): Promise<{ proxy: TcpProxy; proxiedUrl: string }> {
  const proxy = await startProxy(Number(new URL(sharedPostgresUrl()).port));
  const proxied = new URL(url);
  proxied.port = String(proxy.port);
  return { proxy, proxiedUrl: proxied.href };
}

export interface Losses {
  /** Connections cut so far. */
  readonly count: number;
}

/** The server gets the next `times` COMMITs and acts on them; each time the answer is lost with the connection. */
export function loseAnswersToCommit(proxy: TcpProxy, times: number, onLoss: () => void = () => undefined): Losses {
  const losses = { count: 0 };
  const victims = new Set<number>();
  proxy.onClientData((chunk, { id }) => {
    if (losses.count + victims.size < times && chunk.includes('COMMIT')) victims.add(id);
  });
  proxy.onServerData((_chunk, connection) => {
    if (!victims.delete(connection.id)) return;
    losses.count += 1;
    connection.cut();
    onLoss();
    return 'swallow';
  });
  return losses;
}

/** The next `times` COMMITs never reach the server; each time the connection is cut. */
export function loseCommits(proxy: TcpProxy, times: number): Losses {
  const losses = { count: 0 };
  proxy.onClientData((chunk, connection) => {
    if (losses.count >= times || !chunk.includes('COMMIT')) return;
    losses.count += 1;
    connection.cut();
    return 'swallow';
  });
  return losses;
}

export interface Refusal {
  readonly table: 'ledger_entry' | 'incident' | 'incident_field';
  /** SQL condition on the row NEW. */
  readonly when: string;
  readonly sqlState: string;
  /** At COMMIT instead of at once. */
  readonly deferred?: boolean;
}

/** Makes the database refuse rows, as a constraint that nobody foresaw would. Answers how to take it back. */
export async function refuseRows(
  url: string,
  { table, when, sqlState, deferred = false }: Refusal,
): Promise<() => Promise<void>> {
  const timing = deferred ? 'AFTER' : 'BEFORE';
  const kind = deferred ? 'CONSTRAINT TRIGGER' : 'TRIGGER';
  await query(
    url,
    `CREATE OR REPLACE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN RAISE EXCEPTION 'refused by a test' USING ERRCODE = TG_ARGV[0]; END $$;
     CREATE ${kind} test_refusal ${timing} INSERT ${table === 'ledger_entry' ? '' : 'OR UPDATE'} ON ${table}
     ${deferred ? 'DEFERRABLE INITIALLY DEFERRED' : ''} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION test_refuse('${sqlState}')`,
  );
  return async () => void (await query(url, `DROP TRIGGER test_refusal ON ${table}`));
}

/** A database with the product's tables on a server of the test's own. */
export async function createTables(server: PostgresServer, name = 'ledger'): Promise<string> {
  const url = await server.createDatabase(name);
  const folders = readdirSync(MIGRATIONS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name: folder } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    await query(url, readFileSync(join(MIGRATIONS, folder, 'migration.sql'), 'utf8'));
  }
  return url;
}
