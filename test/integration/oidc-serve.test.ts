/** The built service with an OpenID provider alone, as it is run where others can reach it. */
import { contractsFolder } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { applied, faultContract, faultMessages } from '../support/fault-feed';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { AUDIENCE, makeKey, startOidcProvider } from '../support/oidc-provider';
import { startProduct } from '../support/process';
import { until } from '../support/wait';

it.each(['all', 'consumer'])(
  'decides while the provider is away, and answers its bearers when it comes: %s',
  async (role) => {
    const [database, broker, provider] = await Promise.all([
      createMigratedDatabase(),
      startMosquitto(),
      startOidcProvider(makeKey('first')),
    ]);
    const all = await provider.token({ claims: { replay: { roles: ['viewer'], agencies: '*' } } });
    const scoped = await provider.token({ claims: { replay: { roles: ['viewer'], agencies: ['county'] } } });
    await provider.stop();
    const app = startProduct(['serve', '--role', role], {
      env: {
        DATABASE_URL: database.url,
        MQTT_URL: broker.url,
        CONTRACTS_DIR: contractsFolder([faultContract()]),
        HOST: '0.0.0.0',
        PORT: '0',
        OIDC_ISSUER: provider.issuer,
        OIDC_AUDIENCE: AUDIENCE,
        OIDC_ROLES_CLAIM: '/replay/roles',
        OIDC_AGENCIES_CLAIM: '/replay/agencies',
        LEASE_TTL_SECONDS: '2',
        LOG_LEVEL: 'debug',
      },
    });
    const [, port] = await app.waitForLine(/"url":"http:\/\/0\.0\.0\.0:(\d+)/);
    await app.waitForLine(/"msg":"subscribed"/);
    await publishAll(broker.url, faultMessages(1, 1, 2));
    await applied(database.url, 2);

    const get = async (path: string, token?: string) => {
      const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      return { status: response.status, text: await response.text(), retryAfter: response.headers.get('retry-after') };
    };
    expect(await get('/readyz', all)).toMatchObject({
      status: 200,
      text: expect.not.stringContaining('oidc') as string,
    });
    expect(await get('/metrics', all)).toMatchObject({ status: 503, retryAfter: '5' });
    expect(await get('/metrics')).toMatchObject({ status: 401, retryAfter: null });

    await provider.start();
    await until(async () => (await get('/metrics', all)).status === 200, { what: 'the keys' });
    expect((await get('/metrics', all)).text).toContain('replay_ledger_ledger_entries{feed="county-fire"} 2');
    expect((await get('/metrics', all)).text).toContain('replay_ledger_oidc_keys_unavailable 0');
    for (const token of [scoped, `${all}x`, 'rl_unknown']) expect((await get('/metrics', token)).status).toBe(401);
    const whole = expect.stringContaining('"oidc":{"keys":"fresh"}') as string;
    const answers = [await get('/readyz', all), await get('/readyz', scoped), await get('/readyz')];
    // A process without API has no details for anybody, as it has no other use for tokens.
    expect(answers.map(({ text }) => text)).toEqual(
      role === 'all' ? [whole, '{"ready":true}\n', '{"ready":true}\n'] : Array(3).fill('{"ready":true}'),
    );
    for (const reason of ['no token', 'no keys', 'may not read metrics', 'wrong signature', 'unknown token, no JWT']) {
      expect(app.stderr).toMatch(new RegExp(`"reason":"${reason}".*"msg":"request refused"`));
    }
    await provider.stop();
    expect((await get('/metrics', all)).status).toBe(200);
    expect((await app.stop()).code).toBe(0);
    for (const token of [all, scoped]) expect(app.stdout + app.stderr).not.toContain(token);
  },
);

it('says what is wrong with its variables, and starts nothing', async () => {
  const app = startProduct(['serve'], { env: { HOST: '0.0.0.0', OIDC_ISSUER: 'http://id.example' } });
  expect((await app.exit).code).toBe(1);
  for (const problem of ['OIDC_AUDIENCE: is set together', 'OIDC_ISSUER: must be a URL']) {
    expect(app.stderr).toContain(problem);
  }
});
