import { connect } from 'node:net';
import { freePort } from './free-port';
import { serverPrograms } from './packages';
import { ServerProcess } from './server-process';

export interface RedisOptions {
  readonly port?: number;
  /** As Redis writes it: `2mb`. Default no bound. */
  readonly maxmemory?: string;
  /** `maxmemory-policy`; default `noeviction`. */
  readonly policy?: string;
  /** More command line arguments: `['--rename-command', 'CONFIG', '']`. */
  readonly args?: readonly string[];
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly running: boolean;
  /** On the same port, empty: nothing is ever written to disk. */
  start(): Promise<void>;
  stop(): Promise<void>;
  kill9(): Promise<void>;
  /** SIGSTOP: connections stay open and nothing answers, until `resume`. */
  freeze(): void;
  resume(): void;
  logTail(lines?: number): string;
}

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const program = (await serverPrograms()).redis;
  const port = options.port ?? (await freePort());
  const { maxmemory = '0', policy = 'noeviction', args = [] } = options;
  const flags = {
    bind: '127.0.0.1',
    port: String(port),
    save: '',
    appendonly: 'no',
    maxmemory,
    'maxmemory-policy': policy,
  };
  const server = new ServerProcess({
    name: 'redis',
    command: program.path,
    args: (folder) => [
      ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
      ...['--dir', folder],
      ...args,
    ],
    env: program.env,
    probe: () => ping(port),
    endSignal: 'KILL',
  });
  await server.start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    get running() {
      return server.running;
    },
    start: () => server.start(),
    stop: () => server.stop('SIGTERM'),
    kill9: () => server.kill9(),
    freeze: () => server.signal('SIGSTOP'),
    resume: () => server.signal('SIGCONT'),
    logTail: (lines) => server.logTail(lines),
  };
}

/** Any reply but LOADING will do: a server that wants a password answers with an error, and is up. */
function ping(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.setTimeout(2_000, () => socket.destroy(new Error('no answer to PING')));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (reply) => {
      socket.destroy();
      if (reply.toString().startsWith('-LOADING')) reject(new Error('Redis is loading'));
      else resolve();
    });
    socket.once('error', reject);
    socket.once('end', () => reject(new Error('Redis closed the connection')));
  });
}
