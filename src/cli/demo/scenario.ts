/** The night of the hurricane: what is published, and what therefore happened. Nothing here depends on time or chance. */

export const FEED = 'hurricane-cad';
export const INCIDENT = 'STRUCTURE-FIRE-0412';
export const TOPIC_FILTER = 'incidents/county-fire/+/events';

/** A contract like `contracts/county-fire-cad.yaml`, cut down to what the night needs. */
export const CONTRACT = `\
apiVersion: replay-ledger/v1
feed: ${FEED}
description: CAD events of the county fire department on the night of the hurricane
owner: county-fire
topics: ['${TOPIC_FILTER}']
decode: json
identity:
  mode: sequence
  agency: { const: county-fire }
  source: { topicLevel: 2 }
  sequence: { pointer: /sequence }
incident: { pointer: /incident_id }
occurredAt: { pointer: /sent }
dedup:
  windowSeconds: 600
  maxEntries: 100000
  ordering: strict
delivery:
  sessionExpirySeconds: 300
  maxReplayDelaySeconds: 120
effects:
  - { when: { /type: casualty }, do: increment, field: casualties, by: { pointer: /payload/delta } }
  - { when: { /type: unit-status }, do: set, field: 'units/{/payload/unit}', to: { pointer: /payload/status } }
  - { when: { /type: period }, do: advance, field: operationalPeriod, to: { pointer: /payload/period } }
`;

export type Change =
  | { readonly type: 'casualty'; readonly payload: { readonly delta: number } }
  | { readonly type: 'unit-status'; readonly payload: { readonly unit: string; readonly status: string } }
  | { readonly type: 'period'; readonly payload: { readonly period: number } };

export interface DemoEvent {
  readonly source: string;
  readonly sequence: number;
  /** RFC 3339. */
  readonly sent: string;
  readonly change: Change;
}

/** What a Common Operating Picture shows of the incident. */
export interface Picture {
  readonly casualties: number;
  /** Unit → its last status. */
  readonly units: Readonly<Record<string, string>>;
}

const event = (time: string, source: string, sequence: number, change: Change): DemoEvent => ({
  source,
  sequence,
  sent: `2026-08-29T${time}Z`,
  change,
});
const period = (number: number): Change => ({ type: 'period', payload: { period: number } });
const casualty: Change = { type: 'casualty', payload: { delta: 1 } };
const status = (unit: string, to: string): Change => ({ type: 'unit-status', payload: { unit, status: to } });

/** Acknowledged before the standby gets its copy of the sessions: not delivered again. */
export const BEFORE_THE_SNAPSHOT: readonly DemoEvent[] = [event('02:10:00', 'dispatch', 1, period(1))];

/** Delivered when the copy is made, but not yet acknowledged: this is what comes twice. */
export const AT_THE_SNAPSHOT: readonly DemoEvent[] = [
  event('02:14:05', 'engine-7', 1, status('engine-7', 'assigned')),
  event('02:14:20', 'engine-12', 1, status('engine-12', 'assigned')),
  event('02:31:40', 'engine-7', 2, casualty),
  event('02:33:10', 'engine-12', 2, casualty),
  event('02:40:55', 'engine-7', 3, casualty),
];

/** Delivered and acknowledged after it, on the primary alone: the standby knows nothing of them. */
export const AFTER_THE_SNAPSHOT: readonly DemoEvent[] = [
  event('03:52:00', 'engine-7', 4, status('engine-7', 'released')),
  event('03:55:30', 'engine-12', 3, status('engine-12', 'released')),
];

/** Published to the standby: what is new still counts. */
export const AFTER_THE_FAILOVER: readonly DemoEvent[] = [event('04:05:00', 'dispatch', 2, period(2))];

const PUBLISHED = [...BEFORE_THE_SNAPSHOT, ...AT_THE_SNAPSHOT, ...AFTER_THE_SNAPSHOT, ...AFTER_THE_FAILOVER];

/** What really happened: every event once. */
export const TRUTH: Picture = PUBLISHED.reduce(add, { casualties: 0, units: {} });

/** The picture after one more message, by someone who believes that each message is another event. */
export function add(picture: Picture, { change }: Pick<DemoEvent, 'change'>): Picture {
  switch (change.type) {
    case 'casualty':
      return { ...picture, casualties: picture.casualties + change.payload.delta };
    case 'unit-status':
      return { ...picture, units: { ...picture.units, [change.payload.unit]: change.payload.status } };
    case 'period':
      return picture;
  }
}

export function topicOf({ source }: DemoEvent): string {
  return TOPIC_FILTER.replace('+', source);
}

/** JSON text as the contract reads it. */
export function payloadOf({ sequence, sent, change }: DemoEvent): string {
  return JSON.stringify({ incident_id: INCIDENT, sequence, sent, ...change });
}

/** What a source says, in a few words. */
export function describe(change: Change): string {
  switch (change.type) {
    case 'casualty':
      return `casualties +${change.payload.delta}`;
    case 'unit-status':
      return `${change.payload.unit} ${change.payload.status}`;
    case 'period':
      return `operational period ${change.payload.period}`;
  }
}
