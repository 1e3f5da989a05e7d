/**
 * Subscriptions over graphql-transport-ws. The library speaks the protocol; here is what a socket may do, and when it is
 * cut off.
 *
 * A message is sent only when the one before it, of the same subscription, has left the process. So what lies here for a
 * reader who does not read is one message a subscription; the bound on bytes is against everything else that makes us
 * write, as a flood of pings does.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from 'graphql-ws';
import { GraphQLError } from 'graphql';
import type { ExecutionArgs } from 'graphql';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { createContext } from './context';
import type { ApiContext, ApiServices } from './context';
import { ApiError } from './errors';
import { maskError } from './mask';
import { prepareOperation } from './operation';
import type { OperationRules } from './operation';
import { judgeOrigin } from './origin';
import { ResultStream, subscribeWithFreshContexts } from './subscribe';
import type { Viewer } from './viewer';

/** Close codes of ours, in the range that RFC 6455 leaves to applications and graphql-transport-ws does not use. */
export const CLOSE_TOO_SLOW = 4490;
const CLOSE_GOING_AWAY = 1001;
/** How long a socket that is being closed may take to say goodbye. */
const GOODBYE_MS = 1_000;

export interface WebSocketRoute {
  readonly services: ApiServices;
  readonly rules: OperationRules;
  /** Address that the service is bound to. */
  readonly host: string;
  readonly viewerOf: (request: IncomingMessage) => Viewer;
}

export interface WebSockets {
  /** Takes an upgrade request over, or refuses it. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  readonly sockets: number;
  readonly operations: number;
  /** Ends all sockets and waits until they are gone. */
  close(): Promise<void>;
}

interface Extra {
  readonly viewer: Viewer;
}

export function createWebSockets(route: WebSocketRoute): WebSockets {
  const { services, host } = route;
  const { limits, log } = services;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxBodyBytes,
    handleProtocols: chooseProtocol,
  });
  const running = new Set<object>();
  const protocol = createProtocol(route, running);

  server.on('connection', (socket: WebSocket, request: IncomingMessage) => {
    const guard = new SocketGuard(socket, services);
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (data) => guard.send(data),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) => socket.on('message', (data: Buffer) => void guard.take(() => take(data.toString('utf8')))),
      },
      { viewer: route.viewerOf(request) },
    );
    // A frame that is no WebSocket, or too large: ws closes the socket itself, and would throw without a listener.
    socket.on('error', (error) => log.warn({ err: error }, 'socket error'));
    socket.once('close', (code, reason) => {
      guard.stop();
      closed(code, String(reason)).catch((error: unknown) => log.error({ err: error }, 'cannot release a socket'));
    });
  });

  return {
    upgrade: (request, socket, head) => {
      if (judgeOrigin(request, host) !== 'allowed') {
        log.warn({ origin: request.headers.origin, host: request.headers.host }, 'WebSocket of another site refused');
        refuseUpgrade(socket, '403 Forbidden');
      } else if (server.clients.size >= limits.maxSockets) {
        log.warn({ sockets: server.clients.size }, 'too many sockets');
        refuseUpgrade(socket, '503 Service Unavailable');
      } else {
        server.handleUpgrade(request, socket, head, (upgraded) => server.emit('connection', upgraded, request));
      }
    },
    get sockets() {
      return server.clients.size;
    },
    get operations() {
      return running.size;
    },
    close: () => closeAll(server),
  };
}

