/**
 * The whole API, attacked by a reader of one agency: nothing that it answers may hold a word of another. Every name of
 * the other agency has a mark that a search finds in anything.
 */
import { buildApiSchema } from '../../src/api/schema';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';
import { asking, makeTokens, openTokenFile, rawSubscriber } from './access-fixture';
import type { Answer, Data, TestApi } from './api-fixture';
import { startTestApi } from './api-fixture';
import { listen, settled } from './api-subscription-fixture';

const MARK = /zulu/i;
const theirs = (n: number, changes: object = {}) =>
  b(n, { agency: 'ZULU', src: 'zulu-1', incident: 'I-zulu', status: 'zulu', ...changes });

let app: TestApi;
let path: TestPipeline;
let token: string;
let ask: (query: string, variables?: object) => Promise<Answer>;
let askAll: (query: string, variables?: object) => Promise<Answer>;

beforeAll(async () => {
  path = await startPipeline({ contract: caseContract({ topics: '["cad/north/#"]' }) });
  const hidden = await startPipeline({
    url: path.url,
    contract: caseContract({ feed: 'cad-zulu', topics: '["cad/zulu/#"]' }),
  });
  const at = (topic: string) => (payload: string) => delivery(payload, { topic });
  const north = at('cad/north/zulu');
  await path.deliver(
    b(1),
    north(theirs(1)),
    north(theirs(1)),
    north(theirs(1, { status: 'zulu-2' })),
    north(theirs(0)),
    north('zulu is no JSON'),
    b(1),
    b(1, { status: 'OTHER' }),
    // An incident that both work on: its state is shared, who wrote it is not.
    north(theirs(2, { incident: 'I-77', status: 'SHARED' })),
    b(2, { incident: 'I-2' }),
  );
  await hidden.deliver(at('cad/zulu/1')(theirs(1)));
  const tokens = makeTokens();
  token = tokens.add({ name: 'north', role: 'reviewer', agencies: ['NFD'] });
  const all = tokens.add({ name: 'all', role: 'admin' });
  app = await startTestApi({
    database: path.database,
    wakeUps: path.wakeUps,
    development: true,
    tokens: openTokenFile(tokens.path),
    limits: { pollMs: 20 },
  });
  ask = asking(app, token);
  askAll = asking(app, all);
});

const NODE = `id position outcome tier reason note held key agency sourceId epoch sequence eventId incidentId late topic
  originalPosition replayLagSeconds resolvesPosition actor payloadDigest bytesDigest payload payloadText payloadBase64`;
const DECISION = `${NODE} feed { name } original { ${NODE} } resolution { ${NODE} }`;
const LIST = `query ($filter: DecisionFilter, $first: Int, $after: String, $last: Int, $before: String) {
  decisions(filter: $filter, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { ${DECISION} } } nodes { position } pageInfo { hasNextPage hasPreviousPage endCursor startCursor } } }`;
const FEED = `name ledger { size term } window { windowSeconds } balance { received } policy { version }
  policyHistory { version }`;
const INCIDENT = `query ($id: ID!, $filter: DecisionFilter) { incident(id: $id) { id state
  fields { path value agency sourceId } counts { outcome count } sources { agency sourceId feed { name } counts { count } }
  decisions(filter: $filter) { nodes { ${DECISION} } } } }`;
const SOURCE = `source(feed: $feed, agency: $agency, sourceId: $id) { agency sourceId highWaterMark counts { count }
  epochs { highestSequence } firstPosition lastPosition feed { name } }`;

/** What is in an answer; cursors are opened, because they are opaque to nobody. */
function exposed(answer: unknown): string {
  return JSON.stringify(answer, (name, value: unknown) =>
    /cursor$/i.test(name) && typeof value === 'string' ? Buffer.from(value, 'base64url').toString() : value,
  );
}

const positionsOf = ({ data }: Answer): string[] =>
  data?.decisions.nodes.map((node: Data) => node.position) as string[];

