/**
 * The broker of the embedded mode: aedes, in this process, for trying and developing (design section 9).
 */
import type { EventEmitter } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { SessionStore } from './sessions';

export interface EmbeddedBrokerOptions {
  /** Address to listen on; embedded mode uses 127.0.0.1, because there is neither authentication nor encryption. */
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** The broker is broken from here on: close it, or end the process. */
  readonly onError?: (error: Error) => void;
  /** Fills the store of sessions before the broker listens. */
  readonly prepare?: (store: SessionStore) => Promise<void>;
}

export interface EmbeddedBroker {
  readonly port: number;
  /** For sessions.ts. */
  readonly sessions: SessionStore;
  /** Disconnects every client and frees the port. Sessions and messages are gone with it. */
  close(): Promise<void>;
}

/**
 * Starts an MQTT 3.1.1 broker.
 *
 * Not guaranteed: sessions, queued and retained messages live in memory and die with the process; no MQTT 5 (a version 5
 * client is refused); shared subscriptions are granted but never deliver; redeliveries come without the DUP flag; a
 * subscriber that does not read for a minute is disconnected and keeps its session, and until then holds up the
 * publishers.
 *
 * Rejects with Node's error where it cannot listen (`code` `EADDRINUSE` for an occupied port), and with what `prepare`
 * rejects with.
 */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  // aedes is an ES module: from CommonJS it can only be imported dynamically.
  const { Aedes } = await import('aedes');
  const broker = await Aedes.createBroker();
  // The typings do not know the member.
  const { persistence: sessions } = broker as unknown as { readonly persistence: SessionStore };
  // Without a listener an 'error' of the broker would end the process. Its typings do not know the event.
  const emitter: EventEmitter = broker;
  emitter.on('error', (error: Error) => options.onError?.(error));
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // Without a listener a reset by a peer that had not yet sent its CONNECT would end the process.
    socket.on('error', () => socket.destroy());
    broker.handle(socket);
  });

  try {
    await options.prepare?.(sessions);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      // exclusive: in a cluster worker the port would otherwise be shared, and occupied would go unnoticed.
      server.listen({ host: options.host, port: options.port, exclusive: true }, resolve);
    });
  } catch (error) {
    await closeBroker();
    throw error;
  }
  // A TCP server that listens has an AddressInfo; a string is for pipes, null before listening.
  const { port } = server.address() as AddressInfo;
  server.on('error', (error) => options.onError?.(error));

  let closing: Promise<void> | null = null;
  return {
    port,
    sessions,
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await closeBroker();
    // Sockets that have not sent a CONNECT are unknown to the broker.
    for (const socket of sockets) socket.destroy();
    await closed;
  }

  async function closeBroker(): Promise<void> {
    await new Promise<void>((resolve) => broker.close(() => resolve()));
  }
}
