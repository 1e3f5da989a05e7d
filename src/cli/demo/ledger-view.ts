/** What the ledger says about the night, asked as anybody would ask: through the GraphQL API. */
import { FEED, INCIDENT } from './scenario';
import type { Change, Picture } from './scenario';
import { DemoFailed } from './stop';

export interface Balance {
  readonly received: number;
  readonly entries: number;
  readonly appliedKeys: number;
  readonly applied: number;
  readonly released: number;
  readonly balanced: boolean;
}

/** A suppressed replay. Positions are those of the feed's ledger. */
export interface Suppression {
  readonly position: number;
  readonly tier: string;
  readonly source: string;
  readonly sequence: string;
  readonly change: Change;
  readonly originalPosition: number;
  readonly lagSeconds: number;
}

export interface LedgerView {
  readonly cop: Picture;
  /** Outcome → number of entries. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly balance: Balance;
  readonly suppressions: readonly Suppression[];
}

/** More than the night has. */
const PAGE = 100;

const RECEIVED = `query ($feed: ID!) { feed(name: $feed) { balance { received } } }`;

const VIEW = `query ($feed: ID!, $incident: ID!, $page: Int!) {
  incident(id: $incident) { state }
  feed(name: $feed) { balance { received entries appliedKeys applied released balanced } }
  decisions(filter: { feed: $feed }, first: $page) { edges { node {
    position outcome tier sourceId sequence replayLagSeconds payload original { position }
  } } }
}`;

/** 64-bit integers come as digits. */
type Digits = string;

interface RawBalance {
  readonly received: Digits;
  readonly entries: Digits;
  readonly appliedKeys: Digits;
  readonly applied: Digits;
  readonly released: Digits;
  readonly balanced: boolean;
}

interface RawDecision {
  readonly position: Digits;
  readonly outcome: string;
  readonly tier: string;
  readonly sourceId: string;
  readonly sequence: string;
  readonly replayLagSeconds: number | null;
  readonly payload: Change;
  readonly original: { readonly position: Digits } | null;
}

interface RawView {
  readonly incident: { readonly state: Partial<Picture> } | null;
  readonly feed: { readonly balance: RawBalance };
  readonly decisions: { readonly edges: readonly { readonly node: RawDecision }[] };
}

/** Messages received so far, each with its entry. @throws DemoFailed */
export async function messagesReceived(apiUrl: string): Promise<number> {
  const { feed } = await ask<{ feed: { balance: { received: Digits } } }>(apiUrl, RECEIVED, { feed: FEED });
  return Number(feed.balance.received);
}

/** @throws DemoFailed */
export async function readLedger(apiUrl: string): Promise<LedgerView> {
  const { incident, feed, decisions } = await ask<RawView>(apiUrl, VIEW, {
    feed: FEED,
    incident: INCIDENT,
    page: PAGE,
  });
  const entries = decisions.edges.map(({ node }) => node);
  const outcomes: Record<string, number> = {};
  for (const { outcome } of entries) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  return {
    cop: { casualties: incident?.state.casualties ?? 0, units: incident?.state.units ?? {} },
    outcomes,
    balance: balanceOf(feed.balance),
    suppressions: entries.filter(({ outcome }) => outcome === 'DUPLICATE_SUPPRESSED').map(suppressionOf),
  };
}

function balanceOf(raw: RawBalance): Balance {
  return {
    received: Number(raw.received),
    entries: Number(raw.entries),
    appliedKeys: Number(raw.appliedKeys),
    applied: Number(raw.applied),
    released: Number(raw.released),
    balanced: raw.balanced,
  };
}

function suppressionOf(entry: RawDecision): Suppression {
  if (entry.original === null) throw new DemoFailed(`entry ${entry.position} was suppressed without an original`);
  return {
    position: Number(entry.position),
    tier: entry.tier,
    source: entry.sourceId,
    sequence: entry.sequence,
    change: entry.payload,
    originalPosition: Number(entry.original.position),
    lagSeconds: entry.replayLagSeconds ?? 0,
  };
}

interface Answer<T> {
  readonly data?: T | null;
  readonly errors?: readonly { readonly message: string }[];
}

/** The answers are trusted in their form: it is this very program that gives them. */
async function ask<T>(apiUrl: string, query: string, variables: Readonly<Record<string, unknown>>): Promise<T> {
  let answer: Answer<T>;
  try {
    const response = await fetch(apiUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    answer = (await response.json()) as Answer<T>;
  } catch (error) {
    throw new DemoFailed('the API gave no answer', { cause: error });
  }
  const { data, errors = [] } = answer;
  const [first] = errors;
  if (first !== undefined) throw new DemoFailed(`the API refused a query: ${first.message}`);
  if (data === undefined || data === null) throw new DemoFailed('the API answered a query without data');
  return data;
}
