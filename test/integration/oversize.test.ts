import { delivery, startPipeline } from '../support/pipeline';
import { query } from '../support/ledger';

describe('a delivery on a topic that the contract does not name', () => {
  const rows = (url: string) =>
    query<{ bytes: Buffer | null; size: number }>(url, 'SELECT bytes, size_bytes::int AS size FROM payload');

  it('is stored with its bytes', async () => {
    const path = await startPipeline();
    await path.deliver(delivery('{}', { topic: 'elsewhere' }));
    expect((await path.entries()).map(({ reason }) => reason)).toEqual(['topic_not_in_contract']);
    expect(await rows(path.url)).toMatchObject([{ bytes: Buffer.from('{}'), size: 2 }]);
  });

  it('is stored by digest and size alone when it is over the limit', async () => {
    const path = await startPipeline();
    await path.deliver(delivery(Buffer.alloc(1_048_577, 0x20), { topic: 'elsewhere' }));
    expect((await path.entries()).map(({ reason }) => reason)).toEqual(['payload_too_large']);
    expect(await rows(path.url)).toEqual([{ bytes: null, size: 1_048_577 }]);
  });
});

describe('a delivery that would become too large', () => {
  it('is held as one message, and the feed goes on', async () => {
    const path = await startPipeline({
      contract: `apiVersion: replay-ledger/v1
feed: cad-north
description: CAD
owner: north
topics: [cad/+/+/incident]
decode: json
items: /items
identity: { version: 1, agency: { const: NFD }, source: { const: e1 }, sequence: { pointer: /seq } }
incident: { const: I-77 }
delivery: { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 }
dedup: { windowSeconds: 600, maxEntries: 1000 }
effects:
  - { do: set, field: "seen/{/seq}", to: { envelope: /big } }
`,
    });
    const items = (count: number) => Array.from({ length: count }, (_, seq) => ({ seq }));
    await path.deliver(JSON.stringify({ big: 'x'.repeat(500_000), items: items(1200) }));
    await path.deliver(JSON.stringify({ big: 'x', items: items(2) }));
    expect((await path.entries()).map(({ outcome, reason, held }) => `${outcome} ${reason} ${held}`)).toEqual([
      'MALFORMED_REJECTED delivery_too_large true',
      'APPLIED applied false',
      'APPLIED applied false',
    ]);
  });
});
