import { connectAsync, type IClientPublishOptions, type IPublishPacket, type MqttClient } from 'mqtt';
import type { ReceivedDelivery, Subscriber, SubscriberEvent } from '../../src/mqtt/port';
import { createSubscriber, type MqttSubscriberOptions } from '../../src/mqtt/subscriber';
import { onCleanup } from './cleanup';
import type { ChunkHook } from './tcp-proxy';
import { until } from './wait';

export interface TestMessage {
  readonly topic: string;
  readonly payload: string | Uint8Array;
  /** Default 1. */
  readonly qos?: 0 | 1 | 2;
  readonly retain?: boolean;
  /** MQTT 5 alone. */
  readonly userProperties?: Readonly<Record<string, string | string[]>>;
}

/** Publishes all over one connection, in order, without waiting in between; resolves when the broker has them all. */
export async function publishAll(
  url: string,
  messages: readonly TestMessage[],
  protocolVersion: 4 | 5 = 4,
): Promise<void> {
  const client = await connectAsync(url, { protocolVersion, reconnectPeriod: 0 }, false);
  try {
    await Promise.all(
      messages.map(({ topic, payload, qos = 1, retain = false, userProperties }) => {
        const options: IClientPublishOptions = { qos, retain };
        if (userProperties) options.properties = { userProperties: { ...userProperties } };
        return client.publishAsync(topic, Buffer.from(payload), options);
      }),
    );
  } finally {
    await client.endAsync();
  }
}

export interface NaiveConsumer {
  /** Every PUBLISH packet, in order: what a consumer without a ledger applies. */
  readonly received: readonly IPublishPacket[];
  readonly client: MqttClient;
  close(): Promise<void>;
}

/** A plain consumer: subscribes at QoS 1 and acknowledges at once, as most do. */
export async function startNaiveConsumer(
  url: string,
  filters: readonly string[],
  options: { readonly clientId?: string; readonly protocolVersion?: 4 | 5 } = {},
): Promise<NaiveConsumer> {
  const received: IPublishPacket[] = [];
  const { clientId, protocolVersion = 4 } = options;
  const session =
    clientId === undefined ? {} : { clientId, clean: false, properties: { sessionExpiryInterval: 3_600 } };
  const client = await connectAsync(url, { protocolVersion, reconnectPeriod: 100, ...session });
  client.on('message', (_topic, _payload, packet) => received.push(packet));
  await client.subscribeAsync([...filters], { qos: 1 });
  const close = async (): Promise<void> => client.endAsync(true);
  onCleanup(close);
  return { received, client, close };
}

export interface Observer {
  readonly subscriber: Subscriber;
  /** Every delivery that was offered, in order. */
  readonly deliveries: readonly ReceivedDelivery[];
  readonly events: readonly SubscriberEvent[];
  /** What `offer` answers from now on, asked after the delivery was added; default always true. */
  wantMore: (delivery: ReceivedDelivery) => boolean;
  texts(): string[];
  /** Events of one type. */
  eventsOf<T extends SubscriberEvent['type']>(type: T): Array<Extract<SubscriberEvent, { type: T }>>;
  /** Waits until so many deliveries have come, counted from the start. */
  received(count: number): Promise<void>;
  /** Waits until so many SUBACKs have come. */
  subscribed(count?: number): Promise<void>;
}

/** The product's own subscriber with a sink that only collects; started, and closed at the end of the test file. */
export function startObserver(
  options: Partial<MqttSubscriberOptions> & { readonly urls: readonly string[] },
): Observer {
  const deliveries: ReceivedDelivery[] = [];
  const events: SubscriberEvent[] = [];
  const observer: Observer = {
    subscriber: createSubscriber({
      clientId: 'observer',
      filters: ['cad/#'],
      protocolVersion: 4,
      sessionExpirySeconds: 3_600,
      reconnectMinMs: 20,
      reconnectMaxMs: 200,
      sink: {
        offer: (delivery) => {
          deliveries.push(delivery);
          return observer.wantMore(delivery);
        },
      },
      onEvent: (event) => events.push(event),
      ...options,
    }),
    deliveries,
    events,
    wantMore: () => true,
    texts: () => deliveries.map(({ payload }) => Buffer.from(payload).toString()),
    eventsOf: <T extends SubscriberEvent['type']>(type: T) =>
      events.filter((event): event is Extract<SubscriberEvent, { type: T }> => event.type === type),
    received: async (count) => {
      await until(() => deliveries.length >= count, { what: `${count} deliveries` });
    },
    subscribed: async (count = 1) => {
      await until(() => observer.eventsOf('subscribed').length >= count, { what: `${count} SUBACK` });
    },
  };
  onCleanup(() => observer.subscriber.close());
  observer.subscriber.start();
  return observer;
}

/** MQTT control packet types (MQTT 3.1.1 section 2.2.1), the ones that tests look for. */
export const PACKET = {
  CONNECT: 1,
  PUBLISH: 3,
  PUBACK: 4,
  PUBREC: 5,
  SUBSCRIBE: 8,
  PINGREQ: 12,
  DISCONNECT: 14,
} as const;

export interface WirePacket {
  /** Connection of the proxy that it came on. */
  readonly connection: number;
  readonly type: number;
  /** Everything after the fixed header. */
  readonly body: Buffer;
}

export interface WireLog {
  /** For `onClientData` or `onServerData` of a TCP proxy. */
  readonly hook: ChunkHook;
  readonly packets: readonly WirePacket[];
  /** Packet ids of PUBACKs, on one connection or on all. */
  acknowledged(connection?: number): number[];
  count(type: number): number;
}

/** Reads the packets that pass through a proxy in one direction: what really went over the wire. */
export function wireLog(): WireLog {
  const packets: WirePacket[] = [];
  const rests = new Map<number, Buffer>();
  return {
    packets,
    hook: (chunk, { id }) => {
      let rest = Buffer.concat([rests.get(id) ?? Buffer.alloc(0), chunk]);
      for (let packet = firstPacket(rest); packet; packet = firstPacket(rest)) {
        packets.push({ connection: id, type: rest.readUInt8(0) >> 4, body: rest.subarray(packet.start, packet.end) });
        rest = rest.subarray(packet.end);
      }
      rests.set(id, rest);
    },
    acknowledged: (connection) =>
      packets
        .filter((packet) => packet.type === PACKET.PUBACK && packet.connection === (connection ?? packet.connection))
        .map((packet) => packet.body.readUInt16BE(0)),
    count: (type) => packets.filter((packet) => packet.type === type).length,
  };
}

/** Bounds of the body of the packet that a buffer begins with; null while it is incomplete. */
function firstPacket(bytes: Buffer): { readonly start: number; readonly end: number } | null {
  let length = 0;
  for (let index = 1; index < bytes.length && index <= 4; index += 1) {
    const digit = bytes.readUInt8(index);
    length += (digit & 0x7f) * 128 ** (index - 1);
    if (digit < 0x80) return bytes.length >= index + 1 + length ? { start: index + 1, end: index + 1 + length } : null;
  }
  return null;
}
