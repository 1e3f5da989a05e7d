/**
 * From a delivery to its messages (design sections 3, 4 and 7): decode, fan out, identity, digest, plan.
 *
 * Never throws on what was delivered: whatever cannot be read exactly becomes a malformed message. Every delivery
 * yields at least one message.
 */
import { canonicalJsonWithout, omissionOf, type Omission } from './canonical';
import { compileEffects, planEffects, readIncident, type CompiledEffects } from './effects-plan';
import { Expansion, planCharacters } from './expansion';
import { formerContracts, withFormer, type FormerDelivery } from './former';
import { compileIdentity, readIdentity, type CompiledIdentity } from './identity';
import { itemBytes, parseJson } from './json';
import { isJsonArray, type JsonArray, type JsonDocument, type JsonFault, type JsonValue } from './json-value';
import { idempotencyKey, sha256Hex } from './key';
import { compilePointer, getPointer, type PointerTokens } from './pointer';
import { utcTime } from './time';
import { topicMatches } from './topic-filter';
import type { Delivery, FeedContract, FormerReading, Identity, MalformedMessage, Message } from './types';
import { compileSource, DeliveryValues, MessageReader, type CompiledSource } from './values';

export interface DecodeLimits {
  /** A larger payload is malformed (`payload_too_large`) and not parsed. */
  readonly maxPayloadBytes: number;
  /** A longer array of items makes one malformed message (`too_many_items`): 1 MiB can hold half a million `0`. */
  readonly maxItems: number;
}

export const DEFAULT_DECODE_LIMITS: DecodeLimits = { maxPayloadBytes: 1_048_576, maxItems: 100_000 };

/** A contract made ready for the hot path: pointers, templates and conditions are taken apart once. */
export interface Decoder {
  readonly contract: FeedContract;
  /** One message at least, in the order of the items. */
  decode(delivery: Delivery): Message[];
}

/**
 * Throws `RangeError` for a contract that the loader must have refused (a pointer or template that is none).
 *
 * @param history contracts of the feed under which something was decided, in the order in which they were in force;
 *   those of a lower identity version are read by as well (`KeyedMessage.former`)
 */
export function compileContract(
  contract: FeedContract,
  limits: Partial<DecodeLimits> = {},
  history: readonly FeedContract[] = [],
): Decoder {
  const allLimits = { ...DEFAULT_DECODE_LIMITS, ...limits };
  const former = formerContracts(contract, history).map((one) => new ContractDecoder(one, allLimits, []));
  return new ContractDecoder(contract, allLimits, former);
}

/** Decodes one delivery. Whoever decodes many compiles the contract once. */
export function decodeDelivery(
  contract: FeedContract,
  delivery: Delivery,
  limits: Partial<DecodeLimits> = {},
): Message[] {
  return compileContract(contract, limits).decode(delivery);
}

/**
 * The bytes of one message of a delivery as they came: the payload itself for index null, else the item's part of it.
 * Null where the payload has no such item. `items`: the contract's pointer.
 */
export function messagePayload(items: string | null, payload: Uint8Array, itemIndex: number | null): Uint8Array | null {
  if (items === null || itemIndex === null) return payload;
  const parse = parseJson(payload);
  if (!parse.ok) return null;
  const array = getPointer(parse.document.value, compilePointer(items));
  return isJsonArray(array) ? itemBytes(parse.document, array, itemIndex) : null;
}

/** One for all messages of feeds that never changed their identity. */
const NO_FORMER: readonly FormerReading[] = [];

class ContractDecoder implements Decoder {
  private readonly items: PointerTokens | null;
  private readonly identity: CompiledIdentity;
  private readonly incident: CompiledSource | null;
  private readonly occurredAt: CompiledSource | null;
  private readonly omission: Omission | null;
  private readonly effects: CompiledEffects;

  constructor(
    readonly contract: FeedContract,
    private readonly limits: DecodeLimits,
    private readonly former: readonly ContractDecoder[],
  ) {
    const batch = contract.items !== null;
    this.items = contract.items === null ? null : compilePointer(contract.items);
    this.identity = compileIdentity(contract.identity, batch);
    this.incident = contract.incident && compileSource(contract.incident, batch);
    this.occurredAt = contract.occurredAt && compileSource(contract.occurredAt, batch);
    this.omission = omissionOf(contract.digest === 'off' ? [] : contract.digest.ignore.map(compilePointer));
    this.effects = compileEffects(contract);
  }

  decode(delivery: Delivery): Message[] {
    const { payload } = delivery;
    if (payload.byteLength === 0) return [{ kind: 'ignored', itemIndex: null, reason: 'empty_payload' }];
    // Before the topic is looked at: by this reason the bytes are not stored, whatever else is wrong with the delivery.
    const { maxPayloadBytes } = this.limits;
    if (payload.byteLength > maxPayloadBytes) {
      const detail = `${payload.byteLength} bytes, more than ${maxPayloadBytes}`;
      return [malformed(null, 'payload_too_large', detail)];
    }
    if (!this.takes(delivery)) {
      return [malformed(null, 'topic_not_in_contract', 'no topic filter of the contract takes this topic')];
    }
    const parse = parseJson(payload);
    if (!parse.ok) return [malformed(null, parse.fault.reason, parse.fault.detail)];
    const messages = this.read(parse.document, delivery);
    return this.former.length === 0
      ? messages
      : withFormer(messages, this.contract, this.readFormer(parse.document, delivery));
  }

  private takes({ topic }: Delivery): boolean {
    return this.contract.topics.some((filter) => topicMatches(filter, topic));
  }

  private readFormer(document: JsonDocument, delivery: Delivery): FormerDelivery[] {
    return this.former
      .filter((one) => one.takes(delivery))
      .map((one) => ({ contract: one.contract, messages: one.read(document, delivery) }));
  }

