import { connect } from 'node:net';
import WebSocket from 'ws';
import { startApi } from '../../src/api/server';
import { createLocalWakeUps } from '../../src/live/local';
import { expectStillServing, OPERATIONS, startBoth } from './api-fixture';

describe('the server', () => {
  it('tells whether it is alive and ready, and nothing anywhere else', async () => {
    let ready = true;
    const { app } = await startBoth(undefined, {
      operations: {
        ...OPERATIONS,
        readiness: () =>
          ready ? Promise.resolve({ ready, details: { feeds: 1 } }) : Promise.reject(new Error('secret')),
      },
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
      tokens: null,
      operations: OPERATIONS,
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
    for (const text of [
      '\0\0\0',
      'POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"qu',
    ]) {
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
