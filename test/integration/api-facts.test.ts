import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { startBoth, startTestApi } from './api-fixture';

describe('reading incidents, sources and feeds', () => {
  const rest = [
    'effects:',
    '  - { when: { /type: casualty }, do: increment, field: casualties, by: { pointer: /delta } }',
    '  - { when: { /type: unit-status }, do: set, field: "units/{/unit}", to: { pointer: /status } }',
    '  - { when: { /type: unit }, do: set, field: units, to: { pointer: /status } }',
    '  - { when: { /type: assignment }, do: append, field: assignments, value: { pointer: /unit } }',
  ].join('\n');

  it('shows what happened to an incident and by whom', async () => {
    const { path, app } = await startBoth(caseContract({ rest }));
    await path.deliver(
      b(1, { type: 'casualty', delta: 3 }),
      b(2, { type: 'unit-status', unit: 'E/7', status: 'RELEASED' }),
      b(3, { type: 'assignment', unit: 'E9' }),
      b(4, { type: 'assignment', unit: 'E1' }),
      b(1, { type: 'casualty', delta: 3 }),
      b(1, { src: 'e2', type: 'unit', status: 'two' }),
      b(5, { type: 'casualty', delta: '#' }).replace('"#"', '0.10000000000000000001'),
    );
    const { incident } = await app.data(`{ incident(id: "I-77") {
      id state counts { outcome count } fields { path value position agency sourceId }
      sources { feed { name } agency sourceId counts { outcome count } firstPosition lastPosition }
      decisions(last: 2, filter: { outcome: [APPLIED] }) { nodes { position } pageInfo { hasPreviousPage } }
    } }`);
    expect(incident.state).toEqual({
      casualties: '3.10000000000000000001',
      units: { '': 'two', 'E/7': 'RELEASED' },
      assignments: ['E1', 'E9'],
    });
    expect(incident.counts).toEqual([
      { outcome: 'DUPLICATE_SUPPRESSED', count: '1' },
      { outcome: 'APPLIED', count: '6' },
    ]);
    expect(incident.fields).toContainEqual({
      path: 'units/E~17',
      value: 'RELEASED',
      position: '1',
      agency: 'NFD',
      sourceId: 'e1',
    });
    expect(incident.sources).toEqual([
      {
        feed: { name: 'cad-north' },
        agency: 'NFD',
        sourceId: 'e1',
        counts: [
          { outcome: 'DUPLICATE_SUPPRESSED', count: '1' },
          { outcome: 'APPLIED', count: '5' },
        ],
        firstPosition: '0',
        lastPosition: '6',
      },
      {
        feed: { name: 'cad-north' },
        agency: 'NFD',
        sourceId: 'e2',
        counts: [{ outcome: 'APPLIED', count: '1' }],
        firstPosition: '5',
        lastPosition: '5',
      },
    ]);
    expect(incident.decisions).toEqual({
      nodes: [{ position: '5' }, { position: '6' }],
      pageInfo: { hasPreviousPage: true },
    });
    expect(
      await app.codes('{ incident(id: "I-77") { decisions(filter: { incidentId: "I-78" }) { nodes { id } } } }'),
    ).toEqual(['BAD_USER_INPUT']);
  });

  it('lists sources in order, forward and backward, with their epochs and counts', async () => {
    const identity =
      '{ agency: { pointer: /agency }, source: { pointer: /src }, sequence: { pointer: /seq }, epoch: { pointer: /boot, order: numeric } }';
    const { path, app } = await startBoth(caseContract({ identity }));
    await path.deliver(
      b(7, { boot: 1 }),
      b(3, { boot: 2 }),
      b(9, { boot: 1 }),
      b(1, { src: 'e0', boot: 1 }),
      b(1, { src: 'a', agency: 'Z', boot: 1 }),
      'garbage',
    );
    const { source } = await app.data(`{ source(feed: "cad-north", agency: "NFD", sourceId: "e1") {
      feed { name } highWaterMark counts { outcome count } firstPosition lastPosition
      epochs { keyVersion epoch rank highWaterMark highestSequence current } } }`);
    expect(source).toEqual({
      feed: { name: 'cad-north' },
      highWaterMark: '3',
      counts: [
        { outcome: 'STALE_OUT_OF_ORDER', count: '1' },
        { outcome: 'APPLIED', count: '2' },
      ],
      firstPosition: '0',
      lastPosition: '2',
      epochs: [
        { keyVersion: 1, epoch: '2', rank: '2', highWaterMark: '3', highestSequence: '3', current: true },
        { keyVersion: 1, epoch: '1', rank: '1', highWaterMark: '7', highestSequence: '9', current: false },
      ],
    });
    const names = (list: { nodes: { agency: string; sourceId: string }[] }) =>
      list.nodes.map((n) => `${n.agency}/${n.sourceId}`);
    const page = async (args: string) =>
      (
        await app.data(`{ sources(feed: "cad-north", ${args}) { nodes { agency sourceId } edges { cursor }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`)
      ).sources;
    const first = await page('first: 2');
    expect(names(first)).toEqual(['NFD/e0', 'NFD/e1']);
    expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
    const second = await page(`first: 2, after: "${first.pageInfo.endCursor}"`);
    expect(names(second)).toEqual(['Z/a']);
    expect(second.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: true });
    expect(names(await page(`last: 2, before: "${second.pageInfo.startCursor}"`))).toEqual(['NFD/e0', 'NFD/e1']);
    expect(names(await page('last: 1'))).toEqual(['Z/a']);
    expect(await app.codes('{ sources(feed: "nope") { nodes { sourceId } } }')).toEqual(['NOT_FOUND']);
  });

  it('shows a feed with contract, policy, window, balance and ledger', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(1), b(2), 'garbage', '');
    const { feed } = await app.data(`{ feed(name: "cad-north") {
      name createdAt retiredAt contract { version digest text file commit firstPosition actor recordedAt }
      policy { version windowSeconds maxEntries ordering contiguous maxSequenceJump origin actor reason firstPosition contractDigest }
      policyHistory { version } window { windowSeconds maxEntries replayHorizonSeconds entriesInSeconds boundByEntries }
      balance { received entries appliedKeys applied released balanced } ledger { term size recordedAt } } }`);
    expect(feed).toMatchObject({
      name: 'cad-north',
      retiredAt: null,
      contract: {
        version: 1,
        digest: path.feed.active.digest,
        text: caseContract(),
        file: 'contract.yaml',
        firstPosition: '0',
      },
      policy: {
        version: 1,
        windowSeconds: 600,
        maxEntries: 1000,
        ordering: 'STRICT',
        contiguous: false,
        maxSequenceJump: null,
        origin: 'CONTRACT',
        contractDigest: path.feed.active.digest,
      },
      policyHistory: [{ version: 1 }],
      window: {
        windowSeconds: 600,
        maxEntries: 1000,
        replayHorizonSeconds: 420,
        entriesInSeconds: '5',
        boundByEntries: false,
      },
      balance: { received: '5', entries: '5', appliedKeys: '2', applied: '2', released: '0', balanced: true },
      ledger: { term: 1, size: '5' },
    });
    expect(feed.ledger.recordedAt).toBe((await path.entries()).at(-1)?.recordedAt);
  });

  it('resolves a page of entries and a list of feeds without a query an object', async () => {
    const path = await startPipeline();
    const other = await startPipeline({
      url: path.url,
      contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }),
    });
    const app = await startTestApi({ database: path.database });
    await path.deliver(...Array.from({ length: 20 }, (_, n) => b(n)), ...Array.from({ length: 20 }, (_, n) => b(n)));
    await other.deliver(delivery(b(1), { topic: 'cad/south/e1' }));
    app.statements();
    const page = await app.data(`{ decisions(filter: { outcome: [DUPLICATE_SUPPRESSED] }) {
      nodes { feed { policy { version } contract { digest } } original { position payload } resolution { id } replayLagSeconds payload } } }`);
    expect(page.decisions.nodes).toHaveLength(20);
    expect(page.decisions.nodes[19].original).toMatchObject({ position: '19', payload: { seq: 19 } });
    // Heads, entries, originals, payloads twice (of the entries, then of the originals), policies, contracts.
    const statements = app.statements();
    expect(statements).toBeGreaterThan(4);
    expect(statements).toBeLessThanOrEqual(7);
    const { feeds } = await app.data(`{ feeds { name contract { version } policy { version } policyHistory { version }
      window { entriesInSeconds } balance { balanced } ledger { size } } }`);
    expect(feeds.map((feed: { name: string }) => feed.name)).toEqual(['cad-north', 'cad-south']);
    expect(app.statements()).toBeLessThanOrEqual(6);
    await app.data(
      '{ sources(feed: "cad-north") { nodes { highWaterMark epochs { rank } counts { count } firstPosition } } }',
    );
    expect(app.statements()).toBeLessThanOrEqual(4);
  });
});