  private read(document: JsonDocument, delivery: Delivery): Message[] {
    if (this.items !== null) return this.batch(document, getPointer(document.value, this.items), delivery);
    const [fault] = document.faults;
    if (fault !== undefined) return [malformed(null, fault.reason, fault.detail)];
    const reader = new MessageReader(document.value, new DeliveryValues(document.value, delivery));
    const expansion = new Expansion(delivery);
    const message = this.message(reader, null, () => delivery.payload);
    return [expansion.add(charactersOf(message, reader)) ? message : tooLarge(expansion)];
  }

  /** One message an item. A fault within an item spoils that item, one outside them spoils the delivery. */
  private batch(document: JsonDocument, items: JsonValue | undefined, delivery: Delivery): Message[] {
    const array = isJsonArray(items) ? items : null;
    const faults = faultsByItem(document, array);
    if (faults.outside !== null) return [malformed(null, faults.outside.reason, faults.outside.detail)];
    if (items === undefined) return [malformed(null, 'items_missing', 'the payload has no items')];
    if (array === null) return [malformed(null, 'items_not_an_array', 'the items are no array')];
    if (array.length === 0) return [{ kind: 'ignored', itemIndex: null, reason: 'empty_items' }];
    if (array.length > this.limits.maxItems) {
      return [malformed(null, 'too_many_items', `${array.length} items, more than ${this.limits.maxItems}`)];
    }
    return this.itemMessages(document, array, faults.byItem, delivery);
  }

  private itemMessages(
    document: JsonDocument,
    array: JsonArray,
    faults: ReadonlyMap<number, JsonFault>,
    delivery: Delivery,
  ): Message[] {
    const shared = new DeliveryValues(document.value, delivery);
    const expansion = new Expansion(delivery);
    const messages: Message[] = [];
    for (const [index, item] of array.entries()) {
      const fault = faults.get(index);
      const reader = new MessageReader(item, shared);
      const payload = (): Uint8Array => itemBytes(document, array, index) ?? unreachableItem(index);
      const message =
        fault === undefined ? this.message(reader, index, payload) : malformed(index, fault.reason, fault.detail);
      if (!expansion.add(charactersOf(message, reader))) return [tooLarge(expansion)];
      messages.push(message);
    }
    return messages;
  }

  private message(reader: MessageReader, itemIndex: number | null, payload: () => Uint8Array): Message {
    const reading = readIdentity(this.identity, reader);
    if (!reading.ok) return malformed(itemIndex, reading.reason, reading.detail);
    const { identity } = reading;
    const incident = readIncident(this.incident, reader);
    const incidentId = incident.ok ? incident.id : null;
    const plan = incident.ok ? planEffects(this.effects, { reader, identity, incidentId }, payload) : incident;
    const payloadDigest = this.digest(reader, identity);
    return {
      kind: 'keyed',
      itemIndex,
      keyVersion: this.identity.keyVersion,
      key: idempotencyKey(identity),
      identity,
      payloadDigest,
      claimDigest: this.contract.digest === 'off' ? '' : payloadDigest,
      incidentId,
      occurredAt: this.readOccurredAt(reader),
      plan,
      former: NO_FORMER,
    };
  }

  /**
   * SHA-256 of the canonical message, without what `digest.ignore` names. Where identity, incident or plan read values
   * outside it, a line feed and the canonical object of those values follow: `topic`, `topicLevel:<n>`,
   * `envelope:<pointer>`, `userProperty:<name>`. Canonical JSON has no line feed, so no message can pose as another
   * with such values. A sequence or numeric epoch stands as the number that identity took it for, whatever form it came
   * in. Called after everything is read but `occurredAt`, which decides nothing.
   */
  private digest(reader: MessageReader, identity: Identity): string {
    for (const { name, source } of this.identity.counts) {
      const digits = identity[name];
      if (digits !== null) reader.takeAsNumber(source, digits);
    }
    const message = canonicalJsonWithout(reader.digestMessage, this.omission);
    const outside = reader.outsideText();
    return sha256Hex(outside === null ? message : `${message}\n${outside}`);
  }

  private readOccurredAt(reader: MessageReader): string | null {
    const value = this.occurredAt === null ? null : reader.read(this.occurredAt);
    return typeof value === 'string' ? utcTime(value) : null;
  }
}

/** Sorts the faults of a document to the items that they stand in. Both come in the order of the text. */
function faultsByItem(
  document: JsonDocument,
  array: JsonArray | null,
): { readonly outside: JsonFault | null; readonly byItem: ReadonlyMap<number, JsonFault> } {
  const byItem = new Map<number, JsonFault>();
  const spans = (array && document.spans.get(array)) ?? [];
  let item = 0;
  for (const fault of document.faults) {
    while ((spans[2 * item + 1] ?? Infinity) <= fault.offset) item += 1;
    if ((spans[2 * item] ?? Infinity) > fault.offset) return { outside: fault, byItem };
    if (!byItem.has(item)) byItem.set(item, fault);
  }
  return { outside: null, byItem };
}

function charactersOf(message: Message, reader: MessageReader): number {
  return reader.outsideCharacters() + (message.kind === 'keyed' ? planCharacters(message.plan) : 0);
}

function tooLarge({ allowed }: Expansion): MalformedMessage {
  const detail = `what its messages read outside themselves and plan comes to more than ${allowed} characters`;
  return malformed(null, 'delivery_too_large', detail);
}

function malformed(itemIndex: number | null, reason: string, detail: string): MalformedMessage {
  return { kind: 'malformed', itemIndex, reason, detail };
}

/** The parser gives every item its place. */
function unreachableItem(index: number): never {
  throw new Error(`item ${index} has no place in its document`);
}
