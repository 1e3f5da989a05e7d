/** What the statements of the API read of a ledger of 100 000 entries: from their plans, not from a clock. */
import { Prisma } from '../../src/generated/prisma/client';
import type { Database } from '../../src/ledger/client';
import { readFilter } from '../../src/api/model/filter';
import type { FilterInput } from '../../src/api/model/filter';
import { entries, entriesAt, payloads, resolutionsOf } from '../../src/api/statements/entries';
import {
  incident,
  incidentFields,
  incidentGroups,
  incidentMembers,
  sourceEpochs,
  sourceExists,
  sourceGroups,
  sourcePage,
} from '../../src/api/statements/facts';
import { balances, feedHeads, policies, windowStarts } from '../../src/api/statements/feeds';
import {
  claimsSince,
  decidedByPolicy,
  peakEntries,
  pushedOut,
  replayCounts,
  replayLags,
  replaySamples,
} from '../../src/api/statements/preview';
import { LOCAL_VIEWER } from '../../src/api/viewer';
import { query } from '../support/ledger';
import { caseContract, startPipeline } from '../support/pipeline';
import { appendEntries } from './api-ledger-fixture';

const SIZE = 100_000;
/** Tables that grow with the ledger. */
const LARGE = new Set([
  'ledger_entry',
  'payload',
  'batch',
  'applied_key',
  'incident',
  'incident_field',
  'incident_member',
]);

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly Plans?: readonly PlanNode[];
}

interface Plan {
  /** Rows that were looked at in large tables, kept or not. */
  readonly read: number;
  readonly indexes: readonly string[];
  readonly sequential: readonly string[];
}

let database: Database;
let feedIds: readonly number[];

async function planOf(statement: Prisma.Sql): Promise<Plan> {
  const rows = await database.prisma.$queryRaw<{ 'QUERY PLAN': [{ Plan: PlanNode }] }[]>(
    Prisma.sql`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${statement}`,
  );
  const plan = { read: 0, indexes: [] as string[], sequential: [] as string[] };
  const visit = (node: PlanNode): void => {
    const table = node['Relation Name'] ?? '';
    if (node['Index Name'] !== undefined) plan.indexes.push(node['Index Name']);
    if (LARGE.has(table)) {
      if (node['Node Type'] === 'Seq Scan') plan.sequential.push(table);
      const rowsALoop = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
      plan.read += rowsALoop * node['Actual Loops'] + (node['Rows Removed by Index Recheck'] ?? 0);
    }
    node.Plans?.forEach(visit);
  };
  const [root] = rows[0]?.['QUERY PLAN'] ?? [];
  if (root === undefined) throw new Error('no plan');
  visit(root.Plan);
  return plan;
}

beforeAll(async () => {
  const north = await startPipeline();
  const south = await startPipeline({
    url: north.url,
    contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }),
  });
  database = north.database;
  feedIds = [north.feed.feedId, south.feed.feedId];
  for (const feedId of feedIds) await appendEntries(north.url, { feedId, first: 0, count: SIZE });
  await query(
    north.url,
    `INSERT INTO payload (feed_id, bytes_digest, bytes, size_bytes)
     SELECT $1, sha256(n::text::bytea), 'x', 1 FROM generate_series(1, $2) AS n`,
    [north.feed.feedId, SIZE],
  );
  await query(north.url, `INSERT INTO incident (id) SELECT 'incident-' || n FROM generate_series(1, 20000) AS n`);
  await query(
    north.url,
    `INSERT INTO incident_field (incident_id, field, feed_id, position, agency, source_id)
     SELECT id, 'units', $1, 0, 'a', 's' FROM incident`,
    [north.feed.feedId],
  );
  await query(
    north.url,
    `INSERT INTO incident_member (incident_id, field, value_digest, value, feed_id, position)
     SELECT id, 'units', sha256('x'), '"x"', $1, 0 FROM incident`,
    [north.feed.feedId],
  );
  await query(north.url, 'VACUUM ANALYZE');
});

function page(input: FilterInput, direction: 'forward' | 'backward', from = 0): Prisma.Sql {
  const spans = feedIds.map((feedId) => ({ feedId, from: BigInt(from), to: BigInt(SIZE) }));
  return entries({ spans, filter: readFilter(input), viewer: LOCAL_VIEWER, direction, limit: 51 });
}

