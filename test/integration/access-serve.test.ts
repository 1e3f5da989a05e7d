/** The built service with a token file, as it is run where others can reach it. */
import { WebSocket } from 'ws';
import { createClient } from 'graphql-ws';
import { contractsFolder } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { applied, faultContract, faultMessages } from '../support/fault-feed';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { withClient } from '../support/postgres';
import { startProduct } from '../support/process';
import { makeTokens } from './access-fixture';
import type { GraphqlError } from './api-fixture';

it('listens on every address with a token file alone, and then answers bearers alone', async () => {
  const [database, broker] = [await createMigratedDatabase(), await startMosquitto()];
  const tokens = makeTokens();
  const all = tokens.add({ name: 'all' });
  const scoped = tokens.add({ name: 'scoped', agencies: ['county'] });
  const env = {
    DATABASE_URL: database.url,
    MQTT_URL: broker.url,
    CONTRACTS_DIR: contractsFolder([faultContract()]),
    HOST: '0.0.0.0',
    PORT: '0',
    LEASE_TTL_SECONDS: '2',
    LOG_LEVEL: 'debug',
  };
  const open = startProduct(['serve'], { env });
  expect((await open.exit).code).toBe(1);
  expect(open.stderr).toContain('set API_TOKENS_FILE');

  const app = startProduct(['serve'], { env: { ...env, API_TOKENS_FILE: tokens.path } });
  const [, port] = await app.waitForLine(/"url":"http:\/\/0\.0\.0\.0:(\d+)\/graphql"/);
  await app.waitForLine(/"msg":"subscribed"/);
  const url = `http://127.0.0.1:${port}`;
  await publishAll(broker.url, faultMessages(1, 1, 2));
  await applied(database.url, 2);

  const ask = async (query: string, token?: string): Promise<[number, { data?: unknown; errors?: GraphqlError[] }]> => {
    const headers = new Headers({ 'content-type': 'application/json' });
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    return [response.status, (await response.json()) as { data?: unknown; errors?: GraphqlError[] }];
  };
  const statusOf = async (path: string, token?: string) => {
    const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}${path}`, { headers });
    return [response.status, await response.text()] as const;
  };
  expect((await ask('{ feeds { name } }'))[0]).toBe(401);
  expect(await ask('{ feeds { name } }', all)).toEqual([200, { data: { feeds: [{ name: 'county-fire' }] } }]);
  expect(await statusOf('/healthz')).toEqual([200, '{"alive":true}\n']);
  expect(await statusOf('/readyz')).toEqual([200, '{"ready":true}\n']);
  expect((await statusOf('/readyz', scoped))[1]).not.toContain('county-fire');
  expect((await statusOf('/readyz', all))[1]).toContain('county-fire');
  expect((await statusOf('/metrics'))[0]).toBe(401);
  expect((await statusOf('/metrics', scoped))[0]).toBe(401);
  const [status, metrics] = await statusOf('/metrics', all);
  expect(status).toBe(200);
  expect(metrics).toContain('replay_ledger_ledger_entries{feed="county-fire"} 2');

  // The same over a socket; `tail` is a client of it.
  const nobody = createClient({
    url: url.replace('http', 'ws') + '/graphql',
    webSocketImpl: WebSocket,
    retryAttempts: 0,
  });
  await expect(nobody.iterate({ query: '{ feeds { name } }' }).next()).rejects.toMatchObject({ code: 4403 });
  const tail = startProduct(['tail', '--url', `${url}/graphql`]);
  expect((await tail.exit).code).toBe(1);
  expect(tail.stderr).toContain('closed with 4403');

  // A statement of the API ends after seconds, so that one reader cannot hold a connection; deciding may take longer.
  await withClient(database.url, async (client) => {
    await client.query('BEGIN; LOCK TABLE payload IN ACCESS EXCLUSIVE MODE');
    const reviewer = tokens.add({ name: 'reviewer', role: 'reviewer' });
    await publishAll(broker.url, faultMessages(1, 3, 3));
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    const [, { errors }] = await ask('{ decision(feed: "county-fire", position: 0) { payload } }', reviewer);
    expect(errors?.map(({ extensions }) => extensions.code)).toEqual(['QUERY_TIMEOUT']);
    await client.query('ROLLBACK');
  });
  await applied(database.url, 3);
  expect(app.stderr).not.toContain('tried again');
  expect((await app.stop()).code).toBe(0);
  for (const token of [all, scoped]) expect(app.stdout + app.stderr).not.toContain(token);
});
