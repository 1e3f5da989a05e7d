import { connect } from 'node:net';
import WebSocket from 'ws';
import { startApi } from '../../src/api/server';
import { createLocalWakeUps } from '../../src/live/local';
import { withClient } from '../support/postgres';
import { b, startPipeline } from '../support/pipeline';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';
import type { TestApi } from './api-fixture';
import { openOwn, startBoth, startTestApi } from './api-fixture';

const SECRETS = /SELECT|INSERT|ledger_entry|feed_head|prisma|postgres|\/src\/|\/work|node_modules|127\.0\.0\.1|localhost|ECONN|\n\s+at /i;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function expectStillServing(app: TestApi): Promise<void> {
  expect((await app.data('{ feeds { name } }')).feeds).toEqual([{ name: 'cad-north' }]);
}

/** CPU milliseconds of this process, the service's own included, while something runs. */
async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** An operation over a WebSocket, by hand; answers the first message about it. */
async function overSocket(app: TestApi, payload: object): Promise<{ type: string; payload: { errors?: unknown[] } & unknown[] }> {
  const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
  await new Promise((resolve) => socket.once('open', resolve));
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await new Promise((resolve) => socket.once('message', resolve));
  const answer = new Promise<string>((resolve) => socket.once('message', (data: Buffer) => resolve(data.toString())));
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
  const text = await answer;
  socket.terminate();
  return JSON.parse(text) as { type: string; payload: { errors?: unknown[] } & unknown[] };
}

