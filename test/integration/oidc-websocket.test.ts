/** Access tokens of a real OpenID provider on sockets, which live longer than tokens and keys. */
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import type { Bearer } from '../../src/ops/bearer';
import { TokenFile } from '../../src/ops/token-file';
import { caseTitle } from '../support/case-run';
import { onCleanup } from '../support/cleanup';
import { makeKey } from '../support/oidc-provider';
import type { OidcProvider, TokenWishes } from '../support/oidc-provider';
import { b, startPipeline } from '../support/pipeline';
import { sleep, until } from '../support/wait';
import { makeTokens, rawSocket, rawSubscriber, sequences } from './access-fixture';
import type { RawSocket } from './access-fixture';
import { startTestApi } from './api-fixture';
import type { TestApi } from './api-fixture';
import { publicJwk, startKeyServer, tokenOf } from './oidc-documents';
import { setUpOidc, startOidcApi } from './oidc-fixture';

const ROLES = { roles: ['viewer'] };

const subscriber = async (app: TestApi, provider: OidcProvider, wishes: TokenWishes = {}) =>
  rawSubscriber(app, `Bearer ${await provider.token({ claims: ROLES, ...wishes })}`);

async function initialise(app: TestApi, token: string): Promise<RawSocket> {
  const raw = await rawSocket(app);
  raw.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
  await until(() => raw.messages.length > 0 || raw.closed() !== null, { what: 'an answer' });
  return raw;
}