function createProtocol({ services, rules }: WebSocketRoute, running: Set<object>) {
  const { limits, log } = services;
  const mask = (error: unknown, correlationId: string) =>
    maskError(error, { correlationId, development: rules.development, log });
  return makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initTimeoutMs,
    onSubscribe: (context, _, payload) => {
      if (Object.keys(context.subscriptions).length > limits.maxOperationsPerSocket) {
        const most = limits.maxOperationsPerSocket;
        const excess = new ApiError('TOO_MANY_OPERATIONS', `a socket runs at most ${most} operations at a time`);
        return [new GraphQLError(excess.message, { originalError: excess })];
      }
      const prepared = prepareOperation(payload, rules);
      if (!prepared.ok) return prepared.errors;
      const contextValue = createContext(services, { viewer: context.extra.viewer, correlationId: randomUUID() });
      return { ...prepared.args, contextValue };
    },
    subscribe: async (args) => {
      const result = await subscribeWithFreshContexts(args);
      if (!(result instanceof ResultStream)) return result;
      running.add(result);
      return result.whenEnded(() => running.delete(result));
    },
    onNext: (_context, _id, _payload, args, result) => {
      if (result.errors === undefined) return undefined;
      const correlationId = correlationOf(args);
      return { ...result, errors: result.errors.map((error) => mask(error, correlationId)) };
    },
    onError: (_context, _id, _payload, errors) => {
      const correlationId = randomUUID();
      return errors.map((error) => mask(error, correlationId));
    },
  });
}

/** Watches over what one socket has not taken yet, and over its being there at all. */
class SocketGuard {
  private readonly keepAlive: NodeJS.Timeout;
  private goodbye: NodeJS.Timeout | null = null;
  private answered = true;

  constructor(
    private readonly socket: WebSocket,
    private readonly services: ApiServices,
  ) {
    socket.on('pong', () => (this.answered = true));
    this.keepAlive = setInterval(() => this.ping(), services.limits.keepAliveMs);
  }

  /** Resolves when the message has left the process. */
  send(data: string): Promise<void> {
    const { socket } = this;
    const { maxBufferedBytes, stalledAfterMs } = this.services.limits;
    if (socket.bufferedAmount > maxBufferedBytes) this.cutOff('too much unread');
    return new Promise((resolve, reject) => {
      // Ends the subscription that sends: it must not run on against a socket that takes nothing.
      if (socket.readyState !== socket.OPEN) return reject(new Error('the socket is closed'));
      const stalled = setTimeout(() => this.cutOff('reading too slowly'), stalledAfterMs);
      socket.send(data, (error) => {
        clearTimeout(stalled);
        if (error) reject(error);
        else resolve();
      });
    });
  }

  async take(handle: () => Promise<void>): Promise<void> {
    try {
      await handle();
    } catch (error) {
      if (this.socket.readyState !== this.socket.OPEN) return;
      this.services.log.error({ err: error }, 'cannot handle a message');
      this.socket.close(1011, 'internal error');
    }
  }

  stop(): void {
    clearInterval(this.keepAlive);
    if (this.goodbye !== null) clearTimeout(this.goodbye);
  }

  private ping(): void {
    if (!this.answered) return this.cutOff('no answer to a ping');
    this.answered = false;
    this.socket.ping();
  }

  /** The reason reaches a reader who comes back soon; then the connection ends, whether it was read or not. */
  private cutOff(reason: string): void {
    if (this.goodbye !== null) return;
    this.services.log.warn({ reason, bufferedBytes: this.socket.bufferedAmount }, 'socket cut off');
    this.socket.close(CLOSE_TOO_SLOW, reason);
    this.goodbye = setTimeout(() => this.socket.terminate(), GOODBYE_MS);
  }
}

function chooseProtocol(offered: Set<string>): string | false {
  return offered.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false;
}

function refuseUpgrade(socket: Duplex, status: string): void {
  socket.on('error', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

function correlationOf(args: ExecutionArgs): string {
  return (args.contextValue as ApiContext).correlationId;
}

async function closeAll(server: WebSocketServer): Promise<void> {
  const gone = [...server.clients].map(
    (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
  );
  for (const socket of server.clients) socket.close(CLOSE_GOING_AWAY, 'the service is going away');
  const late = setTimeout(() => server.clients.forEach((socket) => socket.terminate()), GOODBYE_MS);
  await Promise.all(gone);
  clearTimeout(late);
  server.close();
}
