/** Changing the dedup policy of a live feed (design section 7), and what is kept of every attempt. */
import { activateContract } from '../../src/ledger/feeds';
import { updatePolicy } from '../../src/ledger/policy';
import { caseById } from '../support/cases';
import { expectSoundLedger, query } from '../support/ledger';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, parseContract, startPipeline } from '../support/pipeline';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import type { Answer, Data } from './api-fixture';
import { startBoth, startTestApi } from './api-fixture';

const POLICY = 'version firstPosition windowSeconds maxEntries ordering contiguous maxSequenceJump origin actor reason';
const UPDATE = `mutation ($input: UpdateDedupPolicyInput!) { updateDedupPolicy(input: $input) {
  feed { name policy { version } } policy { ${POLICY} feed { name } } previous { version } keysLeaving } }`;
const FEED = 'cad-north';

const input = (expectedVersion: number, policy: object, rest: object = {}) => ({
  input: { feed: FEED, expectedVersion, reason: 'a busy night', policy, ...rest },
});

interface AdminEvent {
  readonly kind: string;
  readonly feed_id: number | null;
  readonly actor: string;
  readonly detail: Data;
}

async function adminEvents(url: string, kind: string): Promise<AdminEvent[]> {
  const rows = await query<AdminEvent>(
    url,
    'SELECT kind, feed_id, actor, detail::json AS detail FROM admin_event WHERE kind LIKE $1 ORDER BY position',
    [kind],
  );
  return rows;
}

async function history(url: string): Promise<Data[]> {
  return query<Data>(url, 'SELECT version, first_position::int, max_entries FROM policy_version ORDER BY version');
}