describe('a reader of one agency', () => {
  it('is attacked for something: a reader of all sees every mark', async () => {
    const everything = exposed(await askAll(LIST));
    for (const mark of ['ZULU', 'zulu-1', 'I-zulu', 'cad-zulu', 'zulu is no JSON']) expect(everything).toContain(mark);
  });

  it('lists, filters and walks nothing but its own', async () => {
    const { data } = await askAll(LIST, { filter: { feed: 'cad-north' } });
    const keyOfTheirs = data?.decisions.edges[1].node.key as string;
    const own = ['0', '6', '7', '9'];
    expect(positionsOf(await ask(LIST))).toEqual(own);
    const filters = [
      {},
      { agency: 'ZULU' },
      { sourceId: 'zulu-1' },
      { agency: 'ZULU', sourceId: 'zulu-1' },
      { key: keyOfTheirs },
      { incidentId: 'I-zulu' },
      { incidentId: 'I-77' },
      { outcome: ['MALFORMED_REJECTED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER'] },
      { tier: ['WINDOW'] },
      { tier: ['HIGH_WATER_MARK'] },
      { held: true },
      { held: false },
      { late: false },
      { feed: 'cad-north' },
      { from: '2000-01-01T00:00:00Z', to: '2999-01-01T00:00:00Z' },
    ];
    for (const filter of filters) {
      for (const page of [{ first: 50 }, { last: 50 }, { first: 1 }, { last: 1 }]) {
        const answer = await ask(LIST, { filter, ...page });
        expect(answer.errors).toBeUndefined();
        expect([filter, exposed(answer).match(MARK)]).toEqual([filter, null]);
        expect(own).toEqual(expect.arrayContaining(positionsOf(answer)));
      }
    }
    // The pages tell of no more than they hold: the last own entry is the end, whatever follows it.
    const end = await ask(LIST, { first: 4 });
    expect(end.data?.decisions.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
  });

  it('cannot bend a cursor to another place', async () => {
    const { data } = await ask(LIST, { first: 1 });
    const { data: all } = await askAll(LIST, { last: 1 });
    const cursor = data?.decisions.pageInfo.endCursor as string;
    type Tuple = [string, string, number, number, [number, number, number][]];
    const tuple = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Tuple;
    const bent = (change: (copy: Tuple) => void): string => {
      const copy = structuredClone(tuple);
      change(copy);
      return Buffer.from(JSON.stringify(copy)).toString('base64url');
    };
    const feedIds = [1, 2, 3, 4, 99];
    const cursors = [
      all?.decisions.pageInfo.endCursor as string,
      bent((copy) => (copy[4][0] = [tuple[3], 1, 5])),
      bent((copy) => (copy[4][0] = [tuple[3], 1, 1_000_000])),
      bent((copy) => (copy[4][0] = [tuple[3], 7, 0])),
      ...feedIds.map((id) => bent((copy) => (copy[4] = [[(copy[3] = id), 1, 0]]))),
      ...feedIds.map((id) => bent((copy) => copy[4].push([id + 100, 9, 999]))),
    ];
    for (const after of cursors) {
      for (const variables of [{ after }, { before: after, last: 10 }]) {
        expect(exposed(await ask(LIST, variables))).not.toMatch(MARK);
      }
    }
    const sources =
      'query ($after: String) { sources(feed: "cad-north", after: $after) { nodes { agency sourceId } } }';
    for (const [agency, sourceId] of [
      ['', ''],
      ['ZUL', ''],
      ['ZULU', 'zulu-0'],
      ['NFD', 'e'],
    ]) {
      const after = Buffer.from(JSON.stringify(['s1', path.feed.feedId, agency, sourceId])).toString('base64url');
      const answer = await ask(sources, { after });
      expect(answer.errors).toBeUndefined();
      expect(exposed(answer)).not.toMatch(MARK);
    }
  });

  it('is told of what is hidden as of what does not exist', async () => {
    /** The same question about something that is not there, with its name put in place. */
    const alike = async (query: string, hidden: Record<string, unknown>, missing: Record<string, unknown>) => {
      const answers = [await ask(query, hidden), await ask(query, missing)];
      const [one, other] = answers.map((answer) =>
        JSON.stringify(answer, (name, value: unknown) => (name === 'correlationId' ? '' : value)).replace(
          /cad-zulu|ZULU|zulu-1|I-zulu|never-was/g,
          '*',
        ),
      );
      expect(one).toBe(other);
      expect(answers[0]?.data ?? {}).toEqual(
        Object.fromEntries(Object.keys(answers[0]?.data ?? {}).map((field) => [field, null])),
      );
    };
    const never = 'never-was';
    await alike(`query ($feed: ID!) { feed(name: $feed) { ${FEED} } }`, { feed: 'cad-zulu' }, { feed: never });
    await alike(LIST, { filter: { feed: 'cad-zulu' } }, { filter: { feed: never } });
    await alike(
      'query ($feed: ID!) { sources(feed: $feed) { nodes { agency } } }',
      { feed: 'cad-zulu' },
      { feed: never },
    );
    await alike(INCIDENT, { id: 'I-zulu' }, { id: never });
    const decision = `query ($feed: ID!, $position: BigInt!) { decision(feed: $feed, position: $position) { ${DECISION} } }`;
    await alike(decision, { feed: 'cad-zulu', position: '0' }, { feed: never, position: '0' });
    for (const position of ['1', '2', '3', '4', '5', '8']) {
      await alike(decision, { feed: 'cad-north', position }, { feed: 'cad-north', position: '1000000' });
    }
    const source = `query ($feed: ID!, $agency: String!, $id: String!) { ${SOURCE} }`;
    const address = { feed: 'cad-north', agency: 'ZULU', id: 'zulu-1' };
    await alike(source, address, { ...address, id: never });
    await alike(source, { ...address, feed: 'cad-zulu' }, { ...address, feed: never });
    const refusals = await Promise.all(
      ['cad-zulu', never].map(async (feed) => {
        const reading = listen(app.client(token), 'decisions', { filter: { feed } });
        await until(reading.ended, { what: 'the refusal' });
        return JSON.stringify(reading.errors)
          .replace(/"correlationId":"[^"]*"/, '')
          .replace(feed, '*');
      }),
    );
    expect(refusals[0]).toContain('NOT_FOUND');
    expect(refusals[0]).toBe(refusals[1]);
  });

  it('counts its own alone, and of a shared incident sees the state, and not who wrote it', async () => {
    const feeds = await ask(`{ feeds { ${FEED} } }`);
    expect(feeds.data?.feeds).toMatchObject([{ name: 'cad-north', balance: null, ledger: { size: '10' } }]);
    const { data } = await ask(INCIDENT, { id: 'I-77' });
    expect(data?.incident).toMatchObject({
      state: { status: 'SHARED' },
      fields: [{ path: 'status', value: 'SHARED', agency: null, sourceId: null }],
      counts: [
        { outcome: 'DUPLICATE_SUPPRESSED', count: '1' },
        { outcome: 'KEY_CONFLICT', count: '1' },
        { outcome: 'APPLIED', count: '1' },
      ],
      sources: [{ agency: 'NFD', sourceId: 'e1' }],
    });
    expect(exposed([feeds, data])).not.toMatch(MARK);
    const sources = await ask('{ sources(feed: "cad-north") { nodes { agency sourceId counts { count } } } }');
    expect(sources.data?.sources.nodes).toEqual([
      { agency: 'NFD', sourceId: 'e1', counts: [{ count: '1' }, { count: '1' }, { count: '2' }] },
    ]);
  });

  it('hears its own alone, live and from a cursor of anybody', async () => {
    const { data } = await askAll(LIST, { first: 1 });
    const live = await rawSubscriber(
      app,
      `Bearer ${token}`,
      `subscription { decisions { cursor decision { ${DECISION} } } }`,
    );
    const suppressed = listen(app.client(token), 'suppressions');
    const resumed = listen(app.client(token), 'decisions', { after: data?.decisions.pageInfo.endCursor as string });
    await settled(app, 3);
    await path.deliver(
      delivery(theirs(3), { topic: 'cad/north/zulu' }),
      delivery(theirs(3), { topic: 'cad/north/zulu' }),
      b(3),
      b(3),
    );
    await until(() => suppressed.events.length === 1 && resumed.events.length === 5, { what: 'the events' });
    await until(() => live.messages.length === 3, { what: 'the live events' });
    expect(resumed.positions()).toEqual([6, 7, 9, 12, 13]);
    expect(suppressed.positions()).toEqual([13]);
    expect(exposed([live.messages, suppressed.events, resumed.events])).not.toMatch(MARK);
  });

  it('sees no administrative act, and cannot find out about a feed by trying one', async () => {
    const LOG =
      '{ adminLog { nodes { kind detail feed { name } } pageInfo { endCursor hasNextPage hasPreviousPage } } }';
    expect(exposed(await askAll(LOG))).toMatch(/CONTRACT_ACTIVATED.*cad-zulu/);
    expect((await ask(LOG)).data?.adminLog).toEqual({
      nodes: [],
      pageInfo: { endCursor: null, hasNextPage: false, hasPreviousPage: false },
    });
    const UPDATE = 'mutation ($input: UpdateDedupPolicyInput!) { updateDedupPolicy(input: $input) { keysLeaving } }';
    for (const feed of ['cad-zulu', 'cad-north', 'never-was']) {
      const { errors } = await ask(UPDATE, {
        input: { feed, expectedVersion: 1, reason: 'x', policy: { maxEntries: 9 } },
      });
      expect(errors?.map(({ message, extensions }) => [message, extensions.code])).toEqual([
        ['the role reviewer may not do this', 'FORBIDDEN'],
      ]);
    }
  });

  it('has been asked for every field that tells of entries', () => {
    // A field that is added later has to be added to the attacks as well.
    const fieldsOf = (type: string) =>
      Object.keys((buildApiSchema().getType(type) as unknown as { getFields(): object }).getFields());
    const asked = new Set(`${DECISION} ${FEED} ${INCIDENT} ${SOURCE}`.match(/\w+/g));
    const harmless = ['term', 'keyVersion', 'policyVersion', 'contractDigest', 'recordedAt', 'occurredAt', 'broker'];
    harmless.push(
      'qos',
      'dup',
      'retained',
      'itemIndex',
      'leafHash',
      'contract',
      'contractError',
      'retiredAt',
      'createdAt',
    );
    for (const type of ['Decision', 'Feed', 'Incident', 'IncidentField', 'IncidentSource', 'Source']) {
      const rest = fieldsOf(type).filter((field) => !asked.has(field) && !harmless.includes(field));
      expect([type, rest]).toEqual([type, []]);
    }
    expect(fieldsOf('Query').sort()).toEqual(
      ['adminLog', 'decision', 'decisions', 'feed', 'feeds', 'incident', 'policyPreview', 'source', 'sources'].sort(),
    );
    expect(fieldsOf('Subscription').sort()).toEqual(['decisions', 'policyChanges', 'suppressions']);
  });
});
