import { query } from '../support/ledger';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { appendEntries } from './api-ledger-fixture';
import type { TestApi } from './api-fixture';
import { startBoth, startTestApi } from './api-fixture';

const PAGE = `query ($filter: DecisionFilter, $first: Int, $after: String, $last: Int, $before: String) {
  decisions(filter: $filter, first: $first, after: $after, last: $last, before: $before) {
    edges { cursor node { feed { name } position recordedAt } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;

interface Node {
  readonly feed: { readonly name: string };
  readonly position: string;
  readonly recordedAt: string;
}

interface Connection {
  readonly edges: readonly { readonly cursor: string; readonly node: Node }[];
  readonly pageInfo: {
    hasNextPage: boolean;
    hasPreviousPage: boolean;
    startCursor: string | null;
    endCursor: string | null;
  };
}

async function page(app: TestApi, variables: Record<string, unknown>): Promise<Connection> {
  return (await app.data(PAGE, variables)).decisions as Connection;
}

const nameOf = ({ feed, position }: Node) => `${feed.name}:${position}`;
const names = (connection: Connection) => connection.edges.map((edge) => nameOf(edge.node));

/** Walks to the end; `between` runs after each page. */
async function walk(
  app: TestApi,
  direction: 'forward' | 'backward',
  size: number,
  filter: object = {},
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<string[]> {
  const seen: string[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < 1000; pages++) {
    const forward = direction === 'forward';
    const args: Record<string, unknown> = forward ? { first: size, after: cursor } : { last: size, before: cursor };
    const connection = await page(app, { filter, ...args });
    const found = names(connection);
    if (forward) seen.push(...found);
    else seen.unshift(...found);
    const { hasNextPage, hasPreviousPage, startCursor, endCursor } = connection.pageInfo;
    if (!(forward ? hasNextPage : hasPreviousPage)) return seen;
    cursor = forward ? endCursor : startCursor;
    await between();
  }
  throw new Error('the walk does not end');
}

async function twoFeeds(): Promise<{ north: TestPipeline; south: TestPipeline; app: TestApi }> {
  const north = await startPipeline();
  const south = await startPipeline({
    url: north.url,
    contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }),
  });
  return { north, south, app: await startTestApi({ database: north.database }) };
}

const southern = (n: number) => delivery(b(n), { topic: 'cad/south/e1' });

describe('pages of decisions', () => {
  it('C093: gives rows whose times differ by microseconds once each, in both directions', async () => {
    const { path, app } = await startBoth();
    for (const [index, fraction] of ['061100', '061500', '061789'].entries()) {
      const startsAt = `2026-01-01T10:00:00.${fraction}Z`;
      await appendEntries(path.url, {
        feedId: path.feed.feedId,
        first: index,
        count: 1,
        perBatch: 1_000_000,
        startsAt,
      });
    }
    const all = ['cad-north:0', 'cad-north:1', 'cad-north:2'];
    for (const filter of [{}, { feed: 'cad-north' }]) {
      expect(await walk(app, 'forward', 1, filter)).toEqual(all);
      expect(await walk(app, 'backward', 1, filter)).toEqual(all);
    }
    const times = (await page(app, { first: 3 })).edges.map((edge) => edge.node.recordedAt);
    expect(times).toEqual([
      '2026-01-01T10:00:00.061100Z',
      '2026-01-01T10:00:00.061500Z',
      '2026-01-01T10:00:00.061789Z',
    ]);
    const bounds = { from: '2026-01-01T10:00:00.061500Z', to: '2026-01-01T10:00:00.061789Z' };
    expect(names(await page(app, { filter: bounds }))).toEqual(['cad-north:1']);
  });

  it('C095: refuses garbage, foreign cursors and impossible page sizes, without a word about the inside', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(2), b(3));
    const north = { feed: 'cad-north' };
    const own = (await page(app, { filter: north, first: 1 })).pageInfo.endCursor ?? '';
    const sources = (await app.data('{ sources(feed: "cad-north") { edges { cursor } } }')).sources.edges[0]
      .cursor as string;
    const text = Buffer.from(own, 'base64url').toString();
    const edited = (from: string, to: string) => Buffer.from(text.replace(from, to)).toString('base64url');
    const foreign = [
      '',
      'AAAA',
      Buffer.from("x'; drop table").toString('base64'),
      Buffer.from('null').toString('base64url'),
      Buffer.from('[]').toString('base64url'),
      `${own}=`,
      ` ${own}`,
      own.slice(0, -2),
      own.repeat(2000),
      sources,
      edited(',0]', ',-1]'),
      edited(',0]', ',0.5]'),
      edited(',0]', ',1e300]'),
      edited(',0]', ',"0"]'),
      edited('"e1"', '"e2"'),
    ];
    for (const name of ['after', 'before']) {
      for (const cursor of foreign) {
        const answer = await app.post(PAGE, { filter: north, first: 1, [name]: cursor });
        expect([cursor, answer.errors?.map((error) => error.extensions.code)]).toEqual([cursor, ['BAD_USER_INPUT']]);
        expect(answer.errors?.[0]?.message).toBe(`${name} is no cursor of this list`);
        expect(answer.data).toBeNull();
      }
      for (const filter of [{}, { ...north, outcome: ['APPLIED'] }, { ...north, incidentId: 'I-77' }]) {
        const answer = await app.post(PAGE, { filter, first: 1, [name]: own });
        expect(answer.errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
      }
    }
    expect(await app.codes('{ sources(feed: "cad-north", after: "AAAA") { nodes { sourceId } } }')).toEqual([
      'BAD_USER_INPUT',
    ]);
    expect(
      await app.codes('query ($c: String) { sources(feed: "cad-north", after: $c) { nodes { sourceId } } }', {
        c: own,
      }),
    ).toEqual(['BAD_USER_INPUT']);
    for (const size of [
      { first: 0 },
      { first: -1 },
      { first: 1_000_000 },
      { last: 0 },
      { last: 201 },
      { first: 1, last: 1 },
    ]) {
      expect([size, await app.codes(PAGE, size)]).toEqual([size, ['BAD_USER_INPUT']]);
    }
    expect(names(await page(app, { filter: north, first: 200, after: own }))).toEqual(['cad-north:1', 'cad-north:2']);
  });

  it('walks one feed in both directions, and says where the list goes on', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(2), b(3), b(4), b(5));
    const filter = { feed: 'cad-north' };
    const all = [0, 1, 2, 3, 4].map((position) => `cad-north:${position}`);
    for (const size of [1, 2, 5, 200]) {
      expect(await walk(app, 'forward', size, filter)).toEqual(all);
      expect(await walk(app, 'backward', size, filter)).toEqual(all);
    }
    const [first, , third, , fifth] = (await page(app, { filter })).edges.map((edge) => edge.cursor);
    const between = await page(app, { filter, first: 10, after: first, before: fifth });
    expect(names(between)).toEqual(all.slice(1, 4));
    expect(between.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
    expect(names(await page(app, { filter, last: 1, after: first, before: fifth }))).toEqual(['cad-north:3']);
    expect(names(await page(app, { filter, first: 1, before: third }))).toEqual(['cad-north:0']);
    expect(names(await page(app, { filter, first: 5, after: fifth }))).toEqual([]);
    expect((await page(app, { filter, first: 5, after: fifth })).pageInfo).toEqual({
      hasNextPage: false,
      hasPreviousPage: true,
      startCursor: null,
      endCursor: null,
    });
  });

  it('merges feeds by time, and the cursor of any entry works in both directions', async () => {
    const { north, south, app } = await twoFeeds();
    for (let n = 1; n <= 4; n++) {
      await north.deliver(b(n));
      await south.deliver(southern(n), southern(n + 10));
    }
    const all = (await page(app, {})).edges;
    const times = all.map((edge) => edge.node.recordedAt);
    expect(times).toEqual([...times].sort());
    expect(all).toHaveLength(12);
    const order = all.map((edge) => nameOf(edge.node));
    for (const size of [1, 3, 5]) {
      expect(await walk(app, 'forward', size)).toEqual(order);
      expect(await walk(app, 'backward', size)).toEqual(order);
    }
    // Cursors of a forward page and of a backward page stand at the same places.
    const backward = (await page(app, { last: 12 })).edges;
    for (const [index, name] of order.entries()) {
      for (const cursor of [all[index]?.cursor, backward[index]?.cursor]) {
        expect([name, names(await page(app, { after: cursor }))]).toEqual([name, order.slice(index + 1)]);
        expect([name, names(await page(app, { last: 200, before: cursor }))]).toEqual([name, order.slice(0, index)]);
      }
    }
  });

  it('never passes over an entry that was committed later, also of a feed that did not exist', async () => {
    const { north, south, app } = await twoFeeds();
    await north.deliver(b(1), b(2), b(3));
    let n = 0;
    let third: TestPipeline | null = null;
    const seen = await walk(app, 'forward', 1, {}, async () => {
      if (++n > 5) return;
      await (n % 2 === 0 ? north.deliver(b(n + 10)) : south.deliver(southern(n)));
      if (n !== 3) return;
      const contract = caseContract({ feed: 'a-new-one', topics: '["new/#"]' });
      third = await startPipeline({ url: north.url, contract });
      await third.deliver(delivery(b(1), { topic: 'new/e1' }));
    });
    expect(third).not.toBeNull();
    expect(new Set(seen).size).toBe(seen.length);
    expect([...seen].sort()).toEqual(
      [0, 1, 2, 3, 4]
        .map((p) => `cad-north:${p}`)
        .concat(
          ['a-new-one:0'],
          [0, 1, 2].map((p) => `cad-south:${p}`),
        )
        .sort(),
    );
  });

  it('refuses a cursor of another term, or of a ledger that got shorter, by its own code', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(2), b(3));
    const cursor = (await page(app, { first: 3 })).pageInfo.endCursor;
    const readOn = async () => (await app.post(PAGE, { after: cursor })).errors?.[0]?.extensions;
    expect(await readOn()).toBeUndefined();
    await path.stop();
    const head = (set: string) => query(path.url, `UPDATE feed_head SET ${set} WHERE feed_id = $1`, [path.feed.feedId]);
    await head('size = 2');
    expect(await readOn()).toMatchObject({ code: 'LEDGER_TERM_CHANGED', feed: 'cad-north' });
    await head('size = 3, term = 2');
    expect(await readOn()).toMatchObject({ code: 'LEDGER_TERM_CHANGED', feed: 'cad-north' });
    await head('term = 1');
    expect(await readOn()).toBeUndefined();
  });
});
