import { Refusal } from '../../src/ops/bearer';
import { ROLES } from '../../src/ops/roles';
import { b, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';
import { asking, lateRequest, makeTokens, openTokenFile } from './access-fixture';
import { OPERATIONS, startTestApi, UUID } from './api-fixture';

async function setUp() {
  const path = await startPipeline();
  await path.deliver(b(1), b(1, { agency: 'SFD' }), 'no JSON');
  const tokens = makeTokens();
  const someToken = tokens.add({ name: 'someone' });
  const app = await startTestApi({
    database: path.database,
    wakeUps: path.wakeUps,
    tokens: openTokenFile(tokens.path, 20),
  });
  app.statements();
  return { path, tokens, app, someToken };
}

const UPDATE = `mutation { updateDedupPolicy(input: { feed: "cad-north", expectedVersion: 1, reason: "drill",
  policy: { maxEntries: 99 } }) { policy { version } } }`;
const QUERY = '{ decisions { nodes { position } } }';

describe('tokens over HTTP', () => {
  it('asks for one, before anything else is looked at', async () => {
    const { app, someToken } = await setUp();
    const attempts: [string | undefined, string][] = [
      [undefined, 'Bearer'],
      ['', 'Bearer error="invalid_token"'],
      ['Bearer', 'Bearer error="invalid_token"'],
      ['Bearer rl_unknown', 'Bearer error="invalid_token"'],
      [`Basic ${Buffer.from(`someone:${someToken}`).toString('base64')}`, 'Bearer error="invalid_token"'],
      [`Bearer ${someToken}x`, 'Bearer error="invalid_token"'],
      [`Bearer ${someToken} ${someToken}`, 'Bearer error="invalid_token"'],
    ];
    const bodies = [JSON.stringify({ query: QUERY }), '{', JSON.stringify({ query: '{'.repeat(100_000) })];
    for (const [authorization, challenge] of attempts) {
      for (const body of bodies) {
        const response = await fetch(app.api.url, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) },
        });
        expect([authorization, response.status]).toEqual([authorization, 401]);
        expect(response.headers.get('www-authenticate')).toBe(challenge);
        expect(response.headers.get('cache-control')).toBe('no-store');
        expect(await response.json()).toEqual({
          errors: [
            {
              message: 'a valid token is needed',
              extensions: { code: 'UNAUTHENTICATED', correlationId: expect.stringMatching(UUID) as string },
            },
          ],
        });
      }
    }
    expect(app.statements()).toBe(0);
    expect(JSON.stringify(app.log)).not.toContain(someToken);
    const get = `${app.api.url}?query=${encodeURIComponent(QUERY)}`;
    const preflight = { 'apollo-require-preflight': '1' };
    expect((await fetch(get, { headers: preflight })).status).toBe(401);
    const bearing = { ...preflight, authorization: `Bearer ${someToken}` };
    expect((await fetch(get, { headers: bearing })).status).toBe(200);
    // Never by what a log or a history would keep.
    expect((await fetch(`${get}&access_token=${someToken}`, { headers: preflight })).status).toBe(401);
  });

  it('takes one until it expires or is revoked, and a new one at once', async () => {
    const { app, tokens, someToken } = await setUp();
    const statusOf = async (token: string) => (await asking(app, token)(QUERY)).status;
    expect(await statusOf(someToken)).toBe(200);
    // Times in the file are whole seconds.
    const expiresAtMs = Math.ceil(Date.now() / 1000) * 1000 + 1000;
    const brief = tokens.add({ name: 'brief', expiresAtMs });
    await until(async () => (await statusOf(brief)) === 200, { what: 'the new token to be known' });
    await until(() => Date.now() >= expiresAtMs, { what: 'its end' });
    expect(await statusOf(brief)).toBe(401);
    tokens.revoke('someone');
    await until(async () => (await statusOf(someToken)) === 401, { what: 'the revocation' });
  });

  it('executes nothing for a token that is revoked while the body is on its way', async () => {
    const { app, tokens } = await setUp();
    const [leaving, staying] = [tokens.add({ name: 'leaving', role: 'admin' }), tokens.add({ name: 'staying' })];
    const statusOf = async (token: string) => (await asking(app, token)(QUERY)).status;
    await until(async () => (await statusOf(staying)) === 200, { what: 'the new tokens to be known' });
    const [refused, answered] = [await lateRequest(app, leaving, UPDATE), await lateRequest(app, staying, QUERY)];
    tokens.revoke('leaving');
    await until(async () => (await statusOf(leaving)) === 401, { what: 'the revocation' });
    expect([await refused.finish(), await answered.finish()]).toEqual([401, 200]);
    const { data } = await asking(app, staying)('{ adminLog(last: 9) { nodes { actor } } }');
    expect(JSON.stringify(data)).not.toContain('leaving');
  });

  it.each(ROLES)('shows payloads to those who may read them: %s', async (role) => {
    const { app, tokens } = await setUp();
    const token = tokens.add({ name: role, role });
    const ask = asking(app, token);
    await until(async () => (await ask(QUERY)).status === 200, { what: 'the token to be known' });
    const { data, errors = [] } = await ask(
      '{ decision(feed: "cad-north", position: 0) { sequence bytesDigest payload payloadText payloadBase64 } }',
    );
    const mayRead = role === 'reviewer' || role === 'admin';
    const text = mayRead ? b(1) : null;
    expect(data?.decision).toMatchObject({ sequence: '1', payloadText: text, payload: text && JSON.parse(text) });
    expect(data?.decision.payloadBase64).toBe(text && Buffer.from(text).toString('base64'));
    expect(errors.map(({ path, extensions }) => [path?.at(-1), extensions.code])).toEqual(
      mayRead ? [] : ['payload', 'payloadText', 'payloadBase64'].map((field) => [field, 'FORBIDDEN']),
    );
  });

  it('without a token file answers everybody who reaches the loopback address, in full', async () => {
    const path = await startPipeline();
    await path.deliver(b(1), 'no JSON');
    const app = await startTestApi({ database: path.database });
    const { decisions } = await app.data('{ decisions { nodes { payloadText } } }');
    expect(decisions.nodes).toEqual([{ payloadText: b(1) }, { payloadText: 'no JSON' }]);
  });
});