describe('updateDedupPolicy', () => {
  it('changes what it names and leaves the rest, under the version that was read', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const { updateDedupPolicy: first } = await app.data(
      UPDATE,
      input(1, { windowSeconds: 900, maxSequenceJump: '98765432109876543210' }, { reason: '  longer outages ' }),
    );
    expect(first).toEqual({
      feed: { name: FEED, policy: { version: 2 } },
      policy: {
        ...{ version: 2, firstPosition: '1', windowSeconds: 900, maxEntries: 1000, ordering: 'STRICT' },
        ...{ contiguous: false, maxSequenceJump: '98765432109876543210', origin: 'API', actor: 'local' },
        ...{ reason: 'longer outages', feed: { name: FEED } },
      },
      previous: { version: 1 },
      keysLeaving: '0',
    });
    const { updateDedupPolicy: second } = await app.data(UPDATE, input(2, { ordering: 'TOLERANT' }));
    expect(second.policy).toMatchObject({ maxSequenceJump: '98765432109876543210', ordering: 'TOLERANT' });
    const { updateDedupPolicy: third } = await app.data(UPDATE, input(3, { maxSequenceJump: null }));
    expect(third.policy).toMatchObject({ maxSequenceJump: null, windowSeconds: 900, ordering: 'TOLERANT' });
    expect(await adminEvents(path.url, 'POLICY%')).toMatchObject([
      {
        kind: 'POLICY_CHANGED',
        feed_id: path.feed.feedId,
        actor: 'local',
        detail: {
          version: 2,
          before: { windowSeconds: 600 },
          policy: { windowSeconds: 900 },
          reason: 'longer outages',
        },
      },
      { kind: 'POLICY_CHANGED', detail: { version: 3 } },
      { kind: 'POLICY_CHANGED', detail: { version: 4 } },
    ]);
  });

  it('refuses a window that does not exceed session expiry plus replay delay, with the arithmetic', async () => {
    const { path, app } = await startBoth();
    const answer = await app.post(UPDATE, input(1, { windowSeconds: 420 }));
    expect(answer.errors).toMatchObject([
      {
        message:
          'windowSeconds 420 must exceed sessionExpirySeconds 300 + maxReplayDelaySeconds 120 = 420: ' +
          'replays can come that late',
        extensions: { code: 'BAD_USER_INPUT' },
      },
    ]);
    await app.data(UPDATE, input(1, { windowSeconds: 421 }));
    expect(await history(path.url)).toHaveLength(2);
  });

  it('refuses what a contract could not say, and keeps every attempt', async () => {
    const { path, app } = await startBoth();
    const attempts: [object, object, string, RegExp][] = [
      [{ windowSeconds: 31_536_001 }, {}, 'BAD_USER_INPUT', /windowSeconds must be a whole number/],
      [{ maxEntries: 0 }, {}, 'BAD_USER_INPUT', /maxEntries must be a whole number of entries from 1 to 10000000/],
      [{ maxEntries: 10_000_001 }, {}, 'BAD_USER_INPUT', /maxEntries/],
      [{ contiguous: true }, {}, 'BAD_USER_INPUT', /contiguous gaps \(contiguous: true\) are not supported yet/],
      [{ maxSequenceJump: '0' }, {}, 'BAD_USER_INPUT', /maxSequenceJump must be a whole number above 0/],
      [{ maxSequenceJump: '1'.repeat(39) }, {}, 'BAD_USER_INPUT', /maxSequenceJump/],
      [{ maxEntries: 5 }, { reason: ' \n' }, 'BAD_USER_INPUT', /reason must say why/],
      [{ maxEntries: 5 }, { reason: 'x'.repeat(1001) }, 'BAD_USER_INPUT', /reason must not exceed 1000/],
      [{ maxEntries: 5 }, { reason: 'nul \0' }, 'BAD_USER_INPUT', /reason must be well-formed/],
      [{}, {}, 'BAD_USER_INPUT', /at least one field/],
      [{ maxEntries: 5 }, { feed: 'nowhere' }, 'NOT_FOUND', /there is no feed nowhere/],
      [{ maxEntries: 5 }, { feed: 'No\0Feed' }, 'NOT_FOUND', /there is no feed/],
      [{ maxEntries: 5 }, { expectedVersion: 7 }, 'VERSION_CONFLICT', /at version 1, not 7/],
    ];
    for (const [policy, rest, code, message] of attempts) {
      const { errors } = await app.post(UPDATE, input(1, policy, rest));
      expect([policy, rest, errors?.[0]?.extensions.code]).toEqual([policy, rest, code]);
      expect(errors?.[0]?.message).toMatch(message);
    }
    expect(await history(path.url)).toHaveLength(1);
    const events = await adminEvents(path.url, 'POLICY%');
    expect(events.map(({ detail }) => detail.code as string)).toEqual(attempts.map(([, , code]) => code));
    expect(events.every(({ kind, actor }) => kind === 'POLICY_CHANGE_REFUSED' && actor === 'local')).toBe(true);
    expect(events.at(-1)).toMatchObject({
      feed_id: path.feed.feedId,
      detail: { feed: FEED, expectedVersion: 7, changes: { maxEntries: 5 }, reason: 'a busy night' },
    });
    expect(events[10]).toMatchObject({ feed_id: null, detail: { feed: 'nowhere' } });
  });

  it('has no order to offer to a feed in eventId mode', async () => {
    const identity =
      '{ mode: eventId, agency: { pointer: /agency }, source: { pointer: /src }, eventId: { pointer: /seq } }';
    const { app } = await startBoth(caseContract({ identity }));
    const { errors } = await app.post(UPDATE, input(1, { ordering: 'STRICT' }));
    expect(errors?.[0]?.message).toMatch(/eventId mode has none/);
    expect((await app.data(UPDATE, input(1, { maxEntries: 7 }))).updateDedupPolicy.policy.ordering).toBe('TOLERANT');
  });

  it('leaves a policy alone that its contract manages, and names the file', async () => {
    const rest = 'policy: { managedBy: contract }\neffects: []';
    const { path, app } = await startBoth(caseContract({ rest }));
    const { errors } = await app.post(UPDATE, input(1, { maxEntries: 5 }));
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
    expect(errors?.[0]?.message).toMatch(/is managed by its contract: change dedup in contract\.yaml/);
    expect(await history(path.url)).toHaveLength(1);
    expect(await adminEvents(path.url, 'POLICY%')).toMatchObject([{ detail: { code: 'FORBIDDEN' } }]);
  });

  it('is for policy administrators, and keeps the attempts of others too', async () => {
    const path = await startPipeline();
    const tokens = makeTokens();
    const roles = ['viewer', 'reviewer', 'policy-admin', 'admin'] as const;
    const bearers = roles.map((role) => [role, tokens.add({ name: `the-${role}`, role })] as const);
    const app = await startTestApi({ database: path.database, tokens: openTokenFile(tokens.path) });
    const answers = new Map<string, Answer>();
    let version = 1;
    for (const [role, token] of bearers) {
      const answer = await asking(app, token)(UPDATE, input(version, { maxEntries: 500 }));
      if (answer.errors === undefined) version++;
      answers.set(role, answer);
    }
    expect(roles.map((role) => answers.get(role)?.errors?.[0]?.extensions.code)).toEqual([
      'FORBIDDEN',
      'FORBIDDEN',
      undefined,
      undefined,
    ]);
    const events = await adminEvents(path.url, 'POLICY%');
    expect(events.map(({ kind, actor }) => [kind, actor])).toEqual([
      ['POLICY_CHANGE_REFUSED', 'the-viewer'],
      ['POLICY_CHANGE_REFUSED', 'the-reviewer'],
      ['POLICY_CHANGED', 'the-policy-admin'],
      ['POLICY_CHANGED', 'the-admin'],
    ]);
  });

  it('says how many remembered keys leave a window that shrinks', async () => {
    const { path, app } = await startBoth();
    await path.deliver(...[1, 2, 3, 4].map((n) => b(n)), b(1, { status: 'OTHER' }), b(1), b(5));
    const { updateDedupPolicy: shrunk } = await app.data(UPDATE, input(1, { maxEntries: 3 }));
    // The next position is 7, so the window begins at 4 now: with the conflict. The originals of 1 to 4 lie before it.
    expect(shrunk.keysLeaving).toBe('4');
    expect((await app.data(UPDATE, input(2, { maxEntries: 1000 }))).updateDedupPolicy.keysLeaving).toBe('0');
    expect(await path.deliver(b(2))).toMatchObject([
      { outcome: 'DUPLICATE_SUPPRESSED', tier: 'WINDOW', policyVersion: 3 },
    ]);
  });

  it('holds for the next batch of every instance, without a restart', async () => {
    const one = await startPipeline();
    const two = await startPipeline({ url: one.url });
    const app = await startTestApi({ database: one.database });
    await one.deliver(b(1), b(2), b(3));
    await two.deliver(b(4));
    await app.data(UPDATE, input(1, { maxEntries: 2 }));
    expect(await two.deliver(b(1))).toMatchObject([{ tier: 'LEDGER', policyVersion: 2 }]);
    await app.data(UPDATE, input(2, { ordering: 'TOLERANT', maxEntries: 50 }));
    expect(await one.deliver(b(1))).toMatchObject([{ tier: 'WINDOW', policyVersion: 3 }]);
    expect(await two.deliver(b(0))).toMatchObject([{ outcome: 'APPLIED', late: true, policyVersion: 3 }]);
    const entries = await expectSoundLedger(one.url, FEED);
    // Each version's first position is where it starts to be named.
    for (const { version, first_position: first } of await history(one.url)) {
      expect(entries[first as number]?.policyVersion).toBe(version);
      expect(entries[(first as number) - 1]?.policyVersion ?? 0).toBe((version as number) - 1);
    }
  });

  it('is not undone by a restart with the same file', async () => {
    const yaml = caseContract();
    const path = await startPipeline({ contract: yaml });
    const app = await startTestApi({ database: path.database });
    await app.data(UPDATE, input(1, { maxEntries: 77 }));
    const activate = (text: string) =>
      activateContract(path.database.prisma, parseContract(text), {
        actor: 'test',
        commit: null,
        parse: (stored) => parseContract(stored.sourceText).contract,
      });
    expect(await activate(yaml)).toMatchObject({ result: 'unchanged' });
    expect(await activate(`${yaml}# a comment\n`)).toMatchObject({ result: 'activated', version: 2 });
    expect(await path.deliver(b(1))).toMatchObject([{ policyVersion: 2 }]);
    // A file that says something new about the policy means it.
    await activate(caseContract({ dedup: '{ windowSeconds: 600, maxEntries: 2000 }' }));
    expect((await history(path.url)).map((row) => row.max_entries as number)).toEqual([1000, 77, 2000]);
  });
});

