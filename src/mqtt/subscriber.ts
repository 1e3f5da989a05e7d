/**
 * Consumes one persistent session (design sections 5 and 9): subscribes at QoS 1, holds every PUBACK until it is told
 * that the delivery is decided, and stops reading where the sink asks for it.
 */
import type { ReceivedDelivery, Subscriber, SubscriberEvent, SubscriberOptions } from './port';
import { Connection, type ConnectionSettings } from './connection';
import { Connector } from './connector';
import { shortReason } from './errors';
import { PacketPump, PacketReceipt } from './packet-pump';

export interface MqttSubscriberOptions extends SubscriberOptions {
  /** Name that the deliveries carry; `default` unless given. */
  readonly broker?: string;
  /**
   * MQTT 5 Receive Maximum, 1 to 65535, default 65535 (what the protocol takes for granted). How much may be in flight
   * is bounded by the sink, which stops the reading; a small value here would only stall the feed when as many
   * deliveries wait for their decision, and 3.1.1 has nothing like it.
   */
  readonly receiveMaximum?: number;
}

/** First reason code of a SUBACK that is a refusal (3.1.1 knows 0x80 alone). */
const REFUSAL = 0x80;

/**
 * Keep-alive 30 s, connect timeout 10 s, back-off between 250 ms and 30 s unless given. `onEvent` must not throw; if it
 * does, that is a process warning and nothing else.
 */
export function createSubscriber(options: MqttSubscriberOptions): Subscriber {
  return new SessionSubscriber(options);
}

class SessionSubscriber implements Subscriber {
  private readonly connector: Connector;
  private readonly settings: ConnectionSettings;
  private pump: PacketPump | null = null;

  constructor(private readonly options: MqttSubscriberOptions) {
    this.settings = {
      clientId: options.clientId,
      username: options.username,
      password: options.password,
      tls: options.tls,
      protocolVersion: options.protocolVersion,
      keepaliveSeconds: options.keepaliveSeconds ?? 30,
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
      // Under MQTT 5 this alone would give a session that ends with the connection.
      clean: false,
      // No Maximum Packet Size: a broker drops what is larger, without a word to anyone. Nothing real may vanish so.
      properties: {
        sessionExpiryInterval: options.sessionExpirySeconds,
        receiveMaximum: options.receiveMaximum ?? 65_535,
      },
    };
    this.connector = new Connector({
      urls: options.urls,
      backOff: { minMs: options.reconnectMinMs ?? 250, maxMs: options.reconnectMaxMs ?? 30_000 },
      mayConnect: options.mayConnect,
      open: (url) => this.open(url),
      disconnected: (reason) => this.emit({ type: 'disconnected', reason }),
    });
  }

  start(): void {
    this.connector.start();
  }

  resume(): void {
    this.pump?.resume();
  }

  stopIntake(): void {
    // Not to reconnect either: on another connection there would be nothing to acknowledge.
    this.connector.stop();
    this.pump?.stop();
  }

  acknowledge(deliveries: readonly ReceivedDelivery[]): number {
    let written = 0;
    let run: PacketReceipt[] = [];
    for (const { acknowledgement } of deliveries) {
      if (!(acknowledgement instanceof PacketReceipt)) continue; // QoS 0
      const [first] = run;
      if (first && first.pump !== acknowledgement.pump) {
        written += first.pump.acknowledge(run);
        run = [];
      }
      run.push(acknowledgement);
    }
    return written + (run[0]?.pump.acknowledge(run) ?? 0);
  }

  async close(): Promise<void> {
    this.stopIntake();
    await this.connector.current?.end();
  }

  private open(url: string): Connection {
    const connection = new Connection(url, this.settings, {
      accepted: (sessionPresent) => this.emit({ type: 'connected', sessionPresent }),
      ready: () => this.subscribe(connection),
    });
    // Before the first byte is read: messages of a resumed session come in the same chunk as the CONNACK.
    this.pump = new PacketPump(connection, this.options.sink, this.options.broker ?? 'default');
    return connection;
  }

  /**
   * At every CONNACK, also where the session was present: a session may have been restored without (some of) its
   * subscriptions, and then nothing would come, without an error. The broker sends retained messages again for it.
   */
  private subscribe(connection: Connection): void {
    const { filters, formerFilters = [] } = this.options;
    // At every CONNACK too: a standby may come up with a session of before. The answer does not matter: what comes all
    // the same is held, and the next CONNACK asks again.
    if (formerFilters.length > 0) connection.client.unsubscribe([...formerFilters]);
    connection.client.subscribe([...filters], { qos: 1 }, (error, _asked, packet) => {
      // Out of MQTT.js' promise chain, where an exception would call this a second time.
      process.nextTick(() => this.subscribed(connection, error, packet?.granted));
    });
  }

  private subscribed(connection: Connection, error: Error | null, granted: readonly unknown[] | undefined): void {
    if (granted?.length !== this.options.filters.length) {
      // The connection ended first, which is an event of its own, or MQTT.js did not send the filters at all.
      if (connection.live) this.emitRefusals(this.options.filters, shortReason(error));
      return;
    }
    const isRefused = (index: number): boolean => Number(granted[index]) >= REFUSAL;
    const accepted = this.options.filters.filter((_, index) => !isRefused(index));
    if (accepted.length > 0) this.emit({ type: 'subscribed', filters: accepted });
    const refused = new Map<string, string[]>();
    this.options.filters.forEach((filter, index) => {
      if (!isRefused(index)) return;
      const reason = `reason code 0x${Number(granted[index]).toString(16)}`;
      refused.set(reason, [...(refused.get(reason) ?? []), filter]);
    });
    for (const [reason, filters] of refused) this.emitRefusals(filters, reason);
  }

  private emitRefusals(filters: readonly string[], reason: string): void {
    this.emit({ type: 'refused', filters, reason });
  }

  private emit(event: SubscriberEvent): void {
    try {
      this.options.onEvent(event);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}
