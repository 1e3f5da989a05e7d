/** Fetches the key set of an OpenID provider: discovery, then the keys, bounded in time and size. */
import { isSafeUrl } from './loopback';

/** The message says what is wrong with the answers of the provider; it holds nothing secret. */
export class OidcFetchError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OidcFetchError';
  }
}

/** Key sets are a few thousand bytes; one with certificates a few ten thousand. */
const MAX_DOCUMENT_BYTES = 262_144;

/**
 * @param signal ends it, both documents together
 * @returns what is at the `jwks_uri`, an object
 * @throws OidcFetchError, or the error of `fetch`
 */
export async function fetchKeySet(issuer: string, signal: AbortSignal): Promise<object> {
  // OpenID Connect Discovery 1.0, section 4.1: a slash at the end goes.
  const document = await fetchObject(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
  // Section 4.3: exactly. Otherwise one provider could speak for another.
  if (document.issuer !== issuer) throw new OidcFetchError('the discovery document is that of another issuer');
  const { jwks_uri: uri } = document;
  // Whoever can change keys on their way can forge tokens.
  if (typeof uri !== 'string' || !URL.canParse(uri) || !isSafeUrl(new URL(uri))) {
    throw new OidcFetchError('the jwks_uri of the discovery document is no https:// URL');
  }
  return fetchObject(uri, signal);
}

async function fetchObject(url: string, signal: AbortSignal): Promise<Readonly<Record<string, unknown>>> {
  // A redirect could lead to a place that was not checked.
  const response = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new OidcFetchError(`${url} answered ${response.status}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(await readText(response, url));
  } catch (error) {
    throw error instanceof SyntaxError ? new OidcFetchError(`${url} did not answer JSON`) : error;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new OidcFetchError(`${url} did not answer a JSON object`);
  }
  return value as Readonly<Record<string, unknown>>;
}

async function readText({ body }: Response, url: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop early ends the download.
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > MAX_DOCUMENT_BYTES) throw new OidcFetchError(`${url} answered more than ${MAX_DOCUMENT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
