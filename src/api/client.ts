/**
 * Follows decisions of a running service from outside, over graphql-transport-ws: through lost connections and restarts
 * of the service, every decision once, in the order of its feed.
 *
 * States: opening (learns where the ledgers end now, so that there is a cursor before the first event) → following →
 * (connection lost → pausing → following after the cursor of the last event)* → ended, by the signal or by an answer
 * that trying again would not change. A token that is refused ends it unless there is another one by then.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'graphql-ws';
import type { Client } from 'graphql-ws';
import type { EntryOutcome } from '../ledger/entry';
import { WebSocket } from 'ws';

/** A decision as the API gives it; exact numbers are texts. */
export interface FollowedDecision {
  readonly id: string;
  readonly feed: { readonly name: string };
  readonly position: string;
  readonly outcome: EntryOutcome;
  readonly tier: string;
  readonly reason: string;
  readonly held: boolean;
  readonly late: boolean;
  readonly agency: string | null;
  readonly sourceId: string | null;
  readonly epoch: string | null;
  readonly sequence: string | null;
  readonly eventId: readonly string[] | null;
  readonly incidentId: string | null;
  readonly originalPosition: string | null;
  readonly replayLagSeconds: number | null;
  readonly topic: string;
  readonly qos: number;
  readonly dup: boolean;
  readonly recordedAt: string;
}

export interface FollowFilter {
  readonly feed?: string;
  readonly incidentId?: string;
  readonly agency?: string;
  readonly sourceId?: string;
  readonly outcome?: readonly EntryOutcome[];
  readonly held?: boolean;
}

export interface FollowOptions {
  /** `http://` or `https://`, with the path of GraphQL. */
  readonly url: string;
  /** Asked at each connection, because tokens are replaced. null: there is none. */
  readonly token: () => string | null;
  readonly filter: FollowFilter;
  /** Cursor to go on from; null: from now on. */
  readonly after: string | null;
  readonly signal: AbortSignal;
  /** Why the connection is gone; it is tried again. */
  readonly onTrouble: (reason: string) => void;
  /** Full jitter over an exponential back-off between these two; default 250 and 10 000. */
  readonly reconnectMinMs?: number;
  readonly reconnectMaxMs?: number;
}

export interface Followed {
  /** Going on after it misses and repeats nothing. */
  readonly cursor: string;
  readonly decision: FollowedDecision;
}

/** The service answered that it will not; the message is its own, for people. */
export class FollowError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FollowError';
  }
}

