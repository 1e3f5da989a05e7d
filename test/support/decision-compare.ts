/**
 * What a model, and what a store, holds in the end, in one form, so that the two compare.
 */
import { sourceOf, valueOf, type DecisionModel, type ModelEvent } from './decision-model';
import type { DecisionStore } from './decision-store';

export function storeFields(store: DecisionStore): Record<string, { value: unknown; writer: unknown }> {
  return Object.fromEntries(
    [...store.fields].map(([name, { value, writer }]) => [
      name.replace('\0', ' '),
      {
        value: value === null ? [...(store.members.get(name) ?? [])].sort() : plain(valueOf(value)),
        writer: { source: JSON.stringify([writer.agency, writer.sourceId]), sequence: writer.sequence },
      },
    ]),
  );
}

export function modelFields(model: DecisionModel): Record<string, { value: unknown; writer: unknown }> {
  return Object.fromEntries(
    [...model.fields].map(([name, { value, writer }]) => [
      name,
      {
        value: 'members' in value ? [...value.members].sort() : plain(value),
        writer: { source: writer.source, sequence: writer.place?.[1].toString() ?? null },
      },
    ]),
  );
}

export function plain(value: { number: bigint } | { json: string }): bigint | string {
  return 'number' in value ? value.number : value.json;
}

/** `version source` → epoch → mark, highest, and its place among the ranked epochs: numbers of ranks are nobody's business. */
export function storeMarks(store: DecisionStore): unknown {
  const named = [...store.sources].map(([name, epochs]) => {
    const [version, agency, source] = name.split('\0');
    return [`${version} ${sourceOf({ agency, source } as ModelEvent)}`, ranked(epochs)] as const;
  });
  return Object.fromEntries(named.filter(hasMarks));
}

export function modelMarks(model: DecisionModel): unknown {
  const named = [...model.sources].map(([name, epochs]) => {
    const heads = [...epochs].map(
      ([epoch, head]) => [epoch, { ...head, highest: head.highest < 0n ? null : head.highest }] as const,
    );
    return [name, ranked(new Map(heads))] as const;
  });
  return Object.fromEntries(named.filter(hasMarks));
}

/** In `eventId` mode a source has a row, and nothing in it. */
function hasMarks([, heads]: readonly [string, Record<string, unknown>]): boolean {
  return Object.keys(heads).length > 0;
}

interface Head {
  readonly rank: bigint | null;
  readonly mark: bigint | null;
  readonly highest: bigint | null;
}

export function ranked(epochs: ReadonlyMap<string, Head>): Record<string, unknown> {
  const order = [...epochs.values()].map(({ rank }) => rank).filter((rank) => rank !== null);
  order.sort((a, b) => (a < b ? -1 : 1));
  const heads = [...epochs]
    .filter(([, { highest }]) => highest !== null)
    .map(([epoch, { rank, mark, highest }]) => [
      epoch,
      { mark, highest, place: rank === null ? null : order.indexOf(rank) },
    ]);
  return Object.fromEntries(heads) as Record<string, unknown>;
}
