/**
 * Subscriptions over graphql-transport-ws. The library speaks the protocol; here is what a socket may do. When it is cut
 * off: see socket-guard.ts and session.ts.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer } from 'graphql-ws';
import { GraphQLError } from 'graphql';
import type { ExecutionArgs } from 'graphql';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { Refusal } from '../ops/bearer';
import type { Access } from './access';
import { createContext } from './context';
import type { ApiContext, ApiServices } from './context';
import { ApiError } from './errors';
import { maskError } from './mask';
import { prepareOperation } from './operation';
import type { OperationRules } from './operation';
import { judgeOrigin } from './origin';
import type { Session } from './session';
import { GOODBYE_MS, SocketGuard } from './socket-guard';
import { ResultStream, subscribeWithFreshContexts } from './subscribe';

const CLOSE_GOING_AWAY = 1001;

export interface WebSocketRoute {
  readonly services: ApiServices;
  readonly rules: OperationRules;
  /** Address that the service is bound to. */
  readonly host: string;
  readonly access: Access;
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
  readonly session: Session;
}

export function createWebSockets(route: WebSocketRoute): WebSockets {
  const { services, host, access } = route;
  const { limits, log } = services;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: limits.maxBodyBytes,
    handleProtocols: chooseProtocol,
  });
  const running = new Set<object>();
  const guards = new Set<SocketGuard>();
  const unwatch = access.onChange(() => {
    for (const guard of guards) guard.recheck();
  });
  const protocol = createProtocol(route, running);

  server.on('connection', (socket: WebSocket) => {
    const guard = new SocketGuard(socket, services, access);
    guards.add(guard);
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (data) => guard.send(data),
        close: (code, reason) => guard.close(code, reason),
        onMessage: (take) => socket.on('message', (data: Buffer) => void guard.take(() => take(data.toString('utf8')))),
      },
      { session: guard.session },
    );
    // A frame that is no WebSocket, or too large: ws closes the socket itself, and would throw without a listener.
    socket.on('error', (error) => log.warn({ err: error }, 'socket error'));
    socket.once('close', (code, reason) => {
      guard.stop();
      guards.delete(guard);
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
        server.handleUpgrade(request, socket, head, (upgraded) => server.emit('connection', upgraded));
      }
    },
    get sockets() {
      return server.clients.size;
    },
    get operations() {
      return running.size;
    },
    close: async () => {
      await closeAll(server);
      unwatch();
    },
  };
}

function createProtocol({ services, rules }: WebSocketRoute, running: Set<object>) {
  const { limits, log } = services;
  const mask = (error: unknown, correlationId: string) =>
    maskError(error, { correlationId, development: rules.development, log });
  return makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: limits.initTimeoutMs,
    // Refused, the library closes the socket with 4403; until then it takes no operation, and no second token.
    onConnect: async ({ connectionParams, extra }) => {
      const admission = await extra.session.admit(connectionParams);
      if (admission instanceof Refusal) {
        log.warn({ code: 'UNAUTHENTICATED', reason: admission.reason, transport: 'WebSocket' }, 'request refused');
      }
      return admission === 'admitted';
    },
    onSubscribe: (context, _, payload) => {
      if (Object.keys(context.subscriptions).length > limits.maxOperationsPerSocket) {
        const most = limits.maxOperationsPerSocket;
        const excess = new ApiError('TOO_MANY_OPERATIONS', `a socket runs at most ${most} operations at a time`);
        return [new GraphQLError(excess.message, { originalError: excess })];
      }
      const prepared = prepareOperation(payload, rules);
      if (!prepared.ok) return prepared.errors;
      const contextValue = createContext(services, {
        viewer: context.extra.session.viewer,
        correlationId: randomUUID(),
      });
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
