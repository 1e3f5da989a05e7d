/**
 * Publishes the outbox at QoS 1 (design section 7, forwarding).
 *
 * The outbox is the queue; here there is none that could outlive a connection. MQTT.js as a publisher sends what was
 * unacknowledged again after a reconnect, without DUP and behind the caller's back. So when a connection ends, every
 * publish that was given to us is rejected, those not yet sent as well: the relay starts again at the first row that is
 * not marked sent, and order by position is kept. Were the later ones sent while the earlier ones wait for their retry,
 * a consumer that guards by position would drop the earlier ones for good. For the same reason a refusal by the broker
 * rejects everything that has not been sent yet; what was in flight beside the refused message may have arrived before it.
 */
import type { OutboundMessage, Publisher, TlsMaterial } from './port';
import { Connection, type ConnectionSettings } from './connection';
import { Connector } from './connector';
import { toEnvelope } from './envelope';
import { MqttError, shortReason } from './errors';

export interface PublisherOptions {
  /** Tried in turn: `mqtt://`, `mqtts://`, `ws://`, `wss://`. */
  readonly urls: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly tls?: TlsMaterial;
  readonly clientId: string;
  readonly protocolVersion: 4 | 5;
  /** Default 30. */
  readonly keepaliveSeconds?: number;
  /** Default 10 000. */
  readonly connectTimeoutMs?: number;
  /** Full jitter over an exponential back-off between these two; default 250 and 30 000. */
  readonly reconnectMinMs?: number;
  readonly reconnectMaxMs?: number;
  /** From the call of `publish` to the PUBACK, waiting for a connection included; default 10 000. */
  readonly publishTimeoutMs?: number;
}

interface Pending {
  readonly message: OutboundMessage;
  readonly resolve: () => void;
  readonly reject: (error: MqttError) => void;
  readonly timer: NodeJS.Timeout;
  sent: boolean;
}

/** Unacknowledged publishes at a time, at most; less where an MQTT 5 broker announces a smaller Receive Maximum. */
const MAX_IN_FLIGHT = 1_000;
const TOPIC_BYTES = 65_535;

/**
 * Connects with the first `publish`. Rejections are `MqttError`; with `INVALID_TOPIC`, `NOT_CONNECTED` and
 * `HELD_BACK` nothing was sent, with `REFUSED` the broker did not take it, with the others it may or may not have arrived.
 */
export function createPublisher(options: PublisherOptions): Publisher {
  return new OutboxPublisher(options);
}

class OutboxPublisher implements Publisher {
  private readonly connector: Connector;
  private readonly settings: ConnectionSettings;
  private readonly timeoutMs: number;
  /** Set in insertion order: those sent come before those not yet sent. */
  private readonly pending = new Set<Pending>();
  private readonly waiting: Pending[] = [];
  private ready: Connection | null = null;
  private inFlight = 0;
  private lastReason = 'not connected yet';
  private isClosed = false;

  constructor(options: PublisherOptions) {
    this.timeoutMs = options.publishTimeoutMs ?? 10_000;
    this.settings = {
      clientId: options.clientId,
      username: options.username,
      password: options.password,
      tls: options.tls,
      protocolVersion: options.protocolVersion,
      keepaliveSeconds: options.keepaliveSeconds ?? 30,
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
      clean: true,
    };
    this.connector = new Connector({
      urls: options.urls,
      backOff: { minMs: options.reconnectMinMs ?? 250, maxMs: options.reconnectMaxMs ?? 30_000 },
      open: (url) => this.open(url),
      disconnected: (reason) => this.disconnected(reason),
    });
  }

