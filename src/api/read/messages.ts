/** Payloads of entries: read once an operation, within its bound of bytes, and cut out of batch deliveries. */
import DataLoader from 'dataloader';
import type { PrismaClient } from '../../generated/prisma/client';
import { itemBytes, parseJson } from '../../contract/json';
import { isJsonArray } from '../../contract/json-value';
import type { JsonArray, JsonDocument } from '../../contract/json-value';
import { compilePointer, getPointer } from '../../contract/pointer';
import { ApiError } from '../errors';
import type { DecisionRecord, PayloadRecord } from '../model/records';
import { payloads } from '../statements/entries';
import type { PayloadAddress } from '../statements/entries';
import type { ContractTexts } from './contracts';
import type { Loaders } from './loaders';
import { bigintOrNull } from './rows';

interface PayloadRow {
  readonly feedId: number;
  readonly bytesDigest: string;
  readonly sizeBytes: number;
  readonly purgedAt: string | null;
  readonly tooLarge: boolean;
  readonly bytes: Uint8Array | null;
}

type Batch = { readonly document: JsonDocument; readonly array: JsonArray } | null;

export class Messages {
  private remaining: number;
  private readonly loader: DataLoader<PayloadAddress, PayloadRecord | null, string>;
  /** Deliveries parsed so far: a page may hold hundreds of items of one. */
  private readonly batches = new Map<string, Batch>();

  constructor(
    private readonly prisma: PrismaClient,
    private readonly loaders: Loaders,
    private readonly contracts: ContractTexts,
    private readonly maxBytes: number,
  ) {
    this.remaining = maxBytes;
    this.loader = new DataLoader((keys) => this.load(keys), { cacheKeyFn: nameOf });
  }

  /** The delivery's payload as stored; null where none was stored. @throws ApiError RESPONSE_TOO_LARGE */
  delivery(decision: DecisionRecord): Promise<PayloadRecord | null> {
    return this.loader.load(addressOf(decision));
  }

  /** The bytes of this very message, or null where they are not kept or cannot be told apart. */
  async message(decision: DecisionRecord): Promise<Uint8Array | null> {
    const bytes = (await this.delivery(decision))?.bytes ?? null;
    if (bytes === null || decision.itemIndex === null) return bytes;
    const digest = decision.contractDigest;
    const record = await this.loaders.contractsByDigest.load({ feedId: decision.feed.id, digest });
    const items = record === null ? null : (this.contracts.read(record)?.items ?? null);
    if (items === null) return null;
    const batch = this.batch(`${nameOf(addressOf(decision))}${items}`, items, bytes);
    return batch === null ? null : itemBytes(batch.document, batch.array, decision.itemIndex);
  }

  private batch(name: string, items: string, bytes: Uint8Array): Batch {
    const known = this.batches.get(name);
    if (known !== undefined) return known;
    const parse = parseJson(bytes);
    const array = parse.ok ? getPointer(parse.document.value, compilePointer(items)) : undefined;
    const batch = parse.ok && isJsonArray(array) ? { document: parse.document, array } : null;
    this.batches.set(name, batch);
    return batch;
  }

  private async load(keys: readonly PayloadAddress[]): Promise<(PayloadRecord | null | Error)[]> {
    const rows = await this.prisma.$queryRaw<PayloadRow[]>(payloads(keys, this.remaining));
    const found = new Map(rows.map((row) => [nameOf(row), row]));
    for (const row of rows) this.remaining -= row.bytes?.byteLength ?? 0;
    return keys.map((key) => {
      const row = found.get(nameOf(key));
      if (row === undefined) return null;
      if (row.tooLarge) return this.tooLarge();
      return { sizeBytes: row.sizeBytes, bytes: row.bytes, purgedAt: bigintOrNull(row.purgedAt) };
    });
  }

  private tooLarge(): ApiError {
    return new ApiError(
      'RESPONSE_TOO_LARGE',
      `the payloads of one answer must not exceed ${this.maxBytes} bytes: ask for a smaller page`,
    );
  }
}

function addressOf(decision: DecisionRecord): PayloadAddress {
  return { feedId: decision.feed.id, bytesDigest: decision.bytesDigest };
}

function nameOf({ feedId, bytesDigest }: PayloadAddress): string {
  return `${feedId}/${bytesDigest}`;
}
