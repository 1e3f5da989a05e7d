import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { startBoth, startTestApi } from './api-fixture';

const ALL = `
  id feed { name } position term outcome tier reason note held late key keyVersion agency sourceId epoch sequence eventId
  incidentId policyVersion contractDigest recordedAt occurredAt originalPosition resolvesPosition actor broker topic qos
  dup retained itemIndex payloadDigest bytesDigest leafHash replayLagSeconds payload payloadText payloadBase64
  original { position } resolution { position }`;

describe('reading decisions', () => {
  it('answers every field of a decision as the ledger has it', async () => {
    const { path, app } = await startBoth();
    const [first, second] = await path.deliver(b(1), delivery(b(1), { dup: true }));
    const { decision } = await app.data(`{ decision(feed: "cad-north", position: 1) { ${ALL} } }`);
    expect(decision).toMatchObject({
      id: 'cad-north:1:1',
      feed: { name: 'cad-north' },
      position: '1',
      outcome: 'DUPLICATE_SUPPRESSED',
      tier: 'WINDOW',
      reason: 'same_key_and_digest',
      held: false,
      late: false,
      key: second?.key,
      agency: 'NFD',
      sourceId: 'e1',
      epoch: null,
      sequence: '1',
      eventId: null,
      incidentId: 'I-77',
      recordedAt: second?.recordedAt,
      originalPosition: '0',
      original: { position: '0' },
      resolution: null,
      topic: 'cad/north/e1/incident',
      qos: 1,
      dup: true,
      retained: false,
      itemIndex: null,
      payloadDigest: first?.payloadDigest,
      bytesDigest: first?.bytesDigest,
      leafHash: second?.leafHash,
      payload: { agency: 'NFD', src: 'e1', seq: 1, incident: 'I-77', status: 'ENROUTE' },
      payloadText: b(1),
      payloadBase64: Buffer.from(b(1)).toString('base64'),
    });
    const micros = (time: string | undefined) => BigInt(Date.parse(time ?? '')) * 1000n + BigInt((time ?? '').slice(-4, -1));
    const lag = Number(micros(second?.recordedAt) - micros(first?.recordedAt)) / 1e6;
    expect(decision.replayLagSeconds).toBeCloseTo(lag, 6);
  });

  it('answers null where there is no such feed or position', async () => {
    const { app } = await startBoth();
    const data = await app.data(`{
      none: decision(feed: "cad-north", position: 0) { id }
      noFeed: decision(feed: "nope", position: 0) { id }
      huge: decision(feed: "cad-north", position: "9223372036854775807") { id }
      feed(name: "nope") { name }
      incident(id: "nope") { id }
      source(feed: "cad-north", agency: "NFD", sourceId: "nope") { sourceId }
    }`);
    expect(data).toEqual({ none: null, noFeed: null, huge: null, feed: null, incident: null, source: null });
  });

  it('keeps numbers that a double cannot hold, and digits beyond 2^53', async () => {
    const { path, app } = await startBoth();
    const seq = '90071992547409931234567890123456789012';
    await path.deliver(b(seq, { lat: '#' }).replace('"#"', '0.1').replace('"ENROUTE"', '{"n":12345678901234567890,"__proto__":1.0}'));
    const { decision } = await app.data('{ decision(feed: "cad-north", position: 0) { outcome sequence payload payloadText } }');
    expect(decision.sequence).toBe(seq);
    expect(decision.payload.seq).toBe(seq);
    expect(decision.payload.lat).toBe(0.1);
    expect(JSON.stringify(decision.payload.status)).toBe('{"n":"12345678901234567890","__proto__":1}');
    expect(decision.payloadText).toContain('"n":12345678901234567890');
  });

  it('gives malformed bytes as they came', async () => {
    const { path, app } = await startBoth();
    const bytes = Buffer.from([0x7b, 0xff, 0x00]);
    await path.deliver(bytes, '{"agency":"NFD","agency":"X","src":"e1","seq":1}');
    const { decisions } = await app.data('{ decisions(first: 2) { nodes { outcome held key payload payloadText payloadBase64 } } }');
    expect(decisions.nodes[0]).toEqual({
      outcome: 'MALFORMED_REJECTED',
      held: true,
      key: null,
      payload: null,
      payloadText: null,
      payloadBase64: bytes.toString('base64'),
    });
    // Which of two members is meant nobody can tell.
    expect(decisions.nodes[1].payload).toBeNull();
    expect(decisions.nodes[1].payloadText).toContain('"agency":"X"');
  });

  it('gives each message of a batch its own part of the payload', async () => {
    const contract = caseContract({ rest: 'items: /events\neffects: off' });
    const { path, app } = await startBoth(contract);
    const parts = [b(1), b(2, { status: 'é😀' }), b(3)];
    await path.deliver(`{ "events": [ ${parts.join(' ,\n')} ] }`);
    const { decisions } = await app.data('{ decisions { nodes { itemIndex payloadText payload bytesDigest } } }');
    expect(decisions.nodes.map((node: { payloadText: string }) => node.payloadText)).toEqual(parts);
    expect(decisions.nodes[1]).toMatchObject({ itemIndex: 1, payload: { seq: 2, status: 'é😀' } });
    expect(new Set(decisions.nodes.map((node: { bytesDigest: string }) => node.bytesDigest)).size).toBe(1);
  });

  it('filters by each condition, and by all at once', async () => {
    const { path, app } = await startBoth();
    const entries = await path.deliver(
      b(1),
      b(5),
      b(1),
      b(5, { status: 'X' }),
      b(3),
      b(1, { src: 'e2', incident: 'I-78' }),
      'garbage',
      '',
    );
    expect(entries.map((entry) => entry.outcome)).toEqual([
      'APPLIED',
      'APPLIED',
      'DUPLICATE_SUPPRESSED',
      'KEY_CONFLICT',
      'STALE_OUT_OF_ORDER',
      'APPLIED',
      'MALFORMED_REJECTED',
      'IGNORED',
    ]);
    const positions = async (filter: object) => {
      const query = 'query ($filter: DecisionFilter) { decisions(filter: $filter) { nodes { position } } }';
      const { decisions } = await app.data(query, { filter });
      return decisions.nodes.map((node: { position: string }) => Number(node.position));
    };
    expect(await positions({})).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await positions({ feed: 'cad-north' })).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await positions({ incidentId: 'I-78' })).toEqual([5]);
    expect(await positions({ agency: 'NFD', sourceId: 'e2' })).toEqual([5]);
    expect(await positions({ agency: 'NFD' })).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await positions({ sourceId: 'e1' })).toEqual([0, 1, 2, 3, 4]);
    expect(await positions({ outcome: ['APPLIED'] })).toEqual([0, 1, 5]);
    expect(await positions({ outcome: ['STALE_OUT_OF_ORDER', 'DUPLICATE_SUPPRESSED', 'IGNORED'] })).toEqual([2, 4, 7]);
    expect(await positions({ outcome: ['APPLIED', 'IGNORED'] })).toEqual([0, 1, 5, 7]);
    expect(await positions({ tier: ['WINDOW'] })).toEqual([2]);
    expect(await positions({ tier: ['WINDOW', 'HIGH_WATER_MARK'] })).toEqual([2, 4]);
    expect(await positions({ tier: ['WINDOW'], outcome: ['APPLIED'] })).toEqual([]);
    expect(await positions({ held: true })).toEqual([3, 4, 6]);
    expect(await positions({ held: false })).toEqual([0, 1, 2, 5, 7]);
    expect(await positions({ held: true, incidentId: 'I-77' })).toEqual([3, 4]);
    expect(await positions({ late: true })).toEqual([]);
    // A key finds everything that was decided about it: applied, conflicting, repeated.
    expect(await positions({ key: entries[1]?.key })).toEqual([1, 3]);
    expect(await positions({ key: entries[0]?.key?.toUpperCase() })).toEqual([0, 2]);
    expect(await positions({ key: '0'.repeat(64) })).toEqual([]);
    expect(await positions({ from: entries[2]?.recordedAt, to: entries[5]?.recordedAt })).toEqual([2, 3, 4]);
    expect(await positions({ from: '2999-01-01T00:00:00Z' })).toEqual([]);
    expect(await positions({ to: '2999-01-01T00:00:00+02:00', agency: 'NFD', sourceId: 'e1', outcome: ['APPLIED'] })).toEqual([0, 1]);
  });

  it('refuses filters that cannot be meant', async () => {
    const { app } = await startBoth();
    const query = 'query ($filter: DecisionFilter) { decisions(filter: $filter) { nodes { id } } }';
    for (const filter of [
      { key: 'abc' },
      { outcome: [] },
      { tier: [] },
      { incidentId: 'a\0b' },
      { agency: 'x'.repeat(5000) },
      { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' },
      { from: 'yesterday' },
      { from: '2026-02-30T00:00:00Z' },
      { from: '2026-01-01T00:00:00.1234567Z' },
      { outcome: ['APPLIE'] },
    ]) {
      expect([filter, await app.codes(query, { filter })]).toEqual([filter, ['BAD_USER_INPUT']]);
    }
    expect(await app.codes(query, { filter: { feed: 'nope' } })).toEqual(['NOT_FOUND']);
    expect(await app.codes('{ decision(feed: "cad-north", position: -1) { id } }')).toEqual(['BAD_USER_INPUT']);
    expect(await app.codes('query ($p: BigInt!) { decision(feed: "cad-north", position: $p) { id } }', { p: 2 ** 60 })).toEqual([
      'BAD_USER_INPUT',
    ]);
  });
});

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
    expect(incident.decisions).toEqual({ nodes: [{ position: '5' }, { position: '6' }], pageInfo: { hasPreviousPage: true } });
    expect(await app.codes('{ incident(id: "I-77") { decisions(filter: { incidentId: "I-78" }) { nodes { id } } } }')).toEqual([
      'BAD_USER_INPUT',
    ]);
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
    const names = (list: { nodes: { agency: string; sourceId: string }[] }) => list.nodes.map((n) => `${n.agency}/${n.sourceId}`);
    const page = async (args: string) =>
      (await app.data(`{ sources(feed: "cad-north", ${args}) { nodes { agency sourceId } edges { cursor }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`)).sources;
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
      contract: { version: 1, digest: path.feed.active.digest, text: caseContract(), file: 'contract.yaml', firstPosition: '0' },
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
      window: { windowSeconds: 600, maxEntries: 1000, replayHorizonSeconds: 420, entriesInSeconds: '5', boundByEntries: false },
      balance: { received: '5', entries: '5', appliedKeys: '2', applied: '2', released: '0', balanced: true },
      ledger: { term: 1, size: '5' },
    });
    expect(feed.ledger.recordedAt).toBe((await path.entries()).at(-1)?.recordedAt);
  });

  it('resolves a page of entries and a list of feeds without a query an object', async () => {
    const path = await startPipeline();
    const other = await startPipeline({ url: path.url, contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }) });
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
    await app.data('{ sources(feed: "cad-north") { nodes { highWaterMark epochs { rank } counts { count } firstPosition } } }');
    expect(app.statements()).toBeLessThanOrEqual(4);
  });
});
