/**
 * One network connection to one broker, used once.
 *
 * Why a new MQTT.js client for each connection instead of `client.reconnect()`: whatever a client carries over
 * (topics it believes to be subscribed and therefore never sends again, unacknowledged publishes that it sends again
 * without DUP, queued packets, packet ids) belongs to a connection that is gone. A client used once has nothing to carry.
 *
 * States: connecting → accepted (CONNACK with code 0) → ready (packets can be sent) → closed. `closed` is reached from
 * every state, once, and nothing leaves it. Whatever MQTT.js reports as an error ends the connection: after a malformed
 * packet, for one, it would go on parsing in the middle of the next.
 */
import type { Duplex } from 'node:stream';
import { connect, type IClientOptions, type MqttClient, type Packet } from 'mqtt';
import { shortReason } from './errors';
import type { TlsMaterial } from './port';

export interface ConnectionSettings {
  readonly clientId: string;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: TlsMaterial;
  readonly protocolVersion: 4 | 5;
  /** 1 to 65535; 0 turns keep-alive off. */
  readonly keepaliveSeconds: number;
  /** From the start of the TCP connection to the CONNACK. */
  readonly connectTimeoutMs: number;
  readonly clean: boolean;
  /** MQTT 5 alone; ignored under 3.1.1. */
  readonly properties?: IClientOptions['properties'];
}

export interface ConnectionHandlers {
  /** The broker accepted us. Comes before any delivery of a resumed session. */
  readonly accepted?: (sessionPresent: boolean) => void;
  /** Packets can be sent. Deliveries of a resumed session may already have come. */
  readonly ready: () => void;
}

/** DISCONNECT, normal, of both protocol versions. Under MQTT 5 the session expiry of the CONNECT stays in force. */
const DISCONNECT = Buffer.from([0xe0, 0x00]);

/** How long `end` waits for the broker to close its side. */
const END_GRACE_MS = 2_000;

export class Connection {
  readonly client: MqttClient;
  /** Resolves, never rejects, with a short reason when the connection is over. */
  readonly closed: Promise<string>;
  private readonly stream: Duplex;
  private reason: string | null = null;
  private isClosed = false;
  private acceptedAtMs: number | null = null;

  /**
   * Starts connecting. Install `client.handleMessage` right after construction: MQTT.js reads nothing before the next
   * turn of the event loop, and messages of a resumed session come in the same chunk as the CONNACK.
   * Throws what MQTT.js throws on a URL or TLS material that it cannot use.
   */
  constructor(url: string, settings: ConnectionSettings, handlers: ConnectionHandlers) {
    this.client = connect(url, {
      protocolVersion: settings.protocolVersion,
      clientId: settings.clientId,
      // MQTT.js lets `?clientId=` of the URL win over the option: the session would be another one, unnoticed.
      query: undefined,
      username: settings.username,
      password: settings.password,
      ca: settings.tls?.ca,
      cert: settings.tls?.cert,
      key: settings.tls?.key,
      clean: settings.clean,
      keepalive: settings.keepaliveSeconds,
      connectTimeout: settings.connectTimeoutMs,
      properties: settings.protocolVersion === 5 ? settings.properties : undefined,
      reconnectPeriod: 0,
      resubscribe: false,
      queueQoSZero: false,
    });
    this.stream = this.client.stream;
    this.closed = new Promise((resolve) => {
      this.client.on('close', () => {
        this.isClosed = true;
        resolve(this.reason ?? 'connection lost');
      });
    });
    // MQTT.js drops stream errors without a code; they are the only reason there is for some (WebSocket) failures.
    this.stream.on('error', (error) => this.fail(shortReason(error)));
    this.client.on('error', (error) => this.fail(shortReason(error)));
    this.client.on('disconnect', ({ reasonCode = 0 }) => {
      this.fail(`broker disconnected, reason code 0x${reasonCode.toString(16).padStart(2, '0')}`);
    });
    this.client.on('packetreceive', (packet) => {
      if (!isAccepting(packet)) return;
      this.acceptedAtMs = performance.now();
      handlers.accepted?.(packet.sessionPresent);
    });
    this.client.on('connect', () => {
      if (this.live) handlers.ready();
    });
  }

  /** Whether bytes written now reach the broker as part of this very connection, as far as one can know. */
  get live(): boolean {
    return (
      !this.isClosed &&
      this.client.connected &&
      this.client.stream === this.stream &&
      !this.stream.destroyed &&
      this.stream.writable
    );
  }

  /** How long the broker has had us, in milliseconds; 0 if it never accepted us. */
  get acceptedForMs(): number {
    return this.acceptedAtMs === null ? 0 : performance.now() - this.acceptedAtMs;
  }

  get everAccepted(): boolean {
    return this.acceptedAtMs !== null;
  }

  /** Writes whole packets; false, with nothing written, where the connection is gone. */
  write(packets: Uint8Array): boolean {
    if (!this.live) return false;
    this.stream.write(packets);
    return true;
  }

  /** Breaks the connection off. The first reason given is the one reported. */
  fail(reason: string): void {
    this.reason ??= reason;
    this.stream.destroy();
  }

  /**
   * Says DISCONNECT after everything written before, and waits until the connection is over (at most 2 s, then it is
   * broken off). `client.end()` is not used: it waits without bound for a SUBACK that may never come.
   */
  async end(): Promise<void> {
    if (!this.live) {
      this.fail('closed');
    } else if (this.reason === null) {
      this.reason = 'closed';
      // What still comes is read and thrown away. Unread bytes would turn our close into a reset, which can overtake
      // the last PUBACKs; and where back-pressure has stopped the reading, the end of the stream would never be seen.
      this.stream.unpipe();
      this.stream.resume();
      this.stream.end(DISCONNECT);
    }
    const timer = setTimeout(() => this.stream.destroy(), END_GRACE_MS);
    await this.closed;
    clearTimeout(timer);
  }
}

function isAccepting(packet: Packet): packet is Extract<Packet, { cmd: 'connack' }> {
  return packet.cmd === 'connack' && (packet.returnCode ?? packet.reasonCode) === 0;
}
