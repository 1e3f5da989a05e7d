/** The keys of a provider: rotated, withdrawn, away, and not what they should be. */
import { makeKey, partsOf, signToken, startOidcProvider } from '../support/oidc-provider';
import type { OidcProvider, TokenWishes } from '../support/oidc-provider';
import { startPipeline } from '../support/pipeline';
import type { TestPipeline } from '../support/pipeline';
import { sleep, until } from '../support/wait';
import { DISCOVERY, documents, ok, publicJwk, startKeyServer, tokenOf } from './oidc-documents';
import type { Reply } from './oidc-documents';
import { reasons, setUpOidc, startOidcApi } from './oidc-fixture';
import type { ApiOfTokens } from './oidc-fixture';

const VIEWER: TokenWishes = { claims: { roles: ['viewer'] } };

let path: TestPipeline;
beforeAll(async () => {
  path = await startPipeline();
});

const statusOf = async (api: ApiOfTokens, token: string) => (await api.ask(token)).status;
const eventually = (api: ApiOfTokens, token: string, status: number) =>
  until(async () => (await statusOf(api, token)) === status, { what: `the answer ${status}`, timeoutMs: 10_000 });

describe('rotation', () => {
  it('takes a token of a new key at once, and refuses a withdrawn key after the next refresh', async () => {
    const setting = await setUpOidc();
    const { provider, key } = setting;
    const refreshing = await setting.another({ timing: { refreshMs: 300, cooldownMs: 3_600_000 } });
    const old = await provider.token(VIEWER);
    for (const api of [setting, refreshing]) expect(await statusOf(api, old)).toBe(200);
    const second = makeKey('second');
    await provider.publish(second, key);
    const fresh = await provider.token(VIEWER);
    expect(partsOf(fresh).header).toMatchObject({ kid: 'second' });
    for (const token of [fresh, old]) expect(await statusOf(setting, token)).toBe(200);
    await provider.publish(second);
    await eventually(refreshing, old, 401);
    expect(await statusOf(refreshing, fresh)).toBe(200);
    // The same name for another key.
    await provider.publish(makeKey('second'));
    await eventually(refreshing, fresh, 401);
    expect(await statusOf(refreshing, await provider.token(VIEWER))).toBe(200);
    expect(reasons(refreshing)).toEqual(expect.arrayContaining(['unknown key', 'wrong signature']));
  });

  it('asks the provider once in a while at most, however many unknown keys are named, and calls none wrong', async () => {
    const [key, next] = [makeKey('first'), makeKey('next')];
    const provider = await startKeyServer(publicJwk(key));
    const { issuer, fetches } = provider;
    const api = await startOidcApi(path, { issuer, timing: { cooldownMs: 2_000 } });
    expect(await statusOf(api, tokenOf(issuer, key))).toBe(200);
    expect(fetches()).toBe(1);
    // Whoever comes after the provider was asked may bear a token of a newer key.
    const forged = Array.from({ length: 20 }, (_, number) => tokenOf(issuer, key, `forged-${number}`));
    const answers = await Promise.all(forged.map((token) => statusOf(api, token)));
    expect(answers.filter((status) => status !== 503)).toContain(401);
    expect(answers.every((status) => [401, 503].includes(status))).toBe(true);
    provider.publish(publicJwk(key), publicJwk(next));
    for (const token of [tokenOf(issuer, key, 'forged'), tokenOf(issuer, next)]) {
      expect(await statusOf(api, token)).toBe(503);
    }
    expect(fetches()).toBe(2);
    await sleep(2_100);
    expect(await statusOf(api, tokenOf(issuer, key, 'forged'))).toBe(401);
    expect(fetches()).toBe(3);
    for (const known of [key, next]) expect(await statusOf(api, tokenOf(issuer, known))).toBe(200);
    expect(fetches()).toBe(3);
    expect(new Set(reasons(api))).toEqual(new Set(['unknown key']));
  });

  it('asks again for a token that came while the provider was telling of its keys of before', async () => {
    const [key, next] = [makeKey('first'), makeKey('next')];
    const provider = await startKeyServer(publicJwk(key));
    const { issuer, fetches } = provider;
    const api = await startOidcApi(path, { issuer, timing: { refreshMs: 200 } });
    expect(await statusOf(api, tokenOf(issuer, key))).toBe(200);
    const release = provider.hold();
    const before = fetches();
    await until(() => fetches() > before, { what: 'a refresh' });
    provider.publish(publicJwk(key), publicJwk(next));
    const answer = statusOf(api, tokenOf(issuer, next));
    await sleep(200);
    release();
    expect(await answer).toBe(200);
  });

  it('is one only where the keys are others, in whatever order they come', async () => {
    const keys = ['first', 'second', 'third'].map((kid) => publicJwk(makeKey(kid)));
    const provider = await startKeyServer(...keys);
    const { oidc, said } = await startOidcApi(path, { issuer: provider.issuer, timing: { refreshMs: 20 } });
    await until(() => oidc.state === 'fresh', { what: 'the keys' });
    let changes = 0;
    oidc.onChange(() => (changes += 1));
    const turned = async (order: readonly object[]) => {
      provider.publish(...order);
      const before = provider.fetches();
      await until(() => provider.fetches() > before + 2, { what: 'refreshes' });
    };
    await turned([...keys].reverse());
    await turned(keys.map((key) => Object.fromEntries(Object.entries(key).reverse())));
    expect(changes).toBe(0);
    await turned(keys.slice(1));
    expect(changes).toBe(1);
    const read = said.filter(({ message }) => message === 'keys of the OpenID provider read');
    expect(read.map(({ facts }) => [facts.keys, facts.usable])).toEqual([
      [3, 3],
      [2, 2],
    ]);
  });
});