describe('limits', () => {
  const deep = (levels: number) => `{ decision(feed: "cad-north", position: 0) ${'{ original '.repeat(levels)} { id } ${'}'.repeat(levels)} }`;
  const aliases = (count: number, first: number) =>
    `{ ${Array.from({ length: count }, (_, n) => `a${n}: decisions(first: ${first}) { nodes { id } }`).join(' ')} }`;

  it('C102: refuses thousands of aliases, and fewer that cost as much, before any query', async () => {
    const { app } = await startBoth();
    app.statements();
    for (const query of [aliases(3000, 100), aliases(100, 100), aliases(60, 200)]) {
      const answer = await app.post(query);
      expect(answer.status).toBe(400);
      expect(answer.errors?.map((error) => error.extensions.code)).toEqual(['QUERY_TOO_COMPLEX']);
      expect(answer.data).toBeUndefined();
    }
    // The size may come from a variable or its default.
    const byVariable = (declared: string) => `query ($n: Int${declared}) { ${aliases(60, 7).slice(1, -1).replaceAll('first: 7', 'first: $n')} }`;
    expect(await app.codes(byVariable(''), { n: 200 })).toEqual(['QUERY_TOO_COMPLEX']);
    expect(await app.codes(byVariable(' = 200'))).toEqual(['QUERY_TOO_COMPLEX']);
    expect(await app.codes(byVariable(' = 200'), { n: -1 })).toEqual(['QUERY_TOO_COMPLEX']);
    expect(app.statements()).toBe(0);
    expect((await app.post(byVariable(''), { n: 1 })).errors).toBeUndefined();
    await expectStillServing(app);
  });

  it('C104: refuses depth, cycles of fragments, floods of directives and long documents, cheaply', async () => {
    const { app } = await startBoth();
    const doubling = Array.from({ length: 60 }, (_, n) => `fragment F${n} on Decision { ...F${n + 1} ...F${n + 1} }`).join(' ');
    const attacks: [string, number, string][] = [
      [deep(20), 400, 'QUERY_TOO_COMPLEX'],
      [
        `{ decision(feed: "x", position: 0) { ...A } } ${Array.from({ length: 20 }, (_, n) => `fragment ${n === 0 ? 'A' : `A${n}`} on Decision { original { ...A${n + 1} } }`).join(' ')} fragment A20 on Decision { id }`,
        400,
        'QUERY_TOO_COMPLEX',
      ],
      [`{ decision(feed: "x", position: 0) { ...F0 } } ${doubling} fragment F60 on Decision { id }`, 400, 'QUERY_TOO_COMPLEX'],
      ['{ incident(id: "x") { ...A } } fragment A on Incident { ...B } fragment B on Incident { ...A }', 200, 'GRAPHQL_VALIDATION_FAILED'],
      [`{ feeds { name ${'@a'.repeat(100_000)} } }`, 400, 'QUERY_TOO_COMPLEX'],
      [`{ feeds { ${'name '.repeat(1990)} } }`, 200, ''],
      ['{'.repeat(1999), 200, 'GRAPHQL_PARSE_FAILED'],
      [`{ feeds { name } } # ${'x'.repeat(5_000_000)}`, 413, 'BAD_REQUEST'],
      [`{ feed(name: ${'['.repeat(1500)}${']'.repeat(400)}) { name } }`, 200, 'GRAPHQL_PARSE_FAILED'],
    ];
    await expectStillServing(app);
    for (const [query, status, code] of attacks) {
      let answer: Awaited<ReturnType<TestApi['post']>> | null = null;
      const spent = await cpuMs(async () => (answer = await app.post(query)));
      const { status: got, errors } = answer as unknown as Awaited<ReturnType<TestApi['post']>>;
      expect([query.slice(0, 60), got, errors?.[0]?.extensions.code ?? '']).toEqual([query.slice(0, 60), status, code]);
      // Far above what it takes, far below what any of these would take without its limit.
      expect(spent).toBeLessThan(2000);
      await expectStillServing(app);
    }
  });

  it('answers normal requests up to the limits', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(1));
    const fields = 'id outcome tier reason key agency sourceId sequence incidentId recordedAt topic payload feed { name }';
    const { decisions } = await app.data(`{ decisions(last: 200) { nodes { ${fields} original { ${fields} } } pageInfo { startCursor } } }`);
    expect(decisions.nodes).toHaveLength(2);
    expect(decisions.nodes[1].original.outcome).toBe('APPLIED');
    expect((await app.post(deep(9))).errors).toBeUndefined();
  });

  it('bounds the payload bytes of one answer', async () => {
    const { path, app } = await startBoth(undefined, { limits: { maxPayloadBytes: 10_000 } });
    await path.deliver(...[1, 2, 3].map((n) => b(n, { text: 'x'.repeat(4000) })));
    const answer = await app.post('{ decisions { nodes { position payloadText } } }');
    expect(answer.errors?.map((error) => [error.extensions.code, error.path])).toEqual([
      ['RESPONSE_TOO_LARGE', ['decisions', 'nodes', 2, 'payloadText']],
    ]);
    expect(answer.data?.decisions.nodes[1].payloadText).toHaveLength(b(2, { text: 'x'.repeat(4000) }).length);
    expect((await app.post('{ decisions(first: 2) { nodes { payloadText } } }')).errors).toBeUndefined();
  });

  it('holds over WebSocket too, together with limits of its own', async () => {
    const { app } = await startBoth(undefined, { limits: { maxOperationsPerSocket: 3, initTimeoutMs: 200 } });
    const refused: [object, string][] = [
      [{ query: deep(20) }, 'QUERY_TOO_COMPLEX'],
      [{ query: aliases(60, 200) }, 'QUERY_TOO_COMPLEX'],
      [{ query: `{ feeds { name ${'@a'.repeat(3000)} } }` }, 'QUERY_TOO_COMPLEX'],
      [{ query: '{ feeds { nam } }' }, 'GRAPHQL_VALIDATION_FAILED'],
      [{ query: '{ __schema { types { name } } }' }, 'GRAPHQL_VALIDATION_FAILED'],
      [{ query: '{ feeds {' }, 'GRAPHQL_PARSE_FAILED'],
      [{ query: '{ feeds { name } }', operationName: 'nope' }, 'BAD_USER_INPUT'],
    ];
    for (const [payload, code] of refused) {
      const answer = await overSocket(app, payload);
      expect(answer.type).toBe('error');
      expect(answer.payload).toMatchObject([{ extensions: { code, correlationId: expect.stringMatching(UUID) as string } }]);
      expect(JSON.stringify(answer.payload)).not.toContain('Did you mean');
    }
    expect(await overSocket(app, { query: '{ feeds { name } }' })).toMatchObject({ type: 'next', payload: { data: { feeds: [{}] } } });

    const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    const codes: unknown[] = [];
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { type: string; payload: { extensions: { code: string } }[] };
      if (message.type === 'error') codes.push(message.payload[0]?.extensions.code);
    });
    await new Promise((resolve) => socket.once('open', resolve));
    socket.send(JSON.stringify({ type: 'connection_init' }));
    const payload = { query: 'subscription { decisions { position } }' };
    for (let id = 0; id < 5; id++) socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload }));
    await until(() => codes.length === 2, { what: 'two refusals' });
    expect(codes).toEqual(['TOO_MANY_OPERATIONS', 'TOO_MANY_OPERATIONS']);
    expect(app.api.stats().subscriptions).toBe(3);
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    socket.send(JSON.stringify({ type: 'connection_init' }));
    expect(await closed).toBe(4429);

    const idle = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    expect(await new Promise<number>((resolve) => idle.once('close', resolve))).toBe(4408);
    const large = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    await new Promise((resolve) => large.once('open', resolve));
    large.send('x'.repeat(300_000));
    expect(await new Promise<number>((resolve) => large.once('close', resolve))).toBe(1009);
    const foreignProtocol = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-ws');
    expect(await new Promise((resolve) => foreignProtocol.once('error', (error) => resolve(error.message)))).toContain('subprotocol');
  });
});

