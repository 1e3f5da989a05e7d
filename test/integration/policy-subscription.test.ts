/** `policyChanges`: each version of a policy, as it comes into force anywhere. */
import { activateContract } from '../../src/ledger/feeds';
import { updatePolicy } from '../../src/ledger/policy';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, parseContract, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';
import { makeTokens, openTokenFile } from './access-fixture';
import type { Data, GraphqlError, TestApi } from './api-fixture';
import { startTestApi } from './api-fixture';
import { settled } from './api-subscription-fixture';

const SOUTH = caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' });

interface Heard {
  readonly versions: () => [string, number][];
  readonly events: Data[];
  readonly errors: GraphqlError[];
  readonly ended: () => boolean;
  stop(): void;
}

function hear(app: TestApi, feed?: string, token?: string): Heard {
  const events: Data[] = [];
  const errors: GraphqlError[] = [];
  let ended = false;
  const query = `subscription ($feed: ID) { policyChanges(feed: $feed) {
    feed { name } version origin actor reason maxEntries firstPosition } }`;
  const stop = app.client(token).subscribe<Record<string, Data>>(
    { query, variables: { feed } },
    {
      next: ({ data, errors: failed }) => {
        if (data?.policyChanges) events.push(data.policyChanges);
        errors.push(...((failed ?? []) as unknown as GraphqlError[]));
      },
      error: (reason) => {
        if (Array.isArray(reason)) errors.push(...(reason as GraphqlError[]));
        ended = true;
      },
      complete: () => (ended = true),
    },
  );
  const versions = () => events.map((event): [string, number] => [event.feed.name as string, event.version as number]);
  return { events, errors, versions, ended: () => ended, stop };
}

async function change(path: TestPipeline, expectedVersion: number): Promise<void> {
  const update = await updatePolicy(path.database.prisma, {
    ...{ feed: path.feed.name, expectedVersion, changes: { maxEntries: 100 + expectedVersion } },
    ...{ actor: 'somebody', reason: 'elsewhere' },
  });
  expect(update.result).toBe('updated');
}

describe('policyChanges', () => {
  it('tells of every version once, in order, by whatever and on whichever instance it was made', async () => {
    const path = await startPipeline();
    await change(path, 1);
    const app = await startTestApi({ database: path.database, limits: { pollMs: 20 } });
    const all = hear(app);
    const one = hear(app, 'cad-north');
    await settled(app, 2);
    for (let version = 2; version <= 30; version++) await change(path, version);
    await until(() => all.events.length === 29 && one.events.length === 29, { what: 'the changes' });
    const expected = Array.from({ length: 29 }, (_, index) => ['cad-north', index + 3]);
    expect(all.versions()).toEqual(expected);
    expect(one.versions()).toEqual(expected);
    expect(all.events[0]).toMatchObject({ origin: 'API', actor: 'somebody', reason: 'elsewhere', maxEntries: 102 });

    // A new feed, and a new file of it.
    const south = await startPipeline({ url: path.url, contract: SOUTH });
    const next = parseContract(SOUTH.replace('maxEntries: 1000', 'maxEntries: 2000'));
    await activateContract(south.database.prisma, next, {
      ...{ actor: 'deploy', commit: null },
      parse: (stored) => parseContract(stored.sourceText).contract,
    });
    await until(() => all.events.length === 31, { what: 'the new feed' });
    expect(all.versions().slice(29)).toEqual([
      ['cad-south', 1],
      ['cad-south', 2],
    ]);
    expect(all.events[30]).toMatchObject({ origin: 'CONTRACT', actor: 'deploy', maxEntries: 2000 });
    // Messages are no news of a policy.
    await path.deliver(b(1), b(2));
    await change(path, 31);
    await until(() => all.events.length === 32 && one.events.length === 30, { what: 'one more change' });
    expect([...all.errors, ...one.errors]).toEqual([]);
    all.stop();
    one.stop();
    await settled(app, 0);
  });

  it('is heard within two seconds by the limits that are in force', async () => {
    const path = await startPipeline();
    const app = await startTestApi({ database: path.database });
    const heard = hear(app, 'cad-north');
    await settled(app);
    await change(path, 1);
    // The next look is a second away at most; the rest is patience with a slow machine.
    await until(() => heard.events.length === 1, { what: 'the change', timeoutMs: 10_000 });
  });

  it('refuses an unknown feed, and one that the reader may not see, alike', async () => {
    const path = await startPipeline();
    await path.deliver(b(1, { agency: 'SFD' }));
    const tokens = makeTokens();
    const token = tokens.add({ name: 'north', role: 'viewer', agencies: ['NFD'] });
    const own = { database: path.database, tokens: openTokenFile(tokens.path), limits: { pollMs: 20 } };
    const app = await startTestApi(own);
    for (const feed of ['cad-north', 'nowhere']) {
      const heard = hear(app, feed, token);
      await until(heard.ended, { what: 'the refusal' });
      expect(heard.errors).toMatchObject([{ message: `there is no feed ${feed}`, extensions: { code: 'NOT_FOUND' } }]);
    }
    const all = hear(app, undefined, token);
    await settled(app);
    await change(path, 1);
    // Once the feed has an entry of the agency, it comes into being for its reader, whole.
    await path.deliver(b(1));
    await change(path, 2);
    await until(() => all.events.length === 3, { what: 'the versions' });
    expect(all.versions().map(([, version]) => version)).toEqual([1, 2, 3]);
  });
});
