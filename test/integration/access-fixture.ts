/** A token file as operators keep it, and clients that bear its tokens. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import WebSocket from 'ws';
import { AccessTokens } from '../../src/ops/access-tokens';
import type { Tokens } from '../../src/ops/bearer';
import { TokenFile } from '../../src/ops/token-file';
import { createToken } from '../../src/ops/tokens';
import type { TokenHolder } from '../../src/ops/tokens';
import { onCleanup } from '../support/cleanup';
import { until } from '../support/wait';
import type { Answer, TestApi } from './api-fixture';

const QUIET = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export interface TestTokens {
  readonly path: string;
  /** Appends a line, or puts it in the place of that of the same name. Answers the token. */
  add(holder: Partial<TokenHolder> & { readonly name: string }): string;
  /** The same token with other rights. */
  change(name: string, changes: Partial<TokenHolder>): void;
  revoke(name: string): void;
}

export function makeTokens(): TestTokens {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-tokens-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'tokens');
  const lines = new Map<string, string>();
  const write = () => writeFileSync(path, [...lines.values(), ''].join('\n'));
  write();
  return {
    path,
    add: (holder) => {
      const made = createToken({ role: 'viewer', agencies: null, expiresAtMs: null, ...holder });
      lines.set(holder.name, made.line);
      write();
      return made.token;
    },
    change: (name, { agencies, expiresAtMs, ...rest }) => {
      const known = JSON.parse(lines.get(name) ?? '') as object;
      const expires = expiresAtMs == null ? {} : { expires: new Date(expiresAtMs).toISOString().replace(/\.\d+/, '') };
      lines.set(name, JSON.stringify({ ...known, ...rest, ...(agencies == null ? {} : { agencies }), ...expires }));
      write();
    },
    revoke: (name) => {
      lines.delete(name);
      write();
    },
  };
}

/** @param reloadMs default: as the service has it */
export function openTokenFile(path: string, reloadMs?: number): Tokens {
  const file = new TokenFile(path, QUIET, reloadMs);
  onCleanup(() => file.close());
  return new AccessTokens(file, null);
}

/** A query with a token. */
export function asking(app: TestApi, token: string): (query: string, variables?: object) => Promise<Answer> {
  return (query, variables = {}) =>
    app.post(query, variables as Record<string, unknown>, { authorization: `Bearer ${token}` });
}

export interface LateRequest {
  /** Sends the body. Answers the status. */
  finish(): Promise<number | undefined>;
}

/** A query with a token, whose head has been read while its body is yet to come. */
export async function lateRequest(app: TestApi, token: string, query: string): Promise<LateRequest> {
  const body = JSON.stringify({ query });
  const sending = request(app.api.url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      // Answered when the head has been read; what is done with it begins in the same turn.
      expect: '100-continue',
    },
  });
  sending.flushHeaders();
  await once(sending, 'continue');
  return {
    finish: async () => {
      sending.end(body);
      const [response] = (await once(sending, 'response')) as [IncomingMessage];
      response.resume();
      return response.statusCode;
    },
  };
}

export interface RawMessage {
  readonly id?: string;
  readonly type: string;
  readonly payload?: unknown;
}

export interface RawSocket {
  readonly socket: WebSocket;
  readonly messages: RawMessage[];
  /** Close code and reason; null while it is open. */
  readonly closed: () => readonly [code: number, reason: string] | null;
  send(message: RawMessage): void;
  /** Resolves to close code and reason. */
  end(timeoutMs?: number): Promise<readonly [code: number, reason: string]>;
}

/** A socket without any protocol of ours; open. */
export async function rawSocket(app: TestApi): Promise<RawSocket> {
  const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
  onCleanup(() => socket.terminate());
  const messages: RawMessage[] = [];
  let closed: readonly [number, string] | null = null;
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString()) as RawMessage));
  socket.on('close', (code, reason) => (closed = [code, String(reason)]));
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('open', resolve));
  return {
    socket,
    messages,
    closed: () => closed,
    send: (message) => socket.send(JSON.stringify(message)),
    end: async (timeoutMs) => until(() => closed, { what: 'the end of the socket', timeoutMs, everyMs: 5 }),
  };
}

/** Subscribed to all decisions with this `authorization`, and waiting. */
export async function rawSubscriber(app: TestApi, authorization: unknown, query = SUBSCRIBE): Promise<RawSocket> {
  const raw = await rawSocket(app);
  raw.send({ type: 'connection_init', payload: { authorization } });
  await until(() => raw.messages.length === 1 || raw.closed() !== null, { what: 'an answer to connection_init' });
  const before = app.api.stats().waiting;
  if (raw.closed() === null) {
    raw.send({ id: '1', type: 'subscribe', payload: { query } });
    await until(() => app.api.stats().waiting === before + 1, { what: 'the subscription' });
  }
  return raw;
}

const SUBSCRIBE = 'subscription { decisions { position decision { agency sequence } } }';

/** Sequences of the events that came. */
export function sequences(raw: RawSocket): string[] {
  return raw.messages
    .filter(({ type }) => type === 'next')
    .map(({ payload }) => (payload as { data: { decisions: { decision: { sequence: string } } } }).data)
    .map((data) => data.decisions.decision.sequence);
}