describe('a socket with a token of the provider', () => {
  it(caseTitle('C101'), async () => {
    const { app, path, provider } = await setUpOidc();
    const brief = await provider.token({ claims: ROLES, seconds: 3 });
    const expiring = await rawSubscriber(app, `Bearer ${brief}`);
    const staying = await subscriber(app, provider);
    await path.deliver(b(7));
    await until(() => sequences(expiring).length === 1, { what: 'an event before the end' });
    expect(await expiring.end()).toEqual([4403, 'the token has expired']);
    await path.deliver(b(8));
    await until(() => sequences(staying).length === 2, { what: 'the event of who may read on' });
    expect([sequences(expiring), sequences(staying)]).toEqual([['7'], ['7', '8']]);
    expect((await initialise(app, brief)).closed()?.[0]).toBe(4403);
    // A second token.
    const token = await provider.token({ claims: ROLES });
    staying.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
    expect((await staying.end())[0]).toBe(4429);
    await until(() => app.api.stats().subscriptions === 0 && app.api.stats().sockets === 0, { what: 'the release' });
  });

  it('is scoped, and refused like a request', async () => {
    const { app, path, provider } = await setUpOidc({ settings: { agencies: ['agencies'] } });
    const north = await subscriber(app, provider, { claims: { ...ROLES, agencies: ['NFD'] } });
    const all = await subscriber(app, provider, { claims: { ...ROLES, agencies: ['*'] } });
    await path.deliver(b(2, { agency: 'SFD' }), b(3));
    await until(() => sequences(all).length === 2 && sequences(north).length === 1, { what: 'the events' });
    expect([sequences(all), sequences(north)]).toEqual([['2', '3'], ['3']]);
    for (const claims of [ROLES, { agencies: ['NFD'] }]) {
      const refused = await initialise(app, await provider.token({ claims }));
      expect([refused.closed(), refused.messages]).toEqual([[4403, 'Forbidden'], []]);
    }
  });

  it('is closed when its key is withdrawn, and stays when another one comes', async () => {
    const { app, path, provider, key } = await setUpOidc({ timing: { refreshMs: 200 } });
    const old = await subscriber(app, provider);
    const second = makeKey('second');
    await provider.publish(second, key);
    const fresh = await subscriber(app, provider);
    await sleep(500);
    expect(old.closed()).toBeNull();
    await provider.publish(second);
    expect(await old.end(5_000)).toEqual([4403, 'the token was revoked']);
    await path.deliver(b(4));
    await until(() => sequences(fresh).length === 1, { what: 'the event' });
    expect([sequences(old), sequences(fresh), fresh.closed()]).toEqual([[], ['4'], null]);
  });

  it('is closed at once then, though the provider say nothing any more', async () => {
    const [key, second] = [makeKey('first'), makeKey('second')];
    const provider = await startKeyServer(publicJwk(key));
    const { issuer } = provider;
    const path = await startPipeline();
    const timing = { refreshMs: 300, timeoutMs: 3_600_000 };
    const { app, oidc } = await startOidcApi(path, { issuer, timing });
    const open = await rawSubscriber(app, `Bearer ${tokenOf(issuer, key)}`);
    // After the keys without it were read.
    oidc.onChange(() => provider.hold());
    provider.publish(publicJwk(second));
    expect(await open.end(10_000)).toEqual([4403, 'the token was revoked']);
    const cut = app.log.find(({ message }) => message === 'socket cut off');
    expect(cut?.facts).toMatchObject({ code: 4403, reason: 'the token was revoked', cause: 'unknown key' });
  });

  it('is told to come back while its key is not known, and may be new', async () => {
    const [key, second] = [makeKey('first'), makeKey('second')];
    const provider = await startKeyServer(publicJwk(key));
    const { issuer } = provider;
    const { app } = await startOidcApi(await startPipeline(), { issuer });
    // Which uses up the question that unknown keys are good for.
    expect((await initialise(app, tokenOf(issuer, key, 'forged'))).closed()).toEqual([4403, 'Forbidden']);
    provider.publish(publicJwk(key), publicJwk(second));
    const early = await initialise(app, tokenOf(issuer, second));
    expect(early.closed()).toEqual([1013, 'tokens cannot be checked at the moment']);
    expect(app.log.map(({ message, facts }) => [message, facts.reason, facts.cause])).toEqual([
      ['request refused', 'unknown key', undefined],
      ['socket cut off', 'tokens cannot be checked at the moment', 'unknown key'],
    ]);
  });

  it('is closed when the keys are too old, so that clients come back with the same token', async () => {
    const { app, provider } = await setUpOidc({ timing: { refreshMs: 50, maxAgeMs: 1_000 } });
    const token = await provider.token({ claims: ROLES });
    const open = await rawSubscriber(app, `Bearer ${token}`);
    await provider.stop();
    expect(await open.end(10_000)).toEqual([1013, 'the token cannot be checked any more']);
    const early = await initialise(app, token);
    expect([early.closed(), early.messages]).toEqual([[1013, 'tokens cannot be checked at the moment'], []]);

    const client = createClient({
      url: app.api.url.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: 100,
      retryWait: () => sleep(50),
    });
    onCleanup(() => client.dispose());
    const answer = client.iterate({ query: '{ feeds { name } }' }).next();
    await sleep(300);
    await provider.start();
    expect(await answer).toMatchObject({ value: { data: { feeds: [{ name: 'cad-north' }] } } });
  });

  it('may go, or say what it may not, while its token is being checked', async () => {
    const { app, provider, another } = await setUpOidc();
    const init = {
      type: 'connection_init',
      payload: { authorization: `Bearer ${await provider.token({ claims: ROLES })}` },
    };
    provider.freeze();
    const { app: waiting } = await another({ timing: { timeoutMs: 2_000 } });
    const [gone, twice, hasty] = [await rawSocket(waiting), await rawSocket(waiting), await rawSocket(waiting)];
    for (const raw of [gone, twice, hasty]) raw.send(init);
    await sleep(100);
    gone.socket.terminate();
    twice.send(init);
    expect((await twice.end())[0]).toBe(4429);
    hasty.send({ id: '1', type: 'subscribe', payload: { query: '{ feeds { name } }' } });
    expect((await hasty.end())[0]).toBe(4401);
    await until(() => waiting.api.stats().sockets === 0, { what: 'the sockets to be gone' });
    provider.resume();
    const token = init.payload.authorization.slice('Bearer '.length);
    await until(async () => (await initialise(waiting, token)).messages.length === 1, { what: 'the keys' });
    expect([...twice.messages, ...hasty.messages]).toEqual([]);
    expect(waiting.log.filter(({ level }) => level === 'error')).toEqual([]);
    expect((await initialise(app, token)).messages).toEqual([{ type: 'connection_ack' }]);
  });

  it('is closed when its check breaks', async () => {
    const path = await startPipeline();
    const alice: Bearer = { name: 'alice', roles: ['viewer'], agencies: null, expiresAtMs: null };
    let authenticate = () => Promise.resolve(alice);
    let change = () => undefined as void;
    const tokens = {
      authenticate: () => authenticate(),
      onChange: (listener: () => void) => {
        change = listener;
        return () => undefined;
      },
    };
    const app = await startTestApi({ database: path.database, wakeUps: path.wakeUps, tokens });
    const raw = await rawSubscriber(app, 'Bearer x');
    authenticate = () => Promise.reject(new Error('broken'));
    change();
    expect(await raw.end()).toEqual([1011, 'internal error']);
    expect((await (await initialise(app, 'x')).end())[0]).toBe(1011);
  });

  it('is not disturbed by the token file beside it, nor the other way round', async () => {
    const tokens = makeTokens();
    const filed = tokens.add({ name: 'filed' });
    const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    const file = new TokenFile(tokens.path, quiet, 20);
    onCleanup(() => file.close());
    const { app, provider, key } = await setUpOidc({ file, timing: { refreshMs: 200 } });
    const [issued, stored] = [await subscriber(app, provider), await rawSubscriber(app, `Bearer ${filed}`)];
    await provider.publish(makeKey('second'), key);
    tokens.add({ name: 'another' });
    await sleep(500);
    expect([issued.closed(), stored.closed()]).toEqual([null, null]);
    tokens.revoke('filed');
    expect(await stored.end()).toEqual([4403, 'the token was revoked']);
    expect(issued.closed()).toBeNull();
  });
});
