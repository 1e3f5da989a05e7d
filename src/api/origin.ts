/**
 * Which pages of a browser may talk to us: our own. A browser sends `Origin` with every WebSocket upgrade and every
 * request that is not a plain link; other clients send none.
 */
import { isIP } from 'node:net';
import type { IncomingMessage } from 'node:http';

export type OriginVerdict = 'allowed' | 'foreign_origin' | 'foreign_host';

/**
 * @param host that the service is bound to. On a loopback address the `Host` header must name a loopback address too: a
 *   foreign name that resolves to one (DNS rebinding) makes a foreign page look like our own.
 */
export function judgeOrigin(request: IncomingMessage, host: string): OriginVerdict {
  const own = request.headers.host;
  if (own === undefined) return 'foreign_host';
  const named = hostOf(`http://${own}`);
  if (named === null || (isLoopback(host) && !isLoopback(named.hostname))) return 'foreign_host';
  const { origin } = request.headers;
  if (origin === undefined) return 'allowed';
  // `null` is the origin of sandboxed frames and local files: nobody's page.
  return hostOf(origin)?.host === named.host ? 'allowed' : 'foreign_origin';
}

export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}

function hostOf(url: string): URL | null {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}