describe('a provider that is away', () => {
  it('at the start keeps nobody but its own bearers out, and only until it comes', async () => {
    const setting = await setUpOidc();
    const token = await setting.provider.token(VIEWER);
    await setting.provider.stop();
    const late = await setting.another({});
    const response = await fetch(late.app.api.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: '{"query":"{ feeds { name } }"}',
    });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(response.headers.get('www-authenticate')).toBeNull();
    expect(await response.json()).toMatchObject({
      errors: [{ message: 'tokens cannot be checked at the moment', extensions: { code: 'SERVICE_UNAVAILABLE' } }],
    });
    expect(late.oidc.state).toBe('none');
    // What is no token at all is refused by everybody.
    expect(await statusOf(late, 'rl_x')).toBe(401);
    await setting.provider.start();
    await eventually(late, token, 200);
    expect(late.oidc.state).toBe('fresh');
    expect(late.said.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      'no keys of the OpenID provider yet: its tokens cannot be checked',
    ]);
  });

  it('later is not missed, until its keys are too old', async () => {
    const setting = await setUpOidc({ timing: { refreshMs: 50, maxAgeMs: 4_000, cooldownMs: 0 } });
    const { provider, key, oidc } = setting;
    const token = await provider.token(VIEWER);
    const { header, claims } = partsOf(token);
    expect(await statusOf(setting, token)).toBe(200);
    await provider.stop();
    await until(() => oidc.state === 'stale', { what: 'a refresh that fails' });
    expect(await statusOf(setting, token)).toBe(200);
    // Perhaps a new one: nobody can tell now.
    expect(await statusOf(setting, signToken({ ...header, kid: 'new' }, claims, key))).toBe(503);
    expect(await statusOf(setting, signToken(header, { ...claims, exp: 1 }, key))).toBe(401);
    await eventually(setting, token, 503);
    await until(() => setting.said.some(({ level }) => level === 'error'), { what: 'the log' });
    await provider.start();
    await eventually(setting, token, 200);
    expect(setting.said.filter(({ level }) => level !== 'info').map(({ message }) => message)).toEqual([
      'the keys of the OpenID provider cannot be read; those of before stay',
      'keys of the OpenID provider are too old: its tokens cannot be checked',
    ]);
  });

  it('and says nothing does not put the end of its keys off', async () => {
    const key = makeKey('first');
    const provider = await startKeyServer(publicJwk(key));
    const { oidc } = await startOidcApi(path, {
      issuer: provider.issuer,
      timing: { refreshMs: 100, maxAgeMs: 1_000, timeoutMs: 3_600_000 },
    });
    await until(() => oidc.state === 'fresh', { what: 'the keys' });
    let told = 0;
    oidc.onChange(() => (told += 1));
    provider.hold();
    await until(() => told > 0, { what: 'that they are too old' });
    expect(oidc.state).toBe('none');
  });

  it('and does not say so holds a request for a bounded time', async () => {
    const setting = await setUpOidc();
    const token = await setting.provider.token(VIEWER);
    expect(await statusOf(setting, token)).toBe(200);
    setting.provider.freeze();
    const late = await setting.another({ timing: { timeoutMs: 200 } });
    expect(await statusOf(late, token)).toBe(503);
    expect(await statusOf(setting, token)).toBe(200);
    // Whoever comes before the first answer waits for it.
    const patient = await setting.another({});
    const answer = statusOf(patient, token);
    await sleep(100);
    setting.provider.resume();
    expect(await answer).toBe(200);
    await eventually(late, token, 200);
  });
});

