/** The keys of a provider: rotated, withdrawn, away, and not what they should be. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { makeKey, partsOf, signToken, startOidcProvider } from '../support/oidc-provider';
import type { OidcProvider, TokenWishes } from '../support/oidc-provider';
import { startPipeline } from '../support/pipeline';
import type { TestPipeline } from '../support/pipeline';
import { sleep, until } from '../support/wait';
import { reasons, setUpOidc, startOidcApi } from './oidc-fixture';
import type { ApiOfTokens } from './oidc-fixture';

const VIEWER: TokenWishes = { claims: { roles: ['viewer'] } };

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
    expect(reasons(refreshing.said)).toEqual(expect.arrayContaining(['unknown key', 'wrong signature']));
  });

  it('asks the provider once in a while at most, however many unknown keys are named', async () => {
    const { provider, path, key } = await setUpOidc();
    const log: string[] = [];
    const counted = await documents(async (url) => {
      log.push(url);
      const text = await (await fetch(`${provider.issuer}${url}`)).text();
      return { status: 200, body: text.replaceAll(provider.issuer, counted.issuer) };
    });
    const api = await startOidcApi(path, { issuer: counted.issuer, timing: { cooldownMs: 2_000 } });
    const { header, claims } = partsOf(await provider.token(VIEWER));
    const signed = (kid: string) => signToken({ ...header, kid }, { ...claims, iss: counted.issuer }, key);
    expect(await statusOf(api, signed('first'))).toBe(200);
    const fetches = () => log.filter((url) => url === '/jwks').length;
    expect(fetches()).toBe(1);
    const forged = Array.from({ length: 20 }, (_, number) => signed(`forged-${number}`));
    expect(await Promise.all(forged.map((token) => statusOf(api, token)))).toEqual(forged.map(() => 401));
    expect(await statusOf(api, signed('forged'))).toBe(401);
    expect(fetches()).toBe(2);
    await sleep(2_100);
    expect(await statusOf(api, signed('forged'))).toBe(401);
    expect(fetches()).toBe(3);
    expect(await statusOf(api, signed('first'))).toBe(200);
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

interface Reply {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Documents {
  readonly issuer: string;
  answer: (url: string) => Reply | Promise<Reply>;
}

/** A server that answers what it is told to, as no provider would. */
async function documents(answer: Documents['answer']): Promise<Documents> {
  const port = await freePort();
  const served: Documents = { issuer: `http://127.0.0.1:${port}`, answer };
  const server: Server = createServer((request: IncomingMessage, response: ServerResponse) => {
    void Promise.resolve(served.answer(request.url ?? '')).then(({ status, body, headers }) => {
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return served;
}

describe('documents that are not what they should be', () => {
  let path: TestPipeline;
  let provider: OidcProvider;
  beforeAll(async () => {
    [path, provider] = await Promise.all([startPipeline(), startOidcProvider(makeKey('first'))]);
  });

  const DISCOVERY = '/.well-known/openid-configuration';
  const ok = (value: unknown): Reply => ({ status: 200, body: JSON.stringify(value) });
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
    ['JSON Web Key Set malformed', (url, own) => ok(url === DISCOVERY ? { issuer: own, jwks_uri: `${own}/jwks` } : {})],
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

  it('a slash at the end of an issuer is part of its name, and not of the way', async () => {
    const asked: string[] = [];
    const served = await documents((url) => {
      asked.push(url);
      return ok({ issuer: `${served.issuer}/realm/`, jwks_uri: `${served.issuer}/keys`, keys: [] });
    });
    const { oidc } = await startOidcApi(path, { issuer: `${served.issuer}/realm/` });
    await until(() => oidc.state === 'fresh', { what: 'the keys' });
    expect(asked).toEqual([`/realm${DISCOVERY}`, '/keys']);
  });
});
