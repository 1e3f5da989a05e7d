import { decodeDelivery, type DecodeLimits } from '../../src/contract/decode';
import type { Delivery, FeedContract, KeyedMessage, Message } from '../../src/contract/types';

/** The contract of the cases (`test/cases/README.md`), with what a test changes. */
export function feedContract(overrides: Partial<FeedContract> = {}): FeedContract {
  return {
    apiVersion: 'replay-ledger/v1',
    feed: 'cad-north',
    description: 'CAD events',
    owner: 'north',
    topics: ['cad/+/+/incident'],
    brokers: ['default'],
    decode: 'json',
    items: null,
    identity: {
      version: 1,
      mode: 'sequence',
      agency: [{ pointer: '/agency' }],
      source: [{ pointer: '/src' }],
      epoch: null,
      sequence: [{ pointer: '/seq' }],
    },
    incident: [{ pointer: '/incident' }],
    occurredAt: null,
    digest: { ignore: [] },
    consume: 'owned',
    dedup: { windowSeconds: 600, maxEntries: 1000, ordering: 'strict', contiguous: false, maxSequenceJump: null },
    policy: { managedBy: 'api' },
    delivery: { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 },
    effects: [],
    forward: null,
    ...overrides,
  };
}

/** The same with `/boot` as the epoch. */
export function epochContract(order: 'opaque' | 'numeric' = 'opaque'): FeedContract {
  const { identity } = feedContract();
  if (identity.mode !== 'sequence') throw new Error('the feed of the cases has sequences');
  return feedContract({ identity: { ...identity, epoch: { value: [{ pointer: '/boot' }], order } } });
}

/** A feed that is identified by the event id at these pointers. */
export function eventIdContract(...pointers: string[]): FeedContract {
  return feedContract({
    identity: {
      version: 1,
      mode: 'eventId',
      agency: [{ pointer: '/agency' }],
      source: [{ pointer: '/src' }],
      eventId: pointers.map((pointer) => [{ pointer }]),
    },
  });
}

export function delivery(payload: string | Uint8Array, overrides: Partial<Delivery> = {}): Delivery {
  return {
    broker: 'default',
    topic: 'cad/north/e1/incident',
    payload: typeof payload === 'string' ? Buffer.from(payload, 'utf8') : payload,
    qos: 1,
    dup: false,
    retained: false,
    userProperties: {},
    ...overrides,
  };
}

export function decodeAll(
  contract: FeedContract,
  payload: string | Uint8Array,
  overrides: Partial<Delivery> = {},
  limits: Partial<DecodeLimits> = {},
): Message[] {
  return decodeDelivery(contract, delivery(payload, overrides), limits);
}

/** The only message of a delivery. */
export function decodeOne(
  contract: FeedContract,
  payload: string | Uint8Array,
  overrides: Partial<Delivery> = {},
): Message {
  const messages = decodeAll(contract, payload, overrides);
  const [message] = messages;
  if (message === undefined || messages.length !== 1) throw new Error(`one message expected, not ${messages.length}`);
  return message;
}

/** The only message of a delivery, which must have an identity. */
export function decodeKeyed(
  contract: FeedContract,
  payload: string | Uint8Array,
  overrides: Partial<Delivery> = {},
): KeyedMessage {
  const message = decodeOne(contract, payload, overrides);
  if (message.kind !== 'keyed') throw new Error(`a keyed message expected, not ${message.kind}: ${message.reason}`);
  return message;
}
