/**
 * The messages that every part drains: computer-aided dispatch of one agency, about 150 bytes each, the same ones in
 * every round. Twenty engines number their own messages and report on forty incidents.
 */

export interface BenchMessage {
  readonly topic: string;
  readonly payload: string;
}

/** One feed of its own a round, so that no round finds anything of another. */
export interface Workload {
  readonly feed: string;
  readonly topicFilter: string;
  /** Text of the contract file. */
  readonly contract: string;
  /** The first `count` messages, in publishing order. */
  messages(count: number): Iterable<BenchMessage>;
}

const SOURCES = 20;
const INCIDENTS = 40;
/** Messages in a row that concern the same incident. */
const STRETCH = 7;
/** Of ten messages, these report one more casualty, and this one an assignment; the rest a unit's status. */
const CASUALTY = [3, 7];
const ASSIGNMENT = 9;
const STATUSES = ['DISPATCHED', 'ENROUTE', 'ONSCENE', 'RETURNING', 'AVAILABLE'];
const FIRST_SENT_MS = Date.UTC(2024, 7, 29, 6);

export function workload(feed: string): Workload {
  return {
    feed,
    topicFilter: `${feed}/+/events`,
    contract: contractOf(feed),
    *messages(count) {
      for (let index = 0; index < count; index += 1) yield messageAt(feed, index);
    },
  };
}

/** Ground truth: what all incidents together must count once each message has taken effect exactly once. */
export function casualtiesIn(count: number): number {
  const rest = count % 10;
  return Math.floor(count / 10) * CASUALTY.length + CASUALTY.filter((kind) => kind < rest).length;
}

function messageAt(feed: string, index: number): BenchMessage {
  const engine = `engine-${(index % SOURCES) + 1}`;
  const payload = JSON.stringify({
    incident_id: `2024-${1000 + (Math.floor(index / STRETCH) % INCIDENTS)}`,
    boot_id: 'b7',
    sequence: Math.floor(index / SOURCES) + 1,
    sent: new Date(FIRST_SENT_MS + index * 20).toISOString(),
    ...contentAt(engine, index),
  });
  return { topic: `${feed}/${engine}/events`, payload };
}

function contentAt(engine: string, index: number): object {
  const kind = index % 10;
  if (CASUALTY.includes(kind)) return { type: 'casualty', payload: { delta: 1 } };
  if (kind === ASSIGNMENT) return { type: 'assignment', payload: { unit: engine } };
  return { type: 'unit-status', payload: { unit: engine, status: STATUSES[Math.floor(index / 10) % STATUSES.length] } };
}

function contractOf(feed: string): string {
  return `apiVersion: replay-ledger/v1
feed: ${feed}
description: backlog of the benchmark
owner: bench
topics: ['${feed}/+/events']
decode: json
identity:
  mode: sequence
  agency: { const: county-fire }
  source: { topicLevel: 1 }
  epoch: { pointer: /boot_id, order: opaque }
  sequence: { pointer: /sequence }
incident: { pointer: /incident_id }
occurredAt: { pointer: /sent }
digest: { ignore: [/resend_count] }
dedup:
  windowSeconds: 7200
  maxEntries: 100000
  ordering: strict
delivery:
  sessionExpirySeconds: 3600
  maxReplayDelaySeconds: 120
effects:
  - { when: { /type: casualty }, do: increment, field: casualties, by: { pointer: /payload/delta } }
  - { when: { /type: unit-status }, do: set, field: 'units/{/payload/unit}', to: { pointer: /payload/status } }
  - { when: { /type: assignment }, do: append, field: assignments, value: { pointer: /payload/unit } }
`;
}
