/**
 * A persistent QoS 1 session whose owner is away while its backlog is queued, and the check that it was drained.
 * MQTT 5, the product's default, for every part.
 */
import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt';
import type { BenchMessage } from './workload';

export interface BrokerSession {
  readonly url: string;
  readonly clientId: string;
  readonly topicFilter: string;
}

const SESSION_EXPIRY_SECONDS = 3600;
/** Messages that are handed to MQTT.js before their PUBACKs are awaited: it keeps each of them in memory. */
const PUBLISH_CHUNK = 2000;

/** How the session is opened, by us and by the measured consumers alike. */
export function sessionOptions(clientId: string): IClientOptions {
  return {
    protocolVersion: 5,
    clientId,
    clean: false,
    reconnectPeriod: 0,
    properties: { sessionExpiryInterval: SESSION_EXPIRY_SECONDS, receiveMaximum: 65_535 },
  };
}

/** Opens the session and leaves it, so that the broker queues from now on. */
export async function openSession(session: BrokerSession): Promise<void> {
  const client = await connectAsync(session.url, sessionOptions(session.clientId), false);
  await client.subscribeAsync(session.topicFilter, { qos: 1 });
  await client.endAsync();
}

/** Resolves when the broker has taken all of them. */
export async function publishBacklog(url: string, messages: Iterable<BenchMessage>): Promise<void> {
  const client = await connectAsync(url, { protocolVersion: 5, reconnectPeriod: 0 }, false);
  try {
    let sends: Promise<unknown>[] = [];
    for (const { topic, payload } of messages) {
      sends.push(client.publishAsync(topic, payload, { qos: 1 }));
      if (sends.length < PUBLISH_CHUNK) continue;
      await Promise.all(sends);
      sends = [];
    }
    await Promise.all(sends);
  } finally {
    await client.endAsync();
  }
}

/**
 * Takes the session over from its consumer: what the broker still delivers was not acknowledged.
 * @throws Error where there is any
 */
export async function checkDrained(session: BrokerSession): Promise<void> {
  let left = 0;
  const client = await connectAsync(session.url, sessionOptions(session.clientId), false);
  client.on('packetreceive', (packet) => {
    if (packet.cmd === 'publish') left += 1;
  });
  // The broker sends what is queued before it answers a later request.
  await client.subscribeAsync(session.topicFilter, { qos: 1 });
  await client.endAsync();
  if (left > 0) throw new Error(`${session.clientId}: ${left} messages were left unacknowledged`);
}

/** Resolves with the time (`performance.now()`) at which the broker accepts the client. */
export function acceptedAt(client: MqttClient): Promise<number> {
  return new Promise((resolve, reject) => {
    client.once('error', reject);
    // Not the event `connect`, which comes after the first messages of a session that was present.
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'connack') resolve(performance.now());
    });
  });
}