describe('what operators ask', () => {
  it('is alive and ready to everybody; metrics and details to those who may read whole feeds', async () => {
    const path = await startPipeline();
    const app = await startTestApi({
      database: path.database,
      operations: {
        ...OPERATIONS,
        readiness: () => Promise.resolve({ ready: true, details: { feeds: { 'cad-north': 'subscribed' } } }),
        mayRead: async (authorization) =>
          authorization === 'Bearer operator' ? 'granted' : new Refusal('refused', 'may not read metrics'),
      },
    });
    const get = async (where: string, authorization?: string, method = 'GET') => {
      const headers = authorization === undefined ? undefined : { authorization };
      const response = await fetch(app.api.url.replace('/graphql', where), { method, headers });
      return [response.status, (await response.text()).trim(), response.headers.get('www-authenticate')];
    };
    expect(await get('/healthz')).toEqual([200, '{"alive":true}', null]);
    expect(await get('/readyz')).toEqual([200, '{"ready":true}', null]);
    expect(await get('/readyz', 'Bearer x')).toEqual([200, '{"ready":true}', null]);
    expect((await get('/readyz', 'Bearer operator'))[1]).toContain('cad-north');
    expect(await get('/metrics', 'Bearer operator')).toEqual([200, 'up 1', null]);
    expect(await get('/metrics', 'Bearer operator', 'HEAD')).toEqual([200, '', null]);
    expect((await get('/metrics', 'Bearer operator', 'POST'))[0]).toBe(405);
    for (const authorization of [undefined, 'Bearer x']) {
      const [status, body, challenge] = await get('/metrics', authorization);
      expect([status, challenge]).toEqual([401, expect.stringMatching(/^Bearer/)]);
      expect(body).toContain('UNAUTHENTICATED');
      expect(body).not.toContain('up 1');
    }
    const refusal = { correlationId: expect.stringMatching(UUID) as string, code: 'UNAUTHENTICATED' };
    expect(app.log.filter(({ level }) => level === 'warn').map(({ facts }) => facts)).toEqual(
      Array(2).fill({ ...refusal, reason: 'may not read metrics', method: 'GET', origin: undefined }),
    );
  });
});
