/**
 * Session state of the embedded broker, as far as a standby needs it: which persistent sessions there are, what they
 * subscribed to, and what was not yet acknowledged.
 *
 * aedes keeps a QoS 1 message in the queue of each persistent session from the publish until the PUBACK, delivered or
 * not. A standby that starts with a copy of these queues delivers everything in them again.
 */

/** What aedes 1.2 calls its persistence, narrowed to the members used here. Its typings leave it out. */
export interface SessionStore {
  subscriptionsByClient(client: { readonly id: string }): Promise<readonly Subscription[]>;
  addSubscriptions(client: { readonly id: string }, subscriptions: readonly Subscription[]): Promise<void>;
  outgoingStream(client: { readonly id: string }): AsyncIterable<StoredPacket>;
  outgoingEnqueue(subscription: { readonly clientId: string }, packet: StoredPacket): Promise<void>;
  /** What a PUBACK does. */
  outgoingClearMessageId(client: { readonly id: string }, packet: { readonly messageId?: number }): Promise<unknown>;
}

interface Subscription {
  readonly topic: string;
  readonly qos: 0 | 1 | 2;
}

interface StoredPacket {
  readonly cmd: string;
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: 0 | 1 | 2;
  readonly brokerId?: string;
  readonly brokerCounter?: number;
}

export interface QueuedMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: 0 | 1 | 2;
}

/** A persistent session at one moment; later changes of the broker do not show in it. */
export interface SessionSnapshot {
  readonly clientId: string;
  readonly subscriptions: readonly Subscription[];
  /** Queued or delivered, and not acknowledged, in the order of their publishing. */
  readonly unacknowledged: readonly QueuedMessage[];
}

/** Names restored messages among those that the new broker numbers itself, which carry its own random id. */
const RESTORED = 'restored';

/** The sessions of these clients; one that the broker does not know has neither subscriptions nor messages. */
export async function snapshotSessions(
  store: SessionStore,
  clientIds: readonly string[],
): Promise<readonly SessionSnapshot[]> {
  const snapshots: SessionSnapshot[] = [];
  for (const id of clientIds) {
    const subscriptions = await store.subscriptionsByClient({ id });
    const unacknowledged: QueuedMessage[] = [];
    for await (const { cmd, topic, payload, qos } of store.outgoingStream({ id })) {
      // PUBRELs of QoS 2 wait in the same queue; they carry no message.
      if (cmd === 'publish') unacknowledged.push({ topic, payload: Buffer.from(payload), qos });
    }
    snapshots.push({ clientId: id, subscriptions: subscriptions.map((each) => ({ ...each })), unacknowledged });
  }
  return snapshots;
}

/** Before the first client connects: a session that is being resumed would miss what is restored behind its back. */
export async function restoreSessions(store: SessionStore, snapshots: readonly SessionSnapshot[]): Promise<void> {
  for (const { clientId, subscriptions, unacknowledged } of snapshots) {
    await store.addSubscriptions({ id: clientId }, subscriptions);
    for (const [index, message] of unacknowledged.entries()) {
      // aedes finds a queued packet by this pair, and takes a counter of 0 for none.
      const identity = { brokerId: RESTORED, brokerCounter: index + 1 };
      await store.outgoingEnqueue({ clientId }, { cmd: 'publish', ...message, ...identity });
    }
  }
}

/**
 * From now on acknowledgements wait at the broker as if they were still on their way, until the function that is
 * answered is called; then they count, in the order they came. Deliveries go on.
 */
export function holdAcknowledgements(store: SessionStore): () => void {
  const clear = store.outgoingClearMessageId.bind(store);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  store.outgoingClearMessageId = async (client, packet) => {
    await released;
    return clear(client, packet);
  };
  return () => {
    store.outgoingClearMessageId = clear;
    release();
  };
}