describe('what other sites cannot make a browser do', () => {
  it('C105: refuses mutations by GET, other content types and foreign origins, and logs the attempt', async () => {
    const { app } = await startBoth();
    const url = app.api.url;
    const query = encodeURIComponent('mutation { updateDedupPolicy(input: {}) { version } }');
    const json = JSON.stringify({ query: '{ feeds { name } }' });
    const form = new FormData();
    form.set('operations', json);
    const attempts: [string, RequestInit, number][] = [
      [`${url}?query=${query}`, {}, 405],
      [`${url}?query=${query}`, { headers: { 'apollo-require-preflight': '1' } }, 405],
      [`${url}?query=${encodeURIComponent('{ feeds { name } }')}`, {}, 403],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'text/plain' } }, 415],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415],
      [url, { method: 'POST', body: form }, 415],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'application/json; charset=utf-16' } }, 415],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'application/json', origin: 'https://evil.example' } }, 403],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'application/json', origin: 'null' } }, 403],
      [url, { method: 'PUT', body: json, headers: { 'content-type': 'application/json' } }, 405],
      [url, { method: 'OPTIONS', headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' } }, 403],
    ];
    for (const [target, init, status] of attempts) {
      const response = await fetch(target, init);
      expect([init, response.status]).toEqual([init, status]);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect(await response.json()).toMatchObject({ errors: [{ extensions: { correlationId: expect.stringMatching(UUID) as string } }] });
    }
    expect(app.log.filter((line) => line.message === 'request refused')).toHaveLength(attempts.length);
    const scripted = { headers: { 'apollo-require-preflight': '1' } };
    expect((await fetch(`${url}?query=${encodeURIComponent('{ feeds { name } }')}`, scripted)).status).toBe(200);
    await expectStillServing(app);
  });

  it('refuses WebSockets of other sites, and names that merely resolve to the loopback address', async () => {
    const { app } = await startBoth();
    const url = app.api.url.replace('http', 'ws');
    const tryFrom = (headers: Record<string, string>) =>
      new Promise<string>((resolve) => {
        const socket = new WebSocket(url, 'graphql-transport-ws', { headers });
        socket.once('open', () => {
          socket.terminate();
          resolve('open');
        });
        socket.once('error', (error) => resolve(error.message));
      });
    expect(await tryFrom({ origin: 'https://evil.example' })).toContain('403');
    expect(await tryFrom({ origin: 'null' })).toContain('403');
    expect(await tryFrom({ origin: `http://127.0.0.1:${app.api.port + 1}` })).toContain('403');
    expect(await tryFrom({ origin: 'http://evil.example:80', host: 'evil.example:80' })).toContain('403');
    expect(await tryFrom({ origin: `http://127.0.0.1:${app.api.port}` })).toBe('open');
    expect(await tryFrom({})).toBe('open');
    expect(await tryFrom({ origin: `http://localhost:${app.api.port}`, host: `localhost:${app.api.port}` })).toBe('open');
  });

  it('takes one operation a request', async () => {
    const { app } = await startBoth();
    const post = (body: string) => fetch(app.api.url, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const one = { query: '{ feeds { name } }' };
    for (const body of [JSON.stringify([one]), JSON.stringify([one, one]), '', '{', '"x"', 'null', '\ufeff{"query":"{ feeds { name } }"', '{}']) {
      const response = await post(body);
      expect([body, response.status]).toEqual([body, 400]);
      expect(((await response.json()) as { errors: unknown[] }).errors).toHaveLength(1);
    }
    await expectStillServing(app);
  });
});