  async publish(message: OutboundMessage): Promise<void> {
    if (this.isClosed) throw new MqttError('CLOSED', 'the publisher is closed');
    // A broker answers an invalid topic by closing the connection, which would take every other publish with it.
    if (!isTopicName(message.topic)) throw new MqttError('INVALID_TOPIC', 'not a topic name that can be published to');
    this.connector.start();
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => this.timedOut(entry), this.timeoutMs);
      const entry: Pending = { message, resolve, reject, timer, sent: false };
      this.pending.add(entry);
      this.waiting.push(entry);
      this.sendWaiting();
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.connector.stop();
    this.rejectAll('CLOSED', 'the publisher was closed');
    await this.connector.current?.end();
  }

  private open(url: string): Connection {
    const connection = new Connection(url, this.settings, {
      ready: () => {
        this.ready = connection;
        this.inFlight = 0;
        this.sendWaiting();
      },
    });
    return connection;
  }

  private disconnected(reason: string): void {
    this.lastReason = reason;
    // An attempt that never came up has sent nothing: what waits may go on waiting, within its time.
    if (!this.ready) return;
    this.ready = null;
    this.rejectAll('CONNECTION_LOST', `the connection ended before the acknowledgement: ${reason}`);
  }

  private sendWaiting(): void {
    const connection = this.ready;
    if (!connection?.live) return;
    const limit = Math.min(MAX_IN_FLIGHT, connection.client.serverProperties?.receiveMaximum ?? MAX_IN_FLIGHT);
    while (this.inFlight < limit) {
      const entry = this.waiting.shift();
      if (!entry) return;
      this.send(connection, entry);
    }
  }

  private send(connection: Connection, entry: Pending): void {
    entry.sent = true;
    this.inFlight += 1;
    const { topic, payload, properties } = entry.message;
    const isV5 = this.settings.protocolVersion === 5;
    const body = isV5
      ? Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
      : toEnvelope(properties, payload);
    // MQTT.js writes a packet of the wrong length for an empty set, and the broker waits for the rest of it for ever.
    const hasProperties = isV5 && Object.keys(properties).length > 0;
    const publishProperties = hasProperties ? { userProperties: { ...properties } } : undefined;
    connection.client.publish(topic, body, { qos: 1, properties: publishProperties }, (error) => {
      // After the end of the connection everything is rejected from one place.
      if (!connection.live) return;
      this.inFlight -= 1;
      if (error) this.refused(entry, error);
      else this.settle(entry, null);
      this.sendWaiting();
    });
  }

  private refused(entry: Pending, error: Error): void {
    this.settle(entry, new MqttError('REFUSED', shortReason(error), { cause: error }));
    for (const later of this.waiting.splice(0)) {
      this.settle(later, new MqttError('HELD_BACK', 'not sent: the broker refused a message before it'));
    }
  }

  private timedOut(entry: Pending): void {
    if (!entry.sent && !this.ready) {
      this.rejectAll('NOT_CONNECTED', `no broker accepted us within ${this.timeoutMs} ms: ${this.lastReason}`);
      return;
    }
    this.rejectAll('TIMEOUT', `no acknowledgement within ${this.timeoutMs} ms`);
    // Its packet id stays taken on this connection, and whatever keeps the broker from answering concerns the others.
    const connection = this.ready;
    this.ready = null; // what is published from now on waits for the next one
    connection?.fail('no acknowledgement in time');
  }

  private rejectAll(code: 'NOT_CONNECTED' | 'CONNECTION_LOST' | 'TIMEOUT' | 'CLOSED', message: string): void {
    this.waiting.length = 0;
    for (const entry of this.pending) this.settle(entry, new MqttError(code, message));
  }

  private settle(entry: Pending, error: MqttError | null): void {
    clearTimeout(entry.timer);
    this.pending.delete(entry);
    if (error) entry.reject(error);
    else entry.resolve();
  }
}

/** MQTT 3.1.1 section 4.7: 1 to 65535 bytes, no wildcards, no NUL. */
function isTopicName(topic: string): boolean {
  return topic.length > 0 && !/[+#\0]/.test(topic) && Buffer.byteLength(topic) <= TOPIC_BYTES;
}
