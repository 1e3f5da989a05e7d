/** Subscribers, by the usual client and by hand. */
import type { Client } from 'graphql-ws';
import WebSocket from 'ws';
import type { TestPipeline } from '../support/pipeline';
import { delivery } from '../support/pipeline';
import { until } from '../support/wait';
import type { Data, GraphqlError, TestApi } from './api-fixture';

export interface Event {
  readonly position: string;
  readonly cursor: string;
  readonly feed: { readonly name: string };
  readonly decision: Data;
}

export interface Reading {
  readonly events: Event[];
  readonly errors: GraphqlError[];
  readonly positions: () => number[];
  readonly ended: () => boolean;
  stop(): void;
}

const FIELDS =
  'position cursor feed { name } decision { outcome tier reason sequence payloadDigest original { position payloadDigest } }';

export function listen(
  client: Client,
  name: 'decisions' | 'suppressions',
  variables: Record<string, unknown> = {},
  fields = FIELDS,
): Reading {
  const events: Event[] = [];
  const errors: GraphqlError[] = [];
  let ended = false;
  const document = `subscription ($filter: DecisionFilter, $after: String) { ${name}(filter: $filter, after: $after) { ${fields} } }`;
  const stop = client.subscribe<Record<string, Event>>(
    { query: document, variables },
    {
      next: (result) => {
        const event = result.data?.[name];
        if (event) events.push(event);
        errors.push(...((result.errors ?? []) as unknown as GraphqlError[]));
      },
      error: (reason) => {
        if (Array.isArray(reason)) errors.push(...(reason as GraphqlError[]));
        ended = true;
      },
      complete: () => (ended = true),
    },
  );
  return { events, errors, positions: () => events.map((event) => Number(event.position)), ended: () => ended, stop };
}

export const settled = (app: TestApi, subscriptions = 1) =>
  until(() => app.api.stats().subscriptions === subscriptions && app.api.stats().waiting === subscriptions, {
    what: `${subscriptions} waiting subscriptions`,
  });

const PAGE = 'query ($filter: DecisionFilter) { decisions(filter: $filter, last: 1) { pageInfo { endCursor } } }';

export async function latest(app: TestApi, filter: object = {}): Promise<string> {
  return (await app.data(PAGE, { filter })).decisions.pageInfo.endCursor as string;
}

export async function deliverAll(path: TestPipeline, payloads: readonly string[]): Promise<void> {
  const before = path.acknowledged.length;
  path.offer(...payloads.map((payload) => delivery(payload)));
  await until(() => path.acknowledged.length === before + payloads.length, { what: 'the acknowledgements' });
}

interface RawOptions {
  /** Wait for `connection_ack`; else the subscriptions are sent when it comes. Default true. */
  readonly wait?: boolean;
  readonly count?: number;
  readonly field?: string;
}

/** A socket that speaks the protocol by hand. */
export async function rawSubscription(
  app: TestApi,
  { wait = true, count = 1, field = 'reason' }: RawOptions = {},
): Promise<WebSocket> {
  const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('open', resolve));
  const acknowledged = new Promise((resolve) => socket.once('message', resolve));
  socket.send(JSON.stringify({ type: 'connection_init' }));
  const payload = { query: `subscription { decisions { position decision { ${field} } } }` };
  const subscribe = () => {
    for (let id = 1; id <= count && socket.readyState === WebSocket.OPEN; id++) {
      socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload }));
    }
  };
  const subscribed = acknowledged.then(subscribe);
  if (wait) await subscribed;
  return socket;
}