describe('documents that are not what they should be', () => {
  let provider: OidcProvider;
  beforeAll(async () => {
    provider = await startOidcProvider(makeKey('first'));
  });

  const discoveryOr = (url: string, own: string, keys: object) =>
    ok(url === DISCOVERY ? { issuer: own, jwks_uri: `${own}/jwks` } : keys);
  const UNUSABLE = [
    publicJwk(makeKey('short', 'RS256', 1024)),
    { kty: 'RSA', n: '!!', e: 'AQAB', kid: 'broken', alg: 'RS256' },
    { ...publicJwk(makeKey('encrypts')), use: 'enc' },
    makeKey('private').jwk,
    { kty: 'oct', k: 'c2VjcmV0', kid: 'shared', alg: 'HS256' },
  ];
  const attempts: [problem: string, answer: (url: string, own: string, real: string) => Reply][] = [
    ['that of another issuer', (_, own, real) => ok({ issuer: real, jwks_uri: `${own}/jwks` })],
    ['that of another issuer', (_, own) => ok({ issuer: `${own}/`, jwks_uri: `${own}/jwks` })],
    ['no https:// URL', (_, own) => ok({ issuer: own, jwks_uri: 'http://keys.example/jwks' })],
    ['no https:// URL', (_, own) => ok({ issuer: own, jwks_uri: 'file:///etc/passwd' })],
    ['no https:// URL', (_, own) => ok({ issuer: own })],
    ['answered 500', () => ({ status: 500 })],
    ['did not answer JSON', () => ({ status: 200, body: '<html>' })],
    ['did not answer a JSON object', () => ok([])],
    ['answered more than 262144 bytes', () => ok({ filler: 'x'.repeat(300_000) })],
    ['fetch failed', (url, _, real) => ({ status: 302, headers: { location: `${real}${url}` } })],
    ['JSON Web Key Set malformed', (url, own) => discoveryOr(url, own, {})],
    ['none of the 0 keys', (url, own) => discoveryOr(url, own, { keys: [] })],
    ['none of the 5 keys', (url, own) => discoveryOr(url, own, { keys: UNUSABLE })],
  ];

  it.each(attempts)('give no keys: %s', async (problem, answer) => {
    const served = await documents((url) => answer(url, served.issuer, provider.issuer));
    const api = await startOidcApi(path, { issuer: served.issuer });
    expect(await statusOf(api, await provider.token(VIEWER))).toBe(503);
    const [warning] = api.said.filter(({ level }) => level === 'warn');
    expect(String(warning?.facts.err)).toContain(problem);
    // It is asked again, and mends itself.
    const { header, claims } = partsOf(await provider.token(VIEWER));
    const key = makeKey('own');
    served.answer = (url) =>
      ok(
        url === DISCOVERY
          ? { issuer: served.issuer, jwks_uri: `${served.issuer}/keys` }
          : { keys: [{ ...key.publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig' }] },
      );
    await eventually(api, signToken({ ...header, kid: 'own' }, { ...claims, iss: served.issuer }, key), 200);
  });

  it('keep no other key from being used', async () => {
    const [key, other] = [makeKey('good'), makeKey('other')];
    const [short, private_] = [makeKey('short', 'RS256', 1024), makeKey('private')];
    const provider = await startKeyServer(...UNUSABLE.slice(1), publicJwk(short), private_.jwk, publicJwk(key));
    const { issuer } = provider;
    const api = await startOidcApi(path, { issuer });
    // Without a name each that fits is tried.
    for (const kid of [key.kid, null]) expect(await statusOf(api, tokenOf(issuer, key, kid))).toBe(200);
    expect(await statusOf(api, tokenOf(issuer, other, null))).toBe(401);
    expect(await statusOf(api, tokenOf(issuer, key, null, { aud: 'other' }))).toBe(401);
    for (const kid of ['short', 'broken', 'private']) expect(await statusOf(api, tokenOf(issuer, key, kid))).toBe(401);
    provider.publish(publicJwk(short), UNUSABLE[1] ?? {}, publicJwk(makeKey('curve', 'ES256')));
    // A key that is new makes it read them.
    expect(await statusOf(api, tokenOf(issuer, key, 'new'))).toBe(401);
    expect(await statusOf(api, tokenOf(issuer, key, null))).toBe(401);
    expect(reasons(api)).toEqual([
      'wrong signature',
      'wrong audience',
      ...Array<string>(3).fill('unusable key'),
      'unknown key',
      'unusable key',
    ]);
    expect(api.said[0]?.facts).toEqual({ issuer, keys: 7, usable: 1 });
  });

  it('a slash at the end of an issuer is part of its name, and not of the way', async () => {
    const asked: string[] = [];
    const served = await documents((url) => {
      asked.push(url);
      const keys = [publicJwk(makeKey('first'))];
      return ok({ issuer: `${served.issuer}/realm/`, jwks_uri: `${served.issuer}/keys`, keys });
    });
    const { oidc } = await startOidcApi(path, { issuer: `${served.issuer}/realm/` });
    await until(() => oidc.state === 'fresh', { what: 'the keys' });
    expect(asked).toEqual([`/realm${DISCOVERY}`, '/keys']);
  });
});