interface AnswerError {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** An answer with errors in it; a refused operation is thrown by the library as the bare list. */
class Answered extends Error {
  constructor(readonly errors: readonly AnswerError[]) {
    super('the answer has errors');
  }
}

const FIELDS = `id feed { name } position outcome tier reason held late agency sourceId epoch sequence eventId incidentId
  originalPosition replayLagSeconds topic qos dup recordedAt`;
const END = 'query ($feed: ID) { decisions(filter: { feed: $feed }, last: 1) { edges { cursor } } }';
const START = `query ($feed: ID, $filter: DecisionFilter) {
  first: decisions(filter: { feed: $feed }, first: 1) { edges { cursor node { id } } }
  wanted: decisions(filter: $filter, first: 1) { edges { node { ${FIELDS} } } } }`;
const FOLLOW = `subscription ($filter: DecisionFilter, $after: String) {
  decisions(filter: $filter, after: $after) { cursor decision { ${FIELDS} } } }`;

/** These may pass; every other code is about what was asked. */
const PASSING_CODES = new Set(['SERVICE_UNAVAILABLE', 'QUERY_TIMEOUT', 'INTERNAL_SERVER_ERROR', 'TOO_MANY_OPERATIONS']);
/** Of graphql-transport-ws: no access with this token. */
const CLOSE_FORBIDDEN = 4403;
/** Likewise, which coming back does not change: bad request, no token, no access, wrong protocol. */
const FINAL_CLOSE_CODES = new Set([4400, 4401, CLOSE_FORBIDDEN, 4406]);
const PING_MS = 10_000;
const ANSWER_MS = 10_000;
const EMPTY_POLL_MS = 1_000;

interface Edges<T> {
  readonly edges: readonly T[];
}

/** @throws FollowError */
export async function* followDecisions(options: FollowOptions): AsyncGenerator<Followed, void, void> {
  const { signal, reconnectMinMs = 250, reconnectMaxMs = 10_000 } = options;
  const place: Place = { after: options.after, fromStart: false };
  for (let failures = 0; !signal.aborted; failures += 1) {
    const token = options.token();
    const client = connect(options.url, token);
    const end = (): void => void client.dispose();
    signal.addEventListener('abort', end);
    try {
      for await (const followed of followOnce(client, options, place)) {
        place.after = followed.cursor;
        failures = -1;
        if ('decision' in followed) yield followed;
      }
      if (!signal.aborted) options.onTrouble('the service ended the subscription');
    } catch (error) {
      if (!signal.aborted) options.onTrouble(passingReason(error, () => options.token() !== token));
    } finally {
      signal.removeEventListener('abort', end);
      await client.dispose();
    }
    const pauseMs = Math.random() * Math.min(reconnectMaxMs, reconnectMinMs * 2 ** failures);
    // An abort ends the pause; that is how stopping works, not an error.
    await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

interface Place {
  /** Cursor of the last event; null before the first. */
  after: string | null;
  /** The ledgers were empty when we came: whatever is in them is news. */
  fromStart: boolean;
}

/** One connection. What has a cursor alone only says where to go on. */
async function* followOnce(
  client: Client,
  { filter, signal }: FollowOptions,
  place: Place,
): AsyncGenerator<Followed | { readonly cursor: string }, void, void> {
  let from = place.after;
  if (from === null) {
    const last = place.fromStart ? null : await lastEntry(client, filter.feed);
    place.fromStart = last === null;
    const opening = last ?? (await firstEntry(client, filter, signal));
    if (opening === null) return;
    yield opening;
    from = opening.cursor;
  }
  const payload = { query: FOLLOW, variables: { filter, after: from } };
  for await (const { data, errors } of client.iterate<{ decisions: Followed }>(payload)) {
    if (errors !== undefined) throw new Answered(errors);
    if (data) yield data.decisions;
  }
}

async function lastEntry(client: Client, feed: string | undefined): Promise<{ readonly cursor: string } | null> {
  const { decisions } = await ask<{ decisions: Edges<{ cursor: string }> }>(client, END, { feed });
  return decisions.edges[0] ?? null;
}

/** Of ledgers that are empty now: waits for the first entry, which is already news. null: aborted. */
async function firstEntry(
  client: Client,
  filter: FollowFilter,
  signal: AbortSignal,
): Promise<Followed | { readonly cursor: string } | null> {
  while (!signal.aborted) {
    const { first, wanted } = await ask<{
      first: Edges<{ cursor: string; node: { id: string } }>;
      wanted: Edges<{ node: FollowedDecision }>;
    }>(client, START, { feed: filter.feed, filter });
    const [edge] = first.edges;
    if (edge !== undefined) {
      const decision = wanted.edges[0]?.node;
      return decision?.id === edge.node.id ? { cursor: edge.cursor, decision } : { cursor: edge.cursor };
    }
    await sleep(EMPTY_POLL_MS, undefined, { signal }).catch(() => undefined);
  }
  return null;
}

async function ask<T extends object>(client: Client, query: string, variables: Record<string, unknown>): Promise<T> {
  for await (const { data, errors } of client.iterate<T>({ query, variables })) {
    if (errors !== undefined) throw new Answered(errors);
    if (data) return data;
  }
  throw new Error('the connection ended before the answer');
}

/** Whoever takes the connection and says nothing must not hold us for ever. */
class ImpatientWebSocket extends WebSocket {
  constructor(url: string, protocols: string) {
    super(url, protocols, { handshakeTimeout: ANSWER_MS });
  }
}

function connect(url: string, token: string | null): Client {
  let overdue: NodeJS.Timeout | undefined;
  const client = createClient({
    url: url.replace(/^http/, 'ws'),
    webSocketImpl: ImpatientWebSocket,
    connectionAckWaitTimeout: ANSWER_MS,
    connectionParams: token === null ? undefined : { authorization: `Bearer ${token}` },
    // Coming back is done here, because it goes on after another cursor.
    retryAttempts: 0,
    keepAlive: PING_MS,
    on: {
      ping: (received) => {
        if (!received) overdue = setTimeout(() => client.terminate(), PING_MS);
      },
      pong: (received) => {
        if (received) clearTimeout(overdue);
      },
      closed: () => clearTimeout(overdue),
    },
  });
  return client;
}

/**
 * @param hasOtherToken whether coming back would be with another one
 * @throws FollowError where coming back would not help
 */
function passingReason(error: unknown, hasOtherToken: () => boolean): string {
  if (error instanceof Answered || Array.isArray(error)) {
    const [first] = error instanceof Answered ? error.errors : (error as AnswerError[]);
    const given = first?.extensions?.code;
    const code = typeof given === 'string' ? given : 'INTERNAL_SERVER_ERROR';
    const message = `${first?.message ?? 'an error without a message'} (${code})`;
    if (!PASSING_CODES.has(code)) throw new FollowError(message);
    return message;
  }
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'number') {
    const reason = 'reason' in error && error.reason !== '' ? `: ${String(error.reason)}` : '';
    const message = `the connection was closed with ${error.code}${reason}`;
    const isFinal = FINAL_CLOSE_CODES.has(error.code) && !(error.code === CLOSE_FORBIDDEN && hasOtherToken());
    if (isFinal) throw new FollowError(message);
    return message;
  }
  const { code, message } = error as { code?: string; message?: string };
  return code ?? (message || 'not reachable');
}
