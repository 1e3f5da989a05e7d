/** Reads a ledger over a connection of its own, and holds it to what was published. */
import { isDeepStrictEqual } from 'node:util';
import { Client } from 'pg';
import { casualtiesIn } from './workload';

export interface LedgerCounts {
  readonly received: number;
  readonly entries: number;
  readonly applied: number;
  readonly appliedKeys: number;
  readonly duplicates: number;
  readonly size: number;
  /** Of all incidents together. */
  readonly casualties: number;
}

export class Ledger {
  private constructor(
    private readonly client: Client,
    private readonly feed: string,
  ) {}

  static async open(databaseUrl: string, feed: string): Promise<Ledger> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    return new Ledger(client, feed);
  }

  /** 0 also while the feed is not known yet. */
  async size(): Promise<number> {
    const sql = `SELECT coalesce((SELECT h.size FROM feed_head h JOIN feed f ON f.id = h.feed_id WHERE f.name = $1), 0)::int AS size`;
    return (await this.row<{ size: number }>(sql)).size;
  }

  counts(): Promise<LedgerCounts> {
    return this.row(`
      SELECT
        (SELECT coalesce(sum(b.received), 0)::int FROM batch b WHERE b.feed_id = f.id) AS received,
        count(*)::int AS entries,
        (count(*) FILTER (WHERE e.outcome = 'APPLIED'))::int AS applied,
        (SELECT count(*)::int FROM applied_key a WHERE a.feed_id = f.id) AS "appliedKeys",
        (count(*) FILTER (WHERE e.outcome = 'DUPLICATE_SUPPRESSED'))::int AS duplicates,
        (SELECT h.size::int FROM feed_head h WHERE h.feed_id = f.id) AS size,
        (SELECT coalesce(sum(value::numeric), 0)::int FROM incident_field WHERE field = 'casualties') AS casualties
      FROM feed f JOIN ledger_entry e ON e.feed_id = f.id
      WHERE f.name = $1 GROUP BY f.id`);
  }

  close(): Promise<void> {
    return this.client.end();
  }

  private async row<Row extends object>(sql: string): Promise<Row> {
    const { rows } = await this.client.query<Row>(sql, [this.feed]);
    const [row] = rows;
    if (row === undefined) throw new Error(`feed ${this.feed} has no entries`);
    return row;
  }
}

/**
 * Every message landed once, the first `published` of them and then as often again as `replays` says.
 * @throws Error with what differs
 */
export async function checkLedger(
  databaseUrl: string,
  feed: string,
  published: number,
  replays: number,
): Promise<void> {
  const ledger = await Ledger.open(databaseUrl, feed);
  const counts = await ledger.counts().finally(() => ledger.close());
  const all = published * (1 + replays);
  checkEqual(feed, counts, {
    received: all,
    entries: all,
    applied: published,
    appliedKeys: published,
    duplicates: published * replays,
    size: all,
    casualties: casualtiesIn(published),
  });
}

/** The consumer that is compared with wrote one audit row and one key a message. @throws Error with what differs */
export async function checkPeer(databaseUrl: string, published: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client
    .query<{ rows: number; keys: number }>(
      `SELECT (SELECT count(*)::int FROM ledger_entry WHERE outcome = 'APPLIED') AS rows,
              (SELECT count(*)::int FROM applied_key) AS keys`,
    )
    .finally(() => client.end());
  checkEqual('one Prisma transaction a message', rows[0], { rows: published, keys: published });
}

function checkEqual(what: string, actual: unknown, expected: object): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`${what} is wrong: ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`);
}
