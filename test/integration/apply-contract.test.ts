/** Contracts through the API: the checks of a start, errors with their places, every attempt on record. */
import { expectSoundLedger, query } from '../support/ledger';
import { b, caseContract } from '../support/pipeline';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import { startBoth, startTestApi } from './api-fixture';

const APPLY = `mutation ($input: ApplyFeedContractInput!) { applyFeedContract(input: $input) {
  feed { name contract { version file commit actor } policy { version windowSeconds } }
  status changes { field before after grade } drift { field before after } } }`;
const input = (text: string, rest: object = {}) => ({ input: { text, file: 'cad.yaml', ...rest } });

const events = (url: string) =>
  query<{ kind: string; actor: string; detail: { message?: string } }>(
    url,
    "SELECT kind, actor, detail::json AS detail FROM admin_event WHERE kind LIKE 'CONTRACT%' ORDER BY position",
  );

describe('applyFeedContract', () => {
  it('puts a contract in force for the next batch, once, with actor and commit', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const longer = caseContract({ dedup: '{ windowSeconds: 900, maxEntries: 1000 }' });
    const planned = await app.data(APPLY, input(longer, { dryRun: true }));
    expect(planned.applyFeedContract).toMatchObject({ status: 'CHANGED', feed: { contract: { version: 1 } } });
    const { applyFeedContract: applied } = await app.data(APPLY, input(longer, { commit: 'c0ffee1' }));
    expect(applied).toEqual({
      feed: {
        name: 'cad-north',
        contract: { version: 2, file: 'cad.yaml', commit: 'c0ffee1', actor: 'local' },
        policy: { version: 2, windowSeconds: 900 },
      },
      status: 'CHANGED',
      changes: [{ field: 'dedup.windowSeconds', before: '600', after: '900', grade: 'SAFE' }],
      drift: [],
    });
    const { applyFeedContract: again } = await app.data(APPLY, input(longer));
    expect(again).toMatchObject({ status: 'UNCHANGED', changes: [], feed: { contract: { version: 2 } } });
    await path.deliver(b(2));
    const entries = await query<{ policy_version: number }>(
      path.url,
      'SELECT policy_version FROM ledger_entry ORDER BY position',
    );
    expect(entries.map((entry) => entry.policy_version)).toEqual([1, 2]);
    await expectSoundLedger(path.url, 'cad-north');
  });

  it('makes a feed that is new', async () => {
    const { app } = await startBoth();
    const south = caseContract({ feed: 'cad-south', topics: '["south/#"]' });
    expect((await app.data(APPLY, input(south, { dryRun: true }))).applyFeedContract).toMatchObject({
      feed: null,
      status: 'NEW',
    });
    expect((await app.data(APPLY, input(south))).applyFeedContract).toMatchObject({
      feed: { name: 'cad-south', contract: { version: 1 } },
      status: 'NEW',
      changes: [],
    });
  });

  it('refuses with the place of every error, and keeps the attempt', async () => {
    const { path, app } = await startBoth();
    const broken = caseContract().replace('windowSeconds: 600', 'windowSeconds: 60').replace('decode:', 'decoder:');
    const { errors } = await app.post(APPLY, input(broken));
    expect(errors?.[0]?.extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      errors: [
        { line: 6, column: 1, path: 'decoder' },
        { line: expect.any(Number), path: 'dedup.windowSeconds', message: expect.stringContaining('300 + ') },
      ],
    });
    expect(errors?.[0]?.message).toContain('cad.yaml:6:1: decoder: unknown key "decoder"; did you mean "decode"?');
    expect((await events(path.url)).map(({ kind }) => kind)).toEqual(['CONTRACT_ACTIVATED', 'CONTRACT_REFUSED']);
  });

  it('refuses topics of another feed, and leaves no feed behind', async () => {
    const { path, app } = await startBoth();
    const { errors } = await app.post(APPLY, input(caseContract({ feed: 'cad-south' })));
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT', errors: [{ path: 'topics[0]', line: 5 }] });
    expect(await query(path.url, 'SELECT name FROM feed')).toEqual([{ name: 'cad-north' }]);
  });

  it('of two that overlap and come together one is taken', async () => {
    const { path, app } = await startBoth();
    const answers = await Promise.all(
      ['one', 'two'].map((feed) => app.post(APPLY, input(caseContract({ feed, topics: '["shared/#"]' })))),
    );
    expect(answers.map(({ errors }) => errors?.length ?? 0).sort()).toEqual([0, 1]);
    expect(await query(path.url, 'SELECT count(*)::int AS n FROM feed_head')).toEqual([{ n: 2 }]);
  });

  it('C116: refuses another identity for a feed with entries, and what was in force decides', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const other = caseContract().replace('pointer: /src', 'pointer: /unit');
    for (const dryRun of [true, false]) {
      const { errors } = await app.post(APPLY, input(other, { dryRun }));
      expect(errors?.[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT', errors: [] } });
      expect(errors?.[0]?.message).toMatch(/^cad\.yaml: .*identity\.version/);
    }
    await path.deliver(b(1));
    expect((await path.entries()).map(({ outcome }) => outcome)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED']);
    // Asking is no attempt.
    expect((await events(path.url)).filter(({ kind }) => kind === 'CONTRACT_REFUSED')).toHaveLength(1);
  });

  it('refuses names with a folder and commits that are none', async () => {
    const { app } = await startBoth();
    for (const rest of [{ file: '../cad.yaml' }, { file: '' }, { file: 'a\nb' }, { commit: 'main' }]) {
      expect(await app.codes(APPLY, input(caseContract(), rest))).toEqual(['BAD_USER_INPUT']);
    }
  });

  it('is for those who may, and keeps the attempts of the others', async () => {
    const { path } = await startBoth();
    const tokens = makeTokens();
    const [viewer, administrator] = [
      tokens.add({ name: 'floor', role: 'viewer' }),
      tokens.add({ name: 'chief', role: 'policy-admin' }),
    ];
    const app = await startTestApi({ database: path.database, tokens: openTokenFile(tokens.path) });
    const changed = caseContract({ dedup: '{ windowSeconds: 700, maxEntries: 1000 }' });
    const refused = await asking(app, viewer)(APPLY, input(changed));
    expect(refused.errors?.map(({ extensions }) => extensions.code)).toEqual(['FORBIDDEN']);
    expect((await asking(app, administrator)(APPLY, input(changed))).data?.applyFeedContract).toMatchObject({
      feed: { contract: { version: 2, actor: 'chief' } },
    });
    expect((await events(path.url)).map(({ kind, actor }) => [kind, actor])).toEqual([
      ['CONTRACT_ACTIVATED', 'test'],
      ['CONTRACT_REFUSED', 'floor'],
      ['CONTRACT_ACTIVATED', 'chief'],
    ]);
  });
});

describe('policy: { managedBy: contract }', () => {
  it('the API refuses to change the policy, and names the file', async () => {
    const { app } = await startBoth(caseContract({ rest: 'policy: { managedBy: contract }\neffects: off' }));
    const { errors } = await app.post(
      `mutation { updateDedupPolicy(input: { feed: "cad-north", expectedVersion: 1, reason: "a", policy: { windowSeconds: 900 } }) {
        policy { version } } }`,
    );
    expect(errors?.[0]).toMatchObject({
      message: 'the policy of feed cad-north is managed by its contract: change dedup in contract.yaml, and apply it',
      extensions: { code: 'FORBIDDEN' },
    });
  });
});
