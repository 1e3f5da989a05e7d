/**
 * MQTT as most programs use it: MQTT.js as it comes, without anything that this folder adds to it. The demo's producer,
 * and the consumer that it compares with.
 */
import { connectAsync, type IClientOptions } from 'mqtt';
import { MqttError } from './errors';

export interface NaiveConsumerOptions {
  readonly url: string;
  readonly clientId: string;
  readonly filter: string;
  /** Called once a delivery. MQTT.js acknowledges by itself when it returns. */
  readonly onMessage: (topic: string, payload: Buffer) => void;
}

export interface NaiveConsumer {
  close(): Promise<void>;
}

export interface PlainMessage {
  readonly topic: string;
  readonly payload: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
const RECONNECT_MS = 100;

/**
 * A consumer with a persistent session of its own at QoS 1, MQTT 3.1.1: it trusts that a message comes once, and
 * reconnects by itself.
 *
 * Resolves when the broker has granted the subscription; rejects with MQTT.js's error where it cannot connect at first.
 */
export async function startNaiveConsumer(options: NaiveConsumerOptions): Promise<NaiveConsumer> {
  const client = await connectAsync(options.url, {
    ...settings(options.clientId),
    clean: false,
    reconnectPeriod: RECONNECT_MS,
  });
  // A broker that is away is tried again; without a listener its ECONNREFUSED would end the process.
  client.on('error', () => undefined);
  client.on('message', options.onMessage);
  await client.subscribeAsync(options.filter, { qos: 1 });
  return {
    // Forced: an orderly end would wait for a broker that may be away.
    close: () => client.endAsync(true),
  };
}

/**
 * Publishes at QoS 1, each message after the PUBACK of the one before, on a connection of its own.
 *
 * Rejects with MQTT.js's error, or with `CONNECTION_LOST` where the connection ends first.
 */
export async function publishInOrder(url: string, clientId: string, messages: readonly PlainMessage[]): Promise<void> {
  const client = await connectAsync(url, { ...settings(clientId), clean: true, reconnectPeriod: 0 }, false);
  client.on('error', () => undefined);
  // Without reconnects MQTT.js leaves a publish open for ever when its connection ends.
  const lost = new Promise<never>((_, reject) => {
    client.once('close', () => reject(new MqttError('CONNECTION_LOST', 'the broker closed the connection')));
  });
  try {
    for (const { topic, payload } of messages) {
      await Promise.race([client.publishAsync(topic, payload, { qos: 1 }), lost]);
    }
  } finally {
    lost.catch(() => undefined); // the end below is a close too
    await client.endAsync(!client.connected);
  }
}

function settings(clientId: string): IClientOptions {
  return { clientId, protocolVersion: 4, connectTimeout: CONNECT_TIMEOUT_MS };
}
