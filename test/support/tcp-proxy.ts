import { createServer, connect, type Server, type Socket } from 'node:net';
import { onCleanup } from './cleanup';
import { freePort } from './free-port';

/** One client's connection through the proxy. */
export interface ProxyConnection {
  /** 1, 2, … in order of arrival. */
  readonly id: number;
  /** Closes both sides at once, whatever is under way. */
  cut(): void;
}

/** Sees a chunk before it is passed on; `swallow` loses it. Chunks are what TCP gave, not messages of a protocol. */
export type ChunkHook = (chunk: Buffer, connection: ProxyConnection) => 'swallow' | void;

export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Destroys every open connection; new ones are taken. */
  cut(): void;
  /** What clients send no longer passes, also on new connections. Nothing is lost: `resume` lets it through. */
  pauseUpstream(): void;
  /** The same for what the server sends. */
  pauseDownstream(): void;
  resume(): void;
  /** true: stops listening, so that new connections are refused (open ones stay). false: listens again. */
  refuse(on: boolean): Promise<void>;
  /** One hook for each direction; null takes it away. */
  onClientData(hook: ChunkHook | null): void;
  onServerData(hook: ChunkHook | null): void;
  close(): Promise<void>;
}

export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const proxy = new RealProxy(await freePort(), targetPort);
  await proxy.refuse(false);
  onCleanup(() => proxy.close());
  return proxy;
}

/**
 * Loses the answer to the first chunk of a client that contains `text` (`COMMIT`): the server gets the chunk and acts
 * on it; its answer is swallowed and the connection cut. Once only.
 *
 * @returns a promise that resolves when the answer was lost.
 */
export function loseAnswerTo(proxy: TcpProxy, text: string): Promise<void> {
  return new Promise((resolve) => {
    let victim: number | null = null;
    proxy.onClientData((chunk, connection) => {
      if (victim === null && chunk.includes(text)) victim = connection.id;
    });
    proxy.onServerData((_chunk, connection) => {
      if (connection.id !== victim) return;
      proxy.onClientData(null);
      proxy.onServerData(null);
      connection.cut();
      resolve();
      return 'swallow';
    });
  });
}

type Direction = 'upstream' | 'downstream';

class RealProxy implements TcpProxy {
  private listener: Server | null = null;
  private nextId = 1;
  private readonly pairs = new Set<{ readonly client: Socket; readonly server: Socket }>();
  private readonly paused: Record<Direction, boolean> = { upstream: false, downstream: false };
  private readonly hooks: Record<Direction, ChunkHook | null> = { upstream: null, downstream: null };

  constructor(
    readonly port: number,
    private readonly targetPort: number,
  ) {}

  get open(): number {
    return this.pairs.size;
  }

  cut(): void {
    for (const { client, server } of this.pairs) {
      client.destroy();
      server.destroy();
    }
  }

  pauseUpstream(): void {
    this.paused.upstream = true;
    for (const { client } of this.pairs) client.pause();
  }

  pauseDownstream(): void {
    this.paused.downstream = true;
    for (const { server } of this.pairs) server.pause();
  }

  resume(): void {
    this.paused.upstream = this.paused.downstream = false;
    for (const { client, server } of this.pairs) {
      client.resume();
      server.resume();
    }
  }

  onClientData(hook: ChunkHook | null): void {
    this.hooks.upstream = hook;
  }

  onServerData(hook: ChunkHook | null): void {
    this.hooks.downstream = hook;
  }

  async refuse(on: boolean): Promise<void> {
    if (on) {
      // Not awaited: its callback comes only when the last open connection has ended, and those stay.
      this.listener?.close();
      this.listener = null;
      return;
    }
    if (this.listener !== null) return;
    const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => this.accept(client));
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(this.port, '127.0.0.1', resolve);
    });
    this.listener = listener;
  }

  async close(): Promise<void> {
    await this.refuse(true);
    this.cut();
  }

  private accept(client: Socket): void {
    const server = connect({ port: this.targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const pair = { client, server };
    const cut = (): void => {
      client.destroy();
      server.destroy();
    };
    const connection = { id: this.nextId++, cut };
    this.pairs.add(pair);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', cut); // a reset of one side is a reset of the other
      socket.once('close', () => {
        this.pairs.delete(pair);
        cut();
      });
    }
    this.forward('upstream', client, server, connection);
    this.forward('downstream', server, client, connection);
  }

  private forward(direction: Direction, from: Socket, to: Socket, connection: ProxyConnection): void {
    from.on('data', (chunk: Buffer) => {
      if (this.hooks[direction]?.(chunk, connection) === 'swallow' || to.destroyed) return;
      if (!to.write(chunk)) from.pause();
    });
    to.on('drain', () => {
      if (!this.paused[direction]) from.resume();
    });
    from.once('end', () => to.end());
    if (this.paused[direction]) from.pause();
    else from.resume();
  }
}
