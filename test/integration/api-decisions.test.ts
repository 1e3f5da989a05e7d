import { b, caseContract, delivery } from '../support/pipeline';
import { startBoth } from './api-fixture';

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
    const micros = (time: string | undefined) =>
      BigInt(Date.parse(time ?? '')) * 1000n + BigInt((time ?? '').slice(-4, -1));
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
    await path.deliver(
      b(seq, { lat: '#' }).replace('"#"', '0.1').replace('"ENROUTE"', '{"n":12345678901234567890,"__proto__":1.0}'),
    );
    const { decision } = await app.data(
      '{ decision(feed: "cad-north", position: 0) { outcome sequence payload payloadText } }',
    );
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
    const { decisions } = await app.data(
      '{ decisions(first: 2) { nodes { outcome held key payload payloadText payloadBase64 } } }',
    );
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
    expect(
      await positions({ to: '2999-01-01T00:00:00+02:00', agency: 'NFD', sourceId: 'e1', outcome: ['APPLIED'] }),
    ).toEqual([0, 1]);
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
    expect(
      await app.codes('query ($p: BigInt!) { decision(feed: "cad-north", position: $p) { id } }', { p: 2 ** 60 }),
    ).toEqual(['BAD_USER_INPUT']);
  });
});
