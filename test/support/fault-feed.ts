/**
 * A feed for the fault suite, and what must be true of the incidents when everything that was published has been
 * applied once: computed here by plain additions, from the messages alone.
 */
import type { TestMessage } from './mqtt-client';
import { expectSoundLedger, query, type StoredEntry } from './ledger';
import { until } from './wait';

export interface FaultMessage extends TestMessage {
  readonly payload: string;
  readonly source: string;
  readonly sequence: number;
}

export interface FaultFeedOptions {
  readonly feed?: string;
  readonly ordering?: 'strict' | 'tolerant';
  readonly forward?: string;
  readonly identity?: string;
  readonly windowSeconds?: number;
}

export const FEED = 'county-fire';

/** All four effects: a replayed increment doubles, a lost one is missing, an older `set` shows. */
export function faultContract(options: FaultFeedOptions = {}): string {
  const {
    feed = FEED,
    ordering = 'strict',
    windowSeconds = 600,
    forward,
    identity = '{ agency: { const: county }, source: { topicLevel: 1 }, sequence: { pointer: /seq } }',
  } = options;
  return `apiVersion: replay-ledger/v1
feed: ${feed}
description: what the fault suite breaks things under
owner: tests
topics: ["${feed}/+/events"]
decode: json
identity: ${identity}
incident: { pointer: /incident }
dedup: { windowSeconds: ${windowSeconds}, maxEntries: 100000, ordering: ${ordering} }
delivery: { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 }
effects:
  - { do: increment, field: casualties, by: { pointer: /delta } }
  - { do: set, field: "units/{source}", to: { pointer: /status } }
  - { do: append, field: assignments, value: { pointer: /status } }
  - { do: advance, field: period, to: { pointer: /period } }
${forward === undefined ? '' : `forward: { topic: "${forward}" }\n`}`;
}

/** Sequences `first` to `last` of each source in turn: 1 of all, then 2 of all, … */
export function faultMessages(sources: number, first: number, last: number, feed = FEED): FaultMessage[] {
  const messages: FaultMessage[] = [];
  for (let sequence = first; sequence <= last; sequence += 1) {
    for (let index = 1; index <= sources; index += 1) messages.push(faultMessage(feed, `engine-${index}`, sequence));
  }
  return messages;
}

export function faultMessage(feed: string, source: string, sequence: number): FaultMessage {
  const body = {
    seq: sequence,
    incident: `I-${sequence % 3}`,
    delta: (sequence % 5) + 1,
    status: `at ${sequence % 4}`,
    period: sequence,
  };
  return { topic: `${feed}/${source}/events`, payload: JSON.stringify(body), source, sequence };
}

/** Incident → fields, as `readIncident` answers them. */
export function groundTruth(messages: readonly FaultMessage[]): Record<string, Record<string, unknown>> {
  const incidents: Record<string, Record<string, unknown>> = {};
  const sets: Record<string, Set<string>> = {};
  for (const { payload, source } of messages) {
    const { incident, delta, status, period } = JSON.parse(payload) as {
      incident: string;
      delta: number;
      status: string;
      period: number;
    };
    const fields = (incidents[incident] ??= { casualties: 0, period: 0 });
    const assigned = (sets[incident] ??= new Set());
    assigned.add(status);
    fields.casualties = Number(fields.casualties) + delta;
    fields.period = Math.max(Number(fields.period), period);
    fields[`units/${source}`] = status;
    fields.assignments = [...assigned].sort();
  }
  return incidents;
}

/** All incidents of a database: fields as JSON values, sets as sorted arrays. */
export async function readIncidents(url: string): Promise<Record<string, Record<string, unknown>>> {
  const rows = await query<{ id: string; field: string; value: string | null; members: string[] | null }>(
    url,
    `SELECT f.incident_id AS id, f.field, f.value,
       (SELECT array_agg(m.value ORDER BY m.value COLLATE "C") FROM incident_member m
        WHERE m.incident_id = f.incident_id AND m.field = f.field) AS members
     FROM incident_field f`,
  );
  const incidents: Record<string, Record<string, unknown>> = {};
  for (const { id, field, value, members } of rows) {
    const fields = (incidents[id] ??= {});
    fields[field] = value === null ? (members ?? []).map(parse) : parse(value);
  }
  return incidents;
}

function parse(text: string): unknown {
  return JSON.parse(text) as unknown;
}

/** Waits until so many messages of a feed are applied, or more. */
export async function applied(url: string, count: number, feed = FEED, timeoutMs = 30_000): Promise<void> {
  await until(
    async () => {
      const [row] = await query<{ count: number }>(
        url,
        `SELECT count(*)::int AS count FROM ledger_entry e JOIN feed f ON f.id = e.feed_id
       WHERE f.name = $1 AND e.outcome = 'APPLIED'`,
        [feed],
      );
      return (row?.count ?? 0) >= count;
    },
    { what: `${count} applied messages of ${feed}`, timeoutMs, everyMs: 50 },
  );
}

/**
 * The promise: the ledger is sound, every message was applied by exactly one entry, in the order of its source, and the
 * incidents are what the messages say. Answers the entries.
 */
export async function expectEachAppliedOnce(
  url: string,
  messages: readonly FaultMessage[],
  feed = FEED,
): Promise<StoredEntry[]> {
  const entries = await expectSoundLedger(url, feed);
  const appliedOnes = entries.filter(({ outcome }) => outcome === 'APPLIED');
  expect(sequencesBySource(appliedOnes.map(({ sourceId, sequence }) => [sourceId ?? '', Number(sequence)]))).toEqual(
    sequencesBySource(messages.map(({ source, sequence }) => [source, sequence])),
  );
  return entries;
}

/** `expectEachAppliedOnce`, and the incidents, where the database has no other feed. */
export async function expectGroundTruth(url: string, messages: readonly FaultMessage[]): Promise<StoredEntry[]> {
  const entries = await expectEachAppliedOnce(url, messages);
  expect(await readIncidents(url)).toEqual(groundTruth(messages));
  return entries;
}

function sequencesBySource(pairs: readonly (readonly [string, number])[]): Record<string, number[]> {
  const sources: Record<string, number[]> = {};
  for (const [source, sequence] of pairs) (sources[source] ??= []).push(sequence);
  return sources;
}

/** How many entries each outcome has, e.g. `{ APPLIED: 3, DUPLICATE_SUPPRESSED: 1 }`. */
export function countOutcomes(entries: readonly StoredEntry[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of entries) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
