/** The ledger of administrative acts, as it is read. */
import { noteSession } from '../../src/ledger/sessions';
import { query } from '../support/ledger';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, startPipeline } from '../support/pipeline';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import type { Answer, Data } from './api-fixture';
import { startTestApi } from './api-fixture';

const LOG = `query ($filter: AdminLogFilter, $first: Int, $after: String, $last: Int, $before: String) {
  adminLog(filter: $filter, first: $first, after: $after, last: $last, before: $before) {
    nodes { position kind actor recordedAt detail feed { name } } edges { cursor node { position } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;
const UPDATE = 'mutation ($input: UpdateDedupPolicyInput!) { updateDedupPolicy(input: $input) { policy { version } } }';

let path: TestPipeline;
let ask: (query: string, variables?: object) => Promise<Answer>;
let askNorth: (query: string, variables?: object) => Promise<Answer>;

beforeAll(async () => {
  path = await startPipeline();
  await startPipeline({ url: path.url, contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }) });
  const tokens = makeTokens();
  const boss = tokens.add({ name: 'boss', role: 'admin' });
  const clerk = tokens.add({ name: 'clerk', role: 'viewer' });
  const north = tokens.add({ name: 'north', role: 'reviewer', agencies: ['NFD'] });
  const app = await startTestApi({ database: path.database, tokens: openTokenFile(tokens.path) });
  ask = asking(app, boss);
  askNorth = asking(app, north);
  await path.deliver(b(1));
  const input = { feed: 'cad-north', expectedVersion: 1, reason: 'drill', policy: { maxEntries: 9 } };
  await ask(UPDATE, { input });
  await ask(UPDATE, { input });
  await asking(app, clerk)(UPDATE, { input });
  await ask(UPDATE, { input: { ...input, feed: 'nowhere' } });
  await noteSession(path.database.prisma, path.feed.feedId, 'one', false);
  await noteSession(path.database.prisma, path.feed.feedId, 'one', false);
  await query(path.url, "SELECT append_admin_event('TERM_OPENED', $1, 'replay-ledger', 'the head is smaller')", [
    path.feed.feedId,
  ]);
});

const log = async (variables: object = {}): Promise<Data> => {
  const { data, errors } = await ask(LOG, variables);
  expect(errors).toBeUndefined();
  return data?.adminLog as Data;
};
const positions = (page: Data) => page.nodes.map(({ position }: Data) => Number(position)) as number[];

describe('adminLog', () => {
  it('has every act and every refused attempt, in order, with who, what and when', async () => {
    const { nodes } = await log();
    const [north, south] = ['cad-north', 'cad-south'].map((name) => ({ feed: { name } }));
    expect(nodes).toMatchObject([
      { position: '0', kind: 'CONTRACT_ACTIVATED', actor: 'test', ...north, detail: { version: 1 } },
      { position: '1', kind: 'CONTRACT_ACTIVATED', actor: 'test', ...south },
      { kind: 'POLICY_CHANGED', actor: 'boss', ...north, detail: { version: 2, reason: 'drill' } },
      { kind: 'POLICY_CHANGE_REFUSED', actor: 'boss', ...north, detail: { code: 'VERSION_CONFLICT' } },
      { kind: 'POLICY_CHANGE_REFUSED', actor: 'clerk', ...north, detail: { code: 'FORBIDDEN' } },
      { kind: 'POLICY_CHANGE_REFUSED', actor: 'boss', feed: null, detail: { code: 'NOT_FOUND', feed: 'nowhere' } },
      { kind: 'SESSION_LOST', actor: 'replay-ledger', ...north, detail: { session: 'one' } },
      { position: '7', kind: 'TERM_OPENED', actor: 'replay-ledger', ...north, detail: 'the head is smaller' },
    ]);
  });

  it('filters by feed, kind and actor, together', async () => {
    expect(positions(await log({ filter: { feed: 'cad-south' } }))).toEqual([1]);
    expect(positions(await log({ filter: { kind: ['POLICY_CHANGED', 'POLICY_CHANGE_REFUSED'] } }))).toEqual([
      2, 3, 4, 5,
    ]);
    expect(positions(await log({ filter: { actor: 'boss' } }))).toEqual([2, 3, 5]);
    const all = { feed: 'cad-north', kind: ['POLICY_CHANGE_REFUSED'], actor: 'boss' };
    expect(positions(await log({ filter: all }))).toEqual([3]);
  });

  it('is walked in pages, both ways', async () => {
    const walked: number[] = [];
    for (let after: string | null = null, more = true; more;) {
      const page: Data = await log({ first: 3, after });
      walked.push(...positions(page));
      ({ hasNextPage: more, endCursor: after } = page.pageInfo as { hasNextPage: boolean; endCursor: string });
    }
    expect(walked).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const latest = await log({ last: 2 });
    expect(positions(latest)).toEqual([6, 7]);
    expect(latest.pageInfo).toMatchObject({ hasPreviousPage: true, hasNextPage: false });
    expect(positions(await log({ last: 2, before: latest.pageInfo.startCursor as string }))).toEqual([4, 5]);
  });

  it('refuses cursors and filters that do not belong', async () => {
    const { endCursor } = (await log({ first: 1 })).pageInfo as { endCursor: string };
    const { data } = await ask('{ decisions(first: 1) { pageInfo { endCursor } } }');
    const bent = Buffer.from(JSON.stringify(['a1', '0123456789abcdef', 1])).toString('base64url');
    const attempts: [object, string][] = [
      [{ after: endCursor, filter: { actor: 'boss' } }, 'BAD_USER_INPUT'],
      [{ after: data?.decisions.pageInfo.endCursor as string }, 'BAD_USER_INPUT'],
      [{ after: bent }, 'BAD_USER_INPUT'],
      [{ first: 0 }, 'BAD_USER_INPUT'],
      [{ filter: { kind: [] } }, 'BAD_USER_INPUT'],
      [{ filter: { actor: 'nul \0' } }, 'BAD_USER_INPUT'],
      [{ filter: { feed: 'nowhere' } }, 'NOT_FOUND'],
    ];
    for (const [variables, code] of attempts) {
      const { errors } = await ask(LOG, variables);
      expect([variables, errors?.[0]?.extensions.code]).toEqual([variables, code]);
    }
  });

  it('shows nothing to readers of some agencies', async () => {
    expect((await askNorth(LOG)).data?.adminLog).toMatchObject({ nodes: [], pageInfo: { hasNextPage: false } });
    const { data } = await askNorth(LOG, { filter: { feed: 'cad-north' }, last: 5 });
    expect(data?.adminLog.nodes).toEqual([]);
  });
});
