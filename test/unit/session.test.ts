/** A session whose token takes its time to be checked: what happens meanwhile. */
import { Access } from '../../src/api/access';
import { Session } from '../../src/api/session';
import { Refusal } from '../../src/ops/bearer';
import type { Bearer, Tokens } from '../../src/ops/bearer';

const ALICE: Bearer = { name: 'alice', roles: ['viewer'], agencies: null, expiresAtMs: null };
const REFUSED = new Refusal('refused', 'unknown token');
const UNAVAILABLE = new Refusal('unavailable', 'no keys');
const turns = async () => new Promise((resolve) => setImmediate(resolve));

interface Asked {
  readonly authorization: string | undefined;
  readonly cameAtMs: number | undefined;
  readonly answer: (answer: Bearer | Refusal) => void;
  readonly fail: (error: Error) => void;
}

/** Tokens that answer when the test says so. */
class SlowTokens implements Tokens {
  readonly asked: Asked[] = [];

  authenticate(authorization: string | undefined, cameAtMs?: number): Promise<Bearer | Refusal> {
    return new Promise((answer, fail) => this.asked.push({ authorization, cameAtMs, answer, fail }));
  }

  onChange(): () => void {
    return () => undefined;
  }

  /** Answers the question of this number, which has to be the only one that is open. */
  async answer(number: number, answer: Bearer | Refusal): Promise<void> {
    expect(this.asked).toHaveLength(number + 1);
    this.asked[number]?.answer(answer);
    await turns();
  }
}

function setUp() {
  const tokens = new SlowTokens();
  const closed: (readonly [code: number, reason: string, cause?: string])[] = [];
  const session = new Session(new Access(tokens), (...end) => closed.push(end));
  return { tokens, closed, session };
}

async function admitted() {
  const setting = setUp();
  const admission = setting.session.admit({ authorization: 'Bearer x' });
  await setting.tokens.answer(0, ALICE);
  expect(await admission).toBe('admitted');
  return setting;
}

describe('while a token is being admitted', () => {
  it('there is no viewer, and then there is', async () => {
    const { tokens, session, closed } = setUp();
    const admission = session.admit({ authorization: 'Bearer x' });
    expect(() => session.viewer).toThrow('before the token');
    expect(session.check()).toBe(true);
    await tokens.answer(0, ALICE);
    expect(await admission).toBe('admitted');
    expect(session.viewer).toMatchObject({ name: 'alice', roles: ['viewer'], mayReadPayloads: false });
    expect(closed).toEqual([]);
  });

  it('it may be revoked, and is not admitted by the answer of before', async () => {
    const { tokens, session } = setUp();
    const admission = session.admit({ authorization: 'Bearer x' });
    await session.recheck();
    await tokens.answer(0, ALICE);
    expect(() => session.viewer).toThrow('before the token');
    await tokens.answer(1, REFUSED);
    expect(await admission).toBe(REFUSED);
  });

  it('it may expire', async () => {
    const { tokens, session, closed } = setUp();
    const admission = session.admit({ authorization: 'Bearer x' });
    await tokens.answer(0, { ...ALICE, expiresAtMs: Date.now() - 1 });
    await admission;
    expect(session.check()).toBe(false);
    expect(closed[0]).toEqual([4403, 'the token has expired']);
  });

  it.each([ALICE, { ...ALICE, expiresAtMs: Date.now() + 60_000 }, REFUSED, UNAVAILABLE])(
    'the socket may go: nothing is left of it, whatever the answer is',
    async (answer) => {
      const { tokens, session, closed } = setUp();
      const timers = jest.spyOn(global, 'setTimeout');
      try {
        const admission = session.admit({ authorization: 'Bearer x' });
        session.stop();
        await tokens.answer(0, answer);
        expect(await admission).toBe('over');
        expect([closed, timers.mock.calls]).toEqual([[], []]);
      } finally {
        timers.mockRestore();
      }
    },
  );

  it('it may turn out that nobody can tell: the socket is closed so that clients come back', async () => {
    const { tokens, session, closed } = setUp();
    const admission = session.admit({ authorization: 'Bearer x' });
    await tokens.answer(0, UNAVAILABLE);
    expect(await admission).toBe('over');
    expect(closed).toEqual([[1013, 'tokens cannot be checked at the moment', 'no keys']]);
  });

  it('the check may break: whoever asked hears of it', async () => {
    const { tokens, session } = setUp();
    const admission = session.admit({});
    tokens.asked[0]?.fail(new Error('broken'));
    await expect(admission).rejects.toThrow('broken');
    expect(() => session.viewer).toThrow('before the token');
  });
});

describe('after a change of the tokens', () => {
  it.each([
    [REFUSED, [4403, 'the token was revoked', 'unknown token']],
    [UNAVAILABLE, [1013, 'the token cannot be checked any more', 'no keys']],
    [{ ...ALICE, roles: ['viewer', 'policy-admin'] }, [4491, 'the rights of the token have changed']],
    [{ ...ALICE, agencies: ['NFD'] }, [4491, 'the rights of the token have changed']],
    [{ ...ALICE, name: 'bob' }, [4491, 'the rights of the token have changed']],
  ] as const)('%j ends it', async (answer, end) => {
    const { tokens, session, closed } = await admitted();
    const recheck = session.recheck();
    await tokens.answer(1, answer);
    await recheck;
    expect(closed).toEqual([end]);
  });

  it('the same rights, in whatever order, leave it alone', async () => {
    const { tokens, session, closed } = setUp();
    const admission = session.admit({});
    await tokens.answer(0, { ...ALICE, roles: ['viewer', 'reviewer'], agencies: ['a', 'b'] });
    await admission;
    const recheck = session.recheck();
    await tokens.answer(1, { ...ALICE, roles: ['reviewer', 'viewer'], agencies: ['b', 'a', 'b'] });
    await recheck;
    expect(closed).toEqual([]);
  });

  it('another one makes it ask again: the answer of before counts for nothing', async () => {
    const { tokens, session, closed } = await admitted();
    const rechecks = [session.recheck(), session.recheck(), session.recheck()];
    await tokens.answer(1, ALICE);
    await tokens.answer(2, REFUSED);
    await Promise.all(rechecks);
    expect([tokens.asked.length, closed]).toEqual([3, [[4403, 'the token was revoked', 'unknown token']]]);
    // And after that it asks anew.
    void session.recheck();
    expect(tokens.asked).toHaveLength(4);
  });

  it('the socket may go meanwhile', async () => {
    const { tokens, session, closed } = await admitted();
    const recheck = session.recheck();
    session.stop();
    await tokens.answer(1, REFUSED);
    await recheck;
    expect(closed).toEqual([]);
  });

  it('it is asked for as the token that came then, of which the tokens may have heard since', async () => {
    const { tokens, session } = await admitted();
    const since = performance.now();
    void session.recheck();
    const [first, again] = tokens.asked;
    expect(first?.cameAtMs).toBeLessThanOrEqual(since);
    expect([again?.authorization, again?.cameAtMs]).toEqual(['Bearer x', first?.cameAtMs]);
  });

  it('the check may break: whoever asked hears of it', async () => {
    const { tokens, session } = await admitted();
    const recheck = session.recheck();
    tokens.asked[1]?.fail(new Error('broken'));
    await expect(recheck).rejects.toThrow('broken');
  });
});