describe(`case C082: ${caseById('C082').symptom}`, () => {
  it('lets one of two win in each of 200 rounds, and tells the other what is in force', async () => {
    const ROUNDS = 200;
    const path: TestPipeline = await startPipeline();
    const apps = [await startTestApi({ database: path.database }), await startTestApi({ database: path.database })];
    for (let round = 1; round <= ROUNDS; round++) {
      const answers = await Promise.all(
        apps.map((app, index) => app.post(UPDATE, input(round, { maxEntries: round * 2 + index }))),
      );
      const winner = answers.find((answer) => answer.errors === undefined);
      const loser = answers.find((answer) => answer.errors !== undefined);
      const made = winner?.data?.updateDedupPolicy.policy as Data;
      expect(made.version).toBe(round + 1);
      expect(loser?.errors).toMatchObject([
        {
          extensions: {
            code: 'VERSION_CONFLICT',
            currentVersion: round + 1,
            currentPolicy: { version: round + 1, maxEntries: made.maxEntries, ordering: 'STRICT', actor: 'local' },
          },
        },
      ]);
    }
    expect((await history(path.url)).map(({ version }) => version as number)).toEqual(
      Array.from({ length: ROUNDS + 1 }, (_, index) => index + 1),
    );
    const events = await adminEvents(path.url, 'POLICY%');
    expect(events.filter(({ kind }) => kind === 'POLICY_CHANGED')).toHaveLength(ROUNDS);
    expect(events.filter(({ detail }) => detail.code === 'VERSION_CONFLICT')).toHaveLength(ROUNDS);
  });

  it('has a compare and set that holds by itself, also from many at once', async () => {
    const path = await startPipeline({ poolSize: 10 });
    const change = (maxEntries: number) =>
      updatePolicy(path.database.prisma, {
        ...{ feed: FEED, expectedVersion: 1, changes: { maxEntries }, actor: 'test', reason: 'race' },
      });
    const results = await Promise.all([10, 11, 12, 13, 14, 15, 16, 17].map(change));
    expect(results.filter(({ result }) => result === 'updated')).toHaveLength(1);
    expect(results.filter((one) => one.result === 'refused' && one.code === 'VERSION_CONFLICT')).toHaveLength(7);
  });
});