describe('errors', () => {
  it('C106: show a code and a correlation id, and nothing of the inside; the log has the rest', async () => {
    const path = await startPipeline();
    await path.deliver(b(1));
    const url = new URL(path.url);
    const proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    const app = await startTestApi({ database: await openOwn(url.href) });
    for (const query of ['{ auditEntrie { id } }', '{ feeds { nam } }', '{ decisions(filter: { outcome: [APPLIE] }) { nodes { id } } }']) {
      const answer = await app.post(query);
      expect(answer.status).toBe(200);
      expect(answer.errors?.[0]).toMatchObject({
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED', correlationId: expect.stringMatching(UUID) as string },
      });
      expect(JSON.stringify(answer)).not.toContain('Did you mean');
    }
    const variables = { filter: { outcome: ['APPLIE'], hel: true } };
    const coerced = await app.post('query ($filter: DecisionFilter) { decisions(filter: $filter) { nodes { id } } }', variables);
    expect(coerced.errors?.map((error) => error.extensions.code)).toEqual(['BAD_USER_INPUT', 'BAD_USER_INPUT']);
    expect(JSON.stringify(coerced)).not.toContain('Did you mean');

    proxy.refuse(true);
    proxy.cut();
    const down = await app.post('{ feeds { name } decision(feed: "cad-north", position: 0) { id } }');
    expect(down.errors?.map((error) => error.extensions.code)).toEqual(['SERVICE_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);
    expect(JSON.stringify(down)).not.toMatch(SECRETS);
    const id = down.errors?.[0]?.extensions.correlationId;
    const logged = app.log.find((line) => line.facts.correlationId === id);
    expect(logged?.facts.err).toBeInstanceOf(Error);
    proxy.refuse(false);
    await until(async () => (await app.post('{ feeds { name } }')).errors === undefined, { what: 'the database to be back' });
  });

  it('C106: masks what a resolver throws, also inside a subscription', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const socketAnswer = overSocket(app, { query: 'subscription { decisions { position decision { feed { contract { text } } } } }' });
    await until(() => app.api.stats().waiting === 1, { what: 'the subscription' });
    // A ledger that lost a table is the plainest of internal errors.
    await withClient(path.url, (client) => client.query('ALTER TABLE feed_contract RENAME TO feed_contract_gone'));
    path.offer();
    const answer = await app.post('{ feeds { contract { text } } }');
    expect(answer.errors).toEqual([
      {
        message: 'internal error',
        locations: [{ line: 1, column: 11 }],
        path: ['feeds', 0, 'contract'],
        extensions: { code: 'INTERNAL_SERVER_ERROR', correlationId: expect.stringMatching(UUID) as string },
      },
    ]);
    await path.deliver(b(2));
    const event = await socketAnswer;
    expect(event).toMatchObject({ type: 'next', payload: { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] } });
    expect(JSON.stringify([answer, event])).not.toMatch(SECRETS);
    expect(app.log.filter((line) => line.level === 'error')).toHaveLength(2);
  });

  it('ends a statement that takes too long, and says so', async () => {
    const path = await startPipeline();
    const app = await startTestApi({ database: await openOwn(path.url, 300) });
    await withClient(path.url, async (client) => {
      await client.query('BEGIN; LOCK TABLE ledger_entry IN ACCESS EXCLUSIVE MODE');
      expect(await app.codes('{ decision(feed: "cad-north", position: 0) { id } }')).toEqual(['QUERY_TIMEOUT']);
      await client.query('ROLLBACK');
    });
    await expectStillServing(app);
  });

  it('shows the schema in development alone', async () => {
    const { path, app } = await startBoth();
    const open = await startTestApi({ database: path.database, development: true });
    const introspection = '{ __schema { queryType { fields { name description } } } }';
    expect(await app.codes(introspection)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect((await open.data(introspection)).__schema.queryType.fields.length).toBeGreaterThan(6);
    expect((await open.post('{ feeds { nam } }')).errors?.[0]?.message).toContain('Did you mean "name"?');
  });

  it('answers in the media type that is asked for, with the status that goes with it', async () => {
    const { app } = await startBoth();
    const ask = async (accept: string, query: string) => {
      const headers = { 'content-type': 'application/json', accept };
      const response = await fetch(app.api.url, { method: 'POST', headers, body: JSON.stringify({ query }) });
      return [response.status, response.headers.get('content-type')];
    };
    const plain = 'application/json; charset=utf-8';
    const graphql = 'application/graphql-response+json';
    expect(await ask('*/*', '{ feeds { name } }')).toEqual([200, plain]);
    expect(await ask(graphql, '{ feeds { name } }')).toEqual([200, `${graphql}; charset=utf-8`]);
    expect(await ask('application/json', '{ feeds {')).toEqual([200, plain]);
    expect(await ask(graphql, '{ feeds {')).toEqual([400, `${graphql}; charset=utf-8`]);
    expect(await ask(graphql, '{ nope }')).toEqual([400, `${graphql}; charset=utf-8`]);
    expect((await ask('text/plain', '{ feeds { name } }'))[0]).toBe(406);
  });
});

describe('the server', () => {
  it('tells whether it is alive and ready, and nothing anywhere else', async () => {
    let ready = true;
    const { app } = await startBoth(undefined, {
      readiness: () => (ready ? Promise.resolve({ ready, details: { feeds: 1 } }) : Promise.reject(new Error('secret'))),
    });
    const get = async (path: string, method = 'GET') => {
      const response = await fetch(app.api.url.replace('/graphql', path), { method });
      return [response.status, (await response.text()).trim()];
    };
    expect(await get('/healthz')).toEqual([200, '{"alive":true}']);
    expect(await get('/readyz?x=1')).toEqual([200, '{"ready":true,"feeds":1}']);
    expect(await get('/healthz', 'HEAD')).toEqual([200, '']);
    expect((await get('/healthz', 'POST'))[0]).toBe(405);
    ready = false;
    expect(await get('/readyz')).toEqual([503, '{"ready":false}']);
    const [status, body] = await get('/nope');
    expect(status).toBe(404);
    expect(JSON.parse(String(body))).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] });
    const lost = new WebSocket(app.api.url.replace('http', 'ws').replace('/graphql', '/other'), 'graphql-transport-ws');
    expect(await new Promise((resolve) => lost.once('error', (error) => resolve(error.message)))).toContain('404');
  });

  it('rejects where the port is taken, and leaves no listener behind', async () => {
    const { path, app } = await startBoth();
    let listeners = 0;
    const wakeUps = createLocalWakeUps();
    const counting = {
      ...wakeUps,
      subscribe: (listener: (feed: string, size: number) => void) => {
        listeners++;
        const stop = wakeUps.subscribe(listener);
        return () => {
          listeners--;
          stop();
        };
      },
    };
    const options = {
      host: '127.0.0.1',
      database: path.database,
      wakeUps: counting,
      readiness: () => Promise.resolve({ ready: true, details: {} }),
      development: false,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    };
    await expect(startApi({ ...options, port: app.api.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    expect(listeners).toBe(0);
    const other = await startApi({ ...options, port: 0 });
    expect(listeners).toBe(1);
    await Promise.all([other.close(), other.close()]);
    expect(listeners).toBe(0);
    await expect(fetch(other.url)).rejects.toThrow();
  });

  it('survives clients that speak no HTTP, or stop in the middle', async () => {
    const { app } = await startBoth();
    for (const text of ['\0\0\0', 'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"qu']) {
      const socket = connect(app.api.port, '127.0.0.1');
      socket.on('error', () => undefined);
      await new Promise((resolve) => socket.write(text, resolve));
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.destroy();
    }
    await expectStillServing(app);
    expect(app.log.filter((line) => line.level === 'error')).toEqual([]);
  });
});
