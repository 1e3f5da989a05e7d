import WebSocket from 'ws';
import { expectStillServing, startBoth, UUID } from './api-fixture';

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
      [
        url,
        { method: 'POST', body: json, headers: { 'content-type': 'application/json', origin: 'https://evil.example' } },
        403,
      ],
      [url, { method: 'POST', body: json, headers: { 'content-type': 'application/json', origin: 'null' } }, 403],
      [url, { method: 'PUT', body: json, headers: { 'content-type': 'application/json' } }, 405],
      [
        url,
        { method: 'OPTIONS', headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' } },
        403,
      ],
    ];
    for (const [target, init, status] of attempts) {
      const response = await fetch(target, init);
      expect([init, response.status]).toEqual([init, status]);
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect(await response.json()).toMatchObject({
        errors: [{ extensions: { correlationId: expect.stringMatching(UUID) as string } }],
      });
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
    expect(await tryFrom({ origin: `http://localhost:${app.api.port}`, host: `localhost:${app.api.port}` })).toBe(
      'open',
    );
  });

  it('takes one operation a request', async () => {
    const { app } = await startBoth();
    const post = (body: string) =>
      fetch(app.api.url, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const one = { query: '{ feeds { name } }' };
    for (const body of [
      JSON.stringify([one]),
      JSON.stringify([one, one]),
      '',
      '{',
      '"x"',
      'null',
      '\ufeff{"query":"{ feeds { name } }"',
      '{}',
    ]) {
      const response = await post(body);
      expect([body, response.status]).toEqual([body, 400]);
      expect(((await response.json()) as { errors: unknown[] }).errors).toHaveLength(1);
    }
    await expectStillServing(app);
  });
});
