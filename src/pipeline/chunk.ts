/**
 * How much goes into one transaction: bounded by messages and by what travels to the database, so that no delivery,
 * however it fans out, meets a time limit or the longest string there is. Pure.
 */
import type { KeyedMessage } from '../contract/types';
import type { ReceivedDelivery } from '../mqtt/port';
import type { Received } from './prepare';

/** What one transaction takes well within its time; a batch of ordinary size is far below. */
const MAX_MESSAGES = 5_000;
/** Characters of the documents for the database, about; a string may have 512 Mi. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Of an entry without its texts: digests, numbers, names of members. */
const ENTRY_CHARACTERS = 1_000;

/** How many of the messages, from the first on, go into one transaction: at least one. */
export function chunkLength(received: readonly Received[]): number {
  const bound = Math.min(received.length, MAX_MESSAGES);
  let characters = 0;
  let delivery: ReceivedDelivery | null = null;
  for (let count = 0; count < bound; count += 1) {
    // Within the bounds of the array.
    const one = received[count] as Received;
    if (one.delivery !== delivery) {
      delivery = one.delivery;
      characters += base64Length(delivery.payload);
    }
    characters += ENTRY_CHARACTERS + delivery.topic.length;
    if (one.message.kind === 'keyed') characters += messageCharacters(one.message);
    if (characters > MAX_CHARACTERS && count > 0) return count;
  }
  return bound;
}

/** The deliveries that the messages came in, once each, in order. */
export function deliveriesOf(received: readonly Received[]): ReceivedDelivery[] {
  return [...new Set(received.map(({ delivery }) => delivery))];
}

function messageCharacters({ plan }: KeyedMessage): number {
  if (!plan.ok) return plan.detail.length;
  let characters = plan.forward === null ? 0 : base64Length(plan.forward.payload);
  for (const effect of plan.effects) {
    characters += effect.field.length;
    if (effect.do === 'set') characters += effect.to.length;
    if (effect.do === 'append') characters += effect.value.length;
  }
  return characters;
}

function base64Length({ byteLength }: Uint8Array): number {
  return Math.ceil(byteLength / 3) * 4;
}
