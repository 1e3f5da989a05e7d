/** Instances are replaced one after the other: those that still run use the functions that they know. */
import { query } from '../support/ledger';
import { b, startPipeline } from '../support/pipeline';

it('a migration leaves the functions of before as they were', async () => {
  const path = await startPipeline();
  const [entry] = await path.deliver(b(1));
  const { feedId } = path.feed;
  const identity = { v: 1, a: 'NFD', s: 'e1', e: '' };
  const request = { feed: feedId, hintTerm: null, incidents: [], fields: [], remembered: [], sources: [identity] };
  const keys = [{ ...identity, k: entry?.key, d: entry?.claimDigest, n: '1', p: null }];
  const [read] = await query<{ state: { size: number; recordedAt: string } }>(
    path.url,
    `SELECT read_batch($1::json, $2::json) AS state`,
    [JSON.stringify(request), JSON.stringify(keys)],
  );
  const claim = { v: 1, k: entry?.key, d: entry?.claimDigest, p: 0, r: expect.stringMatching(/^\d{16}$/) as string };
  expect(read?.state).toMatchObject({
    size: 1,
    recordedAt: expect.stringMatching(/^\d{16}$/) as string,
    claims: [claim],
  });

  // An empty batch: what it writes is the head and its own row.
  const batch = {
    id: '00000000-0000-4000-8000-000000000001',
    feed: feedId,
    term: 1,
    first: 1,
    received: 0,
    deliveries: 0,
  };
  const rest = { policyVersion: 1, contractDigest: '00', heads: [], fields: [], members: [] };
  const document = JSON.stringify({ ...batch, ...rest, recordedAt: read?.state.recordedAt });
  await query(path.url, `SELECT write_batch($1::json, '[]'::json, '[]'::json, '[]'::json)`, [document]);
  expect(await path.deliver(b(1), b(2))).toMatchObject([
    { position: 1, outcome: 'DUPLICATE_SUPPRESSED', original: 0 },
    { position: 2, outcome: 'APPLIED' },
  ]);
});