describe('plans at 100 000 entries in each of two feeds', () => {
  // What a key of sequence 4321 is in the bulk ledger, and the bound on rows that a page of 51 from two feeds may read.
  const key = '84c6a5a1d2a02e3ab3f5ed0e6e8fe5d9f2b1c3d4e5f60718293a4b5c6d7e8f90';
  const lists: [string, FilterInput, string, number][] = [
    ['no filter', {}, 'ledger_entry_pkey', 102],
    ['APPLIED', { outcome: ['APPLIED'] }, 'ledger_entry_pkey', 300],
    ['suppressed', { outcome: ['DUPLICATE_SUPPRESSED'] }, 'ledger_entry_not_applied', 102],
    ['two outcomes', { outcome: ['DUPLICATE_SUPPRESSED', 'STALE_OUT_OF_ORDER'] }, 'ledger_entry_not_applied', 204],
    ['an outcome that never was', { outcome: ['KEY_CONFLICT'] }, 'ledger_entry_not_applied', 0],
    ['tier', { tier: ['LEDGER'] }, 'ledger_entry_not_applied', 2500],
    ['held', { held: true }, 'ledger_entry_held', 102],
    ['incident', { incidentId: 'incident-7' }, 'ledger_entry_incident', 102],
    [
      'incident and outcome',
      { incidentId: 'incident-9', outcome: ['DUPLICATE_SUPPRESSED'] },
      'ledger_entry_incident',
      1100,
    ],
    ['an incident that never was', { incidentId: 'nope' }, 'ledger_entry_incident', 0],
    ['source', { agency: 'agency-1', sourceId: 'source-10' }, 'ledger_entry_source', 102],
    ['a source that never was', { agency: 'agency-1', sourceId: 'nope' }, 'ledger_entry_source', 0],
    ['agency', { agency: 'agency-1' }, 'ledger_entry_', 400],
    ['a key that never was', { key }, 'ledger_entry_claim', 0],
  ];

  it.each(lists)('walks an index: %s', async (_, filter, index, mostRows) => {
    for (const direction of ['forward', 'backward'] as const) {
      for (const from of [0, SIZE / 2]) {
        const plan = await planOf(page(filter, direction, from));
        expect(plan.sequential).toEqual([]);
        expect(plan.indexes.filter((name) => name.startsWith(index))).not.toEqual([]);
        expect(plan.read).toBeLessThanOrEqual(mostRows);
      }
    }
  });

  it('finds a key by its claim and its source', async () => {
    const [row] = await database.prisma.$queryRaw<
      { key: string }[]
    >`SELECT encode(sha256('4328'::bytea), 'hex') AS key`;
    const plan = await planOf(page({ key: row?.key ?? '' }, 'forward'));
    expect(plan.sequential).toEqual([]);
    expect(plan.indexes).toEqual(expect.arrayContaining(['ledger_entry_claim', 'ledger_entry_source']));
    // Its source has a fiftieth or so of each ledger.
    expect(plan.read).toBeLessThan((2 * SIZE) / 20);
  });

  it('finds everything else by an index', async () => {
    const [feedId = 0] = feedIds;
    const addresses = [0, 99_999, 5].map((position) => ({ feedId, position: BigInt(position) }));
    const source = { feedId, agency: 'agency-1', sourceId: 'source-10' };
    const middle = { agency: 'agency-1', sourceId: 'source-3' };
    const someone = { name: 'someone', roles: ['reviewer'] as const, agencies: ['agency-2'], mayReadPayloads: true };
    const statements: [string, Prisma.Sql, number][] = [
      ['heads', feedHeads(LOCAL_VIEWER, { from: 1_767_225_650_000_000n, to: 1_767_225_660_000_000n }), 12],
      ['heads of an agency', feedHeads(someone, {}), 2],
      ['entries', entriesAt(LOCAL_VIEWER, addresses), 3],
      ['resolutions', resolutionsOf(LOCAL_VIEWER, addresses), 0],
      ['payloads', payloads([{ feedId, bytesDigest: '00'.repeat(32) }], 1000), 0],
      ['incident', incident(LOCAL_VIEWER, 'incident-7', feedIds), 3],
      ['fields', incidentFields('incident-7'), 1],
      ['members', incidentMembers('incident-7'), 1],
      ['counts of an incident', incidentGroups(LOCAL_VIEWER, 'incident-7', feedIds), 1200],
      ['source', sourceExists(LOCAL_VIEWER, source), 1],
      ['counts of a source', sourceGroups([source]), 1000],
      ['epochs', sourceEpochs([source]), 0],
      [
        'sources',
        sourcePage({ feedId, viewer: LOCAL_VIEWER, direction: 'forward', after: middle, before: null, limit: 51 }),
        51,
      ],
      [
        'sources back',
        sourcePage({ feedId, viewer: someone, direction: 'backward', after: null, before: null, limit: 51 }),
        51,
      ],
      ['policies', policies([{ feedId, version: 1 }]), 0],
      ['window', windowStarts(feedIds), 2],
    ];
    for (const [name, statement, mostRows] of statements) {
      const plan = await planOf(statement);
      expect([name, plan.sequential]).toEqual([name, []]);
      expect([name, plan.read <= mostRows, plan.read]).toEqual([name, true, plan.read]);
    }
  });

  it('previews a policy from what came since, whatever came before', async () => {
    const [feedId = 0] = feedIds;
    const since = { feedId, from: 95_000n };
    const [small, large] = [100, 1000].map((maxEntries) => ({ windowSeconds: 600, maxEntries }));
    if (small === undefined || large === undefined) throw new Error('two windows are needed');
    // Of 5000 entries in ten batches, 500 are replays, each with an original.
    const statements: [string, Prisma.Sql, number][] = [
      ['counts', replayCounts(since, small, large), 1000],
      ['samples', replaySamples(since, small, true, 10), 20],
      ['lags', replayLags(since), 1000],
      ['pushed out', pushedOut(since, small), 1000],
      ['peak', peakEntries(since, 600), 11],
      ['claims', claimsSince(since), 5000],
      ['decisions', decidedByPolicy(since), 5000],
    ];
    for (const [name, statement, mostRows] of statements) {
      const plan = await planOf(statement);
      expect([name, plan.sequential]).toEqual([name, []]);
      expect([name, plan.read <= mostRows, plan.read]).toEqual([name, true, plan.read]);
    }
  });

  it('counts the balance without reading the entries themselves', async () => {
    const plan = await planOf(balances(feedIds));
    expect(plan.indexes).toEqual(expect.arrayContaining(['ledger_entry_not_applied']));
    expect(plan.sequential.filter((table) => table === 'ledger_entry')).toEqual([]);
  });
});
