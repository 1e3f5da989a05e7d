/** A real OpenID provider on loopback, and tokens: those that it issues, and those that it never would. */
import { constants, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from './free-port';
import { startProcess } from './process';
import type { TestProcess } from './process';

const SERVER = join(__dirname, 'oidc-provider-server.mjs');
const CLIENT = { id: 'test-client', secret: 'a-secret-of-the-test-client' };

export interface SigningKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** Private; the provider publishes its public part. */
  readonly jwk: JsonWebKey;
}

/** @param rsaBits for RS and PS */
export function makeKey(kid: string, algorithm = 'RS256', rsaBits = 2048): SigningKey {
  const { privateKey, publicKey } = keyPair(algorithm, rsaBits);
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' };
  return { kid, algorithm, privateKey, publicKey, jwk };
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

function keyPair(
  algorithm: string,
  modulusLength: number,
): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  const namedCurve = CURVES[algorithm];
  if (namedCurve !== undefined) return generateKeyPairSync('ec', { namedCurve });
  if (algorithm.startsWith('Ed')) return generateKeyPairSync('ed25519');
  return generateKeyPairSync('rsa', { modulusLength });
}

export interface TokenWishes {
  /** Default: the audience of the tests. An absolute URI. */
  readonly audience?: string;
  /** Beside those of the provider. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Default: the id of the client. */
  readonly subject?: string;
  /** Default 600. */
  readonly seconds?: number;
  /** Default RS256: the first key for it signs. */
  readonly algorithm?: string;
  /** `typ` of the header; default `at+jwt`. */
  readonly type?: string;
}

export const AUDIENCE = 'https://ledger.example/api';

export interface OidcProvider {
  readonly issuer: string;
  readonly port: number;
  /** An access token as the provider issues it. */
  token(wishes?: TokenWishes): Promise<string>;
  /** Other keys from now on; one for RS256 is needed. */
  publish(...keys: readonly SigningKey[]): Promise<void>;
  stop(): Promise<void>;
  /** On the same port, with the keys of before. */
  start(): Promise<void>;
  /** SIGSTOP: it takes connections and answers nothing, until `resume`. */
  freeze(): void;
  resume(): void;
}

/** @param keys at least one for RS256 */
export async function startOidcProvider(...keys: readonly SigningKey[]): Promise<OidcProvider> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  let published = jwksOf(keys);
  let server: TestProcess | null = null;
  const start = async (): Promise<void> => {
    const env = { PORT: String(port), CLIENT_ID: CLIENT.id, CLIENT_SECRET: CLIENT.secret, KEYS: published };
    server = startProcess(process.execPath, [SERVER], { env });
    await server.waitForLine(/^provider ready/);
  };
  await start();
  return {
    issuer,
    port,
    token: (wishes = {}) => requestToken(issuer, wishes),
    publish: async (...other) => {
      published = jwksOf(other);
      const { status } = await fetch(`${issuer}/test/keys`, { method: 'PUT', body: published });
      if (status !== 204) throw new Error(`the provider took no keys: ${status}`);
    },
    stop: async () => void (await server?.kill9()),
    start,
    freeze: () => server?.signal('SIGSTOP'),
    resume: () => server?.signal('SIGCONT'),
  };
}

function jwksOf(keys: readonly SigningKey[]): string {
  return JSON.stringify(keys.map(({ jwk }) => jwk));
}

async function requestToken(issuer: string, wishes: TokenWishes): Promise<string> {
  const { audience = AUDIENCE, claims = {}, seconds = 600, algorithm = 'RS256', subject, type } = wishes;
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`,
      'x-token': Buffer.from(JSON.stringify({ claims, seconds, algorithm, subject, type })).toString('base64'),
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
  });
  const answer = (await response.json()) as { readonly access_token?: string };
  if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`);
  return answer.access_token;
}

/** The parts of a token, to be changed and signed again. */
export function partsOf(token: string): { readonly header: object; readonly claims: Record<string, unknown> } {
  const [header = '', claims = ''] = token.split('.');
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as Record<string, unknown>;
  return { header: read(header), claims: read(claims) };
}

/** A token with this very header, whatever it says of the algorithm. */
export function signToken(header: object, claims: object, key: SigningKey): string {
  const content = contentOf(header, claims);
  return `${content}.${signatureOf(content, key).toString('base64url')}`;
}

function signatureOf(content: string, { algorithm, privateKey }: SigningKey): Buffer {
  const data = Buffer.from(content);
  if (algorithm.startsWith('Ed')) return sign(null, data, privateKey);
  const hash = `sha${algorithm.slice(2)}`;
  if (algorithm.startsWith('ES')) return sign(hash, data, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  // RFC 7518, section 3.5: RSASSA-PSS with a salt as long as the hash.
  const padding = algorithm.startsWith('PS')
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: Number(algorithm.slice(2)) / 8 }
    : {};
  return sign(hash, data, { key: privateKey, ...padding });
}

/** With a shared secret, as whoever knows the public key could make one. */
export function macToken(header: object, claims: object, secret: string | Buffer): string {
  const content = contentOf(header, claims);
  return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`;
}

export function unsignedToken(header: object, claims: object): string {
  return `${contentOf(header, claims)}.`;
}

function contentOf(header: object, claims: object): string {
  return [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
}
