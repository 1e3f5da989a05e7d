import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { onCleanup } from '../support/cleanup';
import { loseAnswerTo, startProxy, type TcpProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

/** Answers each line by the same line in capitals, and remembers what it got. */
async function shouter(): Promise<{ port: number; received: string[] }> {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      received.push(chunk.toString());
      socket.write(chunk.toString().toUpperCase());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onCleanup(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, received };
}

interface TestClient {
  readonly socket: Socket;
  readonly text: () => string;
  readonly closed: Promise<unknown>;
}

async function client(proxy: TcpProxy): Promise<TestClient> {
  const socket = connect(proxy.port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString()));
  const closed = new Promise((resolve) => socket.once('close', resolve));
  onCleanup(() => void socket.destroy());
  await once(socket, 'connect');
  socket.on('error', () => socket.destroy());
  return { socket, text: () => text, closed };
}

const answered = (one: TestClient, text: string): Promise<boolean> =>
  until(() => one.text() === text, { what: `the answer ${text}`, timeoutMs: 5_000, everyMs: 2 });

test('passes bytes both ways, and a cut ends open connections but not new ones', async () => {
  const { port } = await shouter();
  const proxy = await startProxy(port);
  const first = await client(proxy);
  first.socket.write('a');
  await answered(first, 'A');
  expect(proxy.open).toBe(1);
  proxy.cut();
  await first.closed;
  await until(() => proxy.open === 0, { what: 'the proxy to forget the connection' });
  const second = await client(proxy);
  second.socket.write('b');
  await answered(second, 'B');
});

test('a paused direction holds bytes back and loses none', async () => {
  const { port, received } = await shouter();
  const proxy = await startProxy(port);
  const one = await client(proxy);
  one.socket.write('a');
  await answered(one, 'A');

  proxy.pauseDownstream();
  one.socket.write('b');
  await until(() => received.length === 2, { what: 'the server to get b' });
  await sleep(30);
  expect(one.text()).toBe('A');
  proxy.resume();
  await answered(one, 'AB');

  proxy.pauseUpstream();
  one.socket.write('c');
  const late = await client(proxy); // connects while paused
  late.socket.write('d');
  await sleep(30);
  expect(received).toEqual(['a', 'b']);
  proxy.resume();
  await answered(one, 'ABC');
  await answered(late, 'D');
});

test('refuses new connections while open ones go on, then listens on the same port again', async () => {
  const { port } = await shouter();
  const proxy = await startProxy(port);
  const open = await client(proxy);
  await proxy.refuse(true);
  await expect(client(proxy)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  open.socket.write('a');
  await answered(open, 'A');
  await proxy.refuse(false);
  const again = await client(proxy);
  again.socket.write('b');
  await answered(again, 'B');
});

test('loses the answer to one request: the server acted on it, the client never hears', async () => {
  const { port, received } = await shouter();
  const proxy = await startProxy(port);
  const one = await client(proxy);
  const other = await client(proxy);
  const lost = loseAnswerTo(proxy, 'commit');
  other.socket.write('select');
  await answered(other, 'SELECT');
  one.socket.write('commit');
  await lost;
  await one.closed;
  expect(one.text()).toBe('');
  expect(received).toEqual(['select', 'commit']);
  other.socket.write('commit');
  await answered(other, 'SELECTCOMMIT');
});

test('carries more than any buffer, both ends closing in order', async () => {
  const { port } = await shouter();
  const proxy = await startProxy(port);
  const one = await client(proxy);
  const megabytes = 'x'.repeat(8 << 20);
  one.socket.end(megabytes);
  await one.closed;
  expect(one.text().length).toBe(megabytes.length);
});
