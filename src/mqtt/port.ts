/**
 * What the pipeline needs of MQTT (design sections 5 and 9). `mqtt/` implements it; nothing else imports the library.
 */
import type { Delivery } from '../contract/types';

export interface ReceivedDelivery extends Delivery {
  /** When it reached us, milliseconds since 1970. For metrics alone. */
  readonly receivedAtMs: number;
  /** Opaque: names the packet on the very connection it came on. Null for QoS 0. */
  readonly acknowledgement: unknown;
}

export interface DeliverySink {
  /**
   * Takes a delivery, always. Answers whether more may come: on `false` the subscriber stops reading from the
   * connection (keep-alive goes on) until `resume()`.
   */
  offer(delivery: ReceivedDelivery): boolean;
}

export type SubscriberEvent =
  | { readonly type: 'connected'; readonly sessionPresent: boolean }
  | { readonly type: 'disconnected'; readonly reason: string }
  | { readonly type: 'subscribed'; readonly filters: readonly string[] }
  /** A filter was refused by the broker: nothing will come on it. */
  | { readonly type: 'refused'; readonly filters: readonly string[]; readonly reason: string };

/** For `mqtts://` and `wss://`; PEM texts. What is left out is Node's default. */
export interface TlsMaterial {
  /** Certificates of the authorities that may vouch for the broker; default those that Node knows. */
  readonly ca?: string;
  /** Our certificate, for brokers that ask for one, and its key: both or none. */
  readonly cert?: string;
  readonly key?: string;
}

export interface SubscriberOptions {
  /** Tried in turn: `mqtt://`, `mqtts://`, `ws://`, `wss://`. */
  readonly urls: readonly string[];
  readonly username?: string;
  readonly password?: string;
  readonly tls?: TlsMaterial;
  readonly clientId: string;
  readonly filters: readonly string[];
  /**
   * What the session may still be subscribed to from before and should not be: a persistent session keeps every
   * filter until it is unsubscribed. None of `filters` is among them. Default none.
   */
  readonly formerFilters?: readonly string[];
  readonly protocolVersion: 4 | 5;
  readonly sessionExpirySeconds: number;
  readonly keepaliveSeconds?: number;
  readonly connectTimeoutMs?: number;
  /** Full jitter over an exponential back-off between these two. */
  readonly reconnectMinMs?: number;
  readonly reconnectMaxMs?: number;
  /** Asked before every connect: false gives the connection up for now, and it is asked again after the back-off. */
  readonly mayConnect?: () => Promise<boolean>;
  readonly sink: DeliverySink;
  readonly onEvent: (event: SubscriberEvent) => void;
}

export interface Subscriber {
  /** Starts connecting; resolves at once. Connection trouble is an event, never a rejection. */
  start(): void;
  /** Read on after `offer` answered false. */
  resume(): void;
  /** Stops reading for good; deliveries already taken can still be acknowledged. */
  stopIntake(): void;
  /**
   * Writes the PUBACKs, in the order given (receive order), to the connections they came on. Those whose connection
   * is gone are left out: the broker delivers them again. Answers how many were written.
   */
  acknowledge(deliveries: readonly ReceivedDelivery[]): number;
  /** Ends the connection and keeps the session at the broker. */
  close(): Promise<void>;
}

/** Publishes the outbox (design section 7, forwarding). */
export interface OutboundMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  /** MQTT 5 user properties; on 3.1.1 they travel in an envelope `{meta, payload}`. */
  readonly properties: Readonly<Record<string, string>>;
}

export interface Publisher {
  /** Resolves when the broker acknowledged (QoS 1); rejects when it did not, and then it may or may not have arrived. */
  publish(message: OutboundMessage): Promise<void>;
  close(): Promise<void>;
}
