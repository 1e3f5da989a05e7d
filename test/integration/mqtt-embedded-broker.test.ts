import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { transformSync } from '@swc/core';
import { freePort } from '../support/free-port';
import { publishAll, startObserver } from '../support/mqtt-client';
import { startProcess, type TestProcess } from '../support/process';
import { until } from '../support/wait';

const REPOSITORY = resolve(__dirname, '../..');

// aedes is an ES module, which Jest loads only under an experimental flag: so the broker runs in a process of its own.
const RUN = `
  const { startEmbeddedBroker } = require('./broker.js');
  startEmbeddedBroker({ host: '127.0.0.1', port: Number(process.argv[2]) }).then(
    (broker) => {
      console.log('listening on ' + broker.port);
      process.on('SIGTERM', () => Promise.all([broker.close(), broker.close()]).then(() => console.log('closed')));
    },
    (error) => console.log('refused: ' + error.code),
  );`;

describe('the embedded broker', () => {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-broker-'));

  beforeAll(() => {
    const { code } = transformSync(readFileSync(join(REPOSITORY, 'src/embedded/broker.ts'), 'utf8'), {
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
      module: { type: 'commonjs', ignoreDynamic: true },
    });
    writeFileSync(join(folder, 'broker.js'), code);
    writeFileSync(join(folder, 'run.js'), RUN);
    symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function start(port = 0): Promise<{ readonly child: TestProcess; readonly url: string }> {
    const child = startProcess(process.execPath, [join(folder, 'run.js'), String(port)]);
    const [, listening = ''] = await child.waitForLine(/^listening on (\d+)$/);
    return { child, url: `mqtt://127.0.0.1:${listening}` };
  }

  it('keeps a session and its unacknowledged messages as long as the process lives', async () => {
    const { child, url } = await start();
    const first = startObserver({ urls: [url] });
    await first.subscribed();
    await publishAll(url, [
      { topic: 'cad/e1', payload: '1' },
      { topic: 'cad/e1', payload: '2' },
    ]);
    await first.received(2);
    expect(first.subscriber.acknowledge(first.deliveries.slice(0, 1))).toBe(1);
    await first.subscriber.close();
    await publishAll(url, [{ topic: 'cad/e1', payload: '3' }]);

    const second = startObserver({ urls: [url] });
    await second.received(2);
    expect(second.eventsOf('connected')).toEqual([{ type: 'connected', sessionPresent: true }]);
    expect(second.texts()).toEqual(['2', '3']);
    await second.subscriber.close();
    await child.stop();
  });

  it('rejects with EADDRINUSE where the port is occupied, and leaves nothing running', async () => {
    const occupant = createServer();
    const port = await freePort();
    await new Promise<void>((done) => occupant.listen(port, '127.0.0.1', done));
    const child = startProcess(process.execPath, [join(folder, 'run.js'), String(port)]);
    await child.waitForLine(/^refused: EADDRINUSE$/);
    expect(await child.exit).toEqual({ code: 0, signal: null });
    await new Promise((done) => occupant.close(done));
  });

  it('takes the port it is told, disconnects its clients at close, and leaves nothing running', async () => {
    const port = await freePort();
    const { child, url } = await start(port);
    expect(url).toBe(`mqtt://127.0.0.1:${port}`);
    const observer = startObserver({ urls: [url] });
    await observer.subscribed();
    child.signal('SIGTERM');
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.stdout).toContain('closed');
    await until(() => observer.eventsOf('disconnected').length > 0, { what: 'the end of the connection' });
    await observer.subscriber.close();
  });

  it('refuses an MQTT 5 client without harm to itself', async () => {
    const { child, url } = await start();
    const modern = startObserver({ urls: [url], protocolVersion: 5 });
    await until(() => modern.eventsOf('disconnected').length > 0, { what: 'the refusal' });
    await modern.subscriber.close();
    const observer = startObserver({ urls: [url] });
    await observer.subscribed();
    await observer.subscriber.close();
    await child.stop();
  });
});
