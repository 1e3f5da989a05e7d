/** Servers of an OpenID provider's documents, which do what no provider would be asked to in a test. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { AUDIENCE, signToken } from '../support/oidc-provider';
import type { SigningKey } from '../support/oidc-provider';

export interface Reply {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Documents {
  readonly issuer: string;
  answer: (url: string) => Reply | Promise<Reply>;
}

/** A server that answers what it is told to. */
export async function documents(answer: Documents['answer']): Promise<Documents> {
  const port = await freePort();
  const served: Documents = { issuer: `http://127.0.0.1:${port}`, answer };
  const server: Server = createServer((request: IncomingMessage, response: ServerResponse) => {
    void Promise.resolve(served.answer(request.url ?? '')).then(({ status, body, headers }) => {
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return served;
}

export const DISCOVERY = '/.well-known/openid-configuration';
export const ok = (value: unknown): Reply => ({ status: 200, body: JSON.stringify(value) });

/** As a provider publishes it. */
export function publicJwk(key: SigningKey): object {
  return { ...key.publicKey.export({ format: 'jwk' }), kid: key.kid, use: 'sig', alg: key.algorithm };
}

export interface KeyServer {
  readonly issuer: string;
  /** Of the keys, so far. */
  fetches(): number;
  /** Other keys from now on: JSON Web Keys. */
  publish(...keys: readonly object[]): void;
  /** From now on answers come, with the keys of when they were asked for, once the answer of this is called. */
  hold(): () => void;
}

export async function startKeyServer(...keys: readonly object[]): Promise<KeyServer> {
  let published = keys;
  let fetches = 0;
  let held = Promise.resolve();
  const { issuer } = await documents(async (url) => {
    if (url === DISCOVERY) return ok({ issuer, jwks_uri: `${issuer}/keys` });
    fetches += 1;
    const reply = ok({ keys: published });
    await held;
    return reply;
  });
  return {
    issuer,
    fetches: () => fetches,
    publish: (...other) => {
      published = other;
    },
    hold: () => {
      let release: () => void = () => undefined;
      held = new Promise((resolve) => (release = resolve));
      return () => release();
    },
  };
}

/** An access token that a server of keys could have issued. @param kid null: it names no key */
export function tokenOf(issuer: string, key: SigningKey, kid: string | null = key.kid, claims: object = {}): string {
  const header = { alg: key.algorithm, typ: 'at+jwt', ...(kid === null ? {} : { kid }) };
  const now = Math.floor(Date.now() / 1000);
  const usual = { iss: issuer, aud: AUDIENCE, sub: 'alice', iat: now, exp: now + 600, roles: ['viewer'] };
  return signToken(header, { ...usual, ...claims }, key);
}
