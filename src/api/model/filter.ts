/** The filter of lists and subscriptions, checked and in one form (design section 8, DecisionFilter). */
import { createHash } from 'node:crypto';
import { hasLoneSurrogate } from '../../contract/json-value';
import type { EntryOutcome } from '../../ledger/entry';
import type { Tier } from '../../dedup/state';
import { badInput } from '../errors';

/** As a client gives it; absent and null mean the same. */
export interface FilterInput {
  readonly feed?: string | null;
  readonly incidentId?: string | null;
  readonly agency?: string | null;
  readonly sourceId?: string | null;
  readonly key?: string | null;
  readonly outcome?: readonly EntryOutcome[] | null;
  readonly tier?: readonly Tier[] | null;
  readonly held?: boolean | null;
  readonly late?: boolean | null;
  /** Microseconds since 1970. */
  readonly from?: bigint | null;
  readonly to?: bigint | null;
}

export interface EntryFilter {
  readonly feed: string | null;
  readonly incidentId: string | null;
  readonly agency: string | null;
  readonly sourceId: string | null;
  readonly key: string | null;
  /** Sorted, without repeats. */
  readonly outcomes: readonly EntryOutcome[] | null;
  readonly tiers: readonly Tier[] | null;
  readonly held: boolean | null;
  readonly late: boolean | null;
  /** Inclusive. */
  readonly from: bigint | null;
  /** Exclusive. */
  readonly to: bigint | null;
}

/** Of an id, a name, a topic: longer ones cannot be stored (design section 4: 512 bytes a part). */
const MAX_TEXT_BYTES = 4096;
const KEY = /^[0-9a-f]{64}$/;

/** Which outcomes a tier occurs with (design section 3): names the index to walk. `NONE` occurs with any. */
const OUTCOME_OF_TIER: Readonly<Record<Exclude<Tier, 'NONE'>, EntryOutcome>> = {
  WINDOW: 'DUPLICATE_SUPPRESSED',
  LEDGER: 'DUPLICATE_SUPPRESSED',
  HIGH_WATER_MARK: 'STALE_OUT_OF_ORDER',
};

/**
 * @param among outcomes that the list is about at all; null: any
 * @throws ApiError BAD_USER_INPUT
 */
export function readFilter(
  input: FilterInput | null | undefined,
  among: readonly EntryOutcome[] | null = null,
): EntryFilter {
  const given = input ?? {};
  const tiers = listOf('tier', given.tier);
  const asked = listOf('outcome', given.outcome);
  const key = textOrNull('key', given.key)?.toLowerCase() ?? null;
  if (key !== null && !KEY.test(key)) throw badInput('filter.key must be 64 hexadecimal digits');
  const from = given.from ?? null;
  const to = given.to ?? null;
  if (from !== null && to !== null && from > to) throw badInput('filter.from must not be after filter.to');
  const outcomes = overlap(overlap(asked, among), outcomesOf(tiers));
  if (asked !== null && among !== null && overlap(asked, among)?.length === 0) {
    throw badInput(`filter.outcome can only be of ${among.join(', ')} here`);
  }
  return {
    feed: textOrNull('feed', given.feed),
    incidentId: textOrNull('incidentId', given.incidentId),
    agency: textOrNull('agency', given.agency),
    sourceId: textOrNull('sourceId', given.sourceId),
    key,
    outcomes,
    tiers,
    held: given.held ?? null,
    late: given.late ?? null,
    from,
    to,
  };
}

/** What a cursor remembers of the filter that it was made under: 16 hex digits. */
export function filterDigest(filter: EntryFilter): string {
  const text = JSON.stringify(filter, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/**
 * A text that could be stored at all: Postgres has neither NUL nor lone surrogates, and would answer with an error.
 * @throws ApiError BAD_USER_INPUT
 */
export function readText(name: string, value: string): string {
  if (value.includes('\0')) throw badInput(`${name} must not contain NUL`);
  if (hasLoneSurrogate(value)) throw badInput(`${name} must be well-formed Unicode`);
  if (Buffer.byteLength(value) > MAX_TEXT_BYTES) throw badInput(`${name} must not exceed ${MAX_TEXT_BYTES} bytes`);
  return value;
}

function textOrNull(name: string, value: string | null | undefined): string | null {
  return value === null || value === undefined ? null : readText(`filter.${name}`, value);
}

/** An empty list would match nothing: more likely a mistake of the caller than a wish. */
function listOf<T extends string>(name: string, values: readonly T[] | null | undefined): readonly T[] | null {
  if (values === null || values === undefined) return null;
  if (values.length === 0) throw badInput(`filter.${name} must not be empty: leave it out for any`);
  return [...new Set(values)].sort();
}

function outcomesOf(tiers: readonly Tier[] | null): readonly EntryOutcome[] | null {
  if (tiers === null) return null;
  const outcomes = new Set<EntryOutcome>();
  for (const tier of tiers) {
    if (tier === 'NONE') return null;
    outcomes.add(OUTCOME_OF_TIER[tier]);
  }
  return [...outcomes].sort();
}

function overlap<T>(one: readonly T[] | null, other: readonly T[] | null): readonly T[] | null {
  if (one === null || other === null) return one ?? other;
  return one.filter((value) => other.includes(value));
}
