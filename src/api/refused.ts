/** Requests that are not let through, and errors that are answered without GraphQL. */
import type { ServerResponse } from 'node:http';
import { UNAVAILABLE_RETRY_SECONDS } from '../ops/bearer';
import type { Refusal } from '../ops/bearer';

/** A request that is not looked at further. Thrown; routes.ts answers it. */
export class RefusedRequest extends Error {
  /**
   * @param message for the client
   * @param reason for the log; default: the message
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
    readonly reason = message,
  ) {
    super(message);
    this.name = 'RefusedRequest';
  }
}

/**
 * @param needed for the client, which is not told what is wrong with its token
 * @param authorization as it came
 */
export function refusedToken(refusal: Refusal, needed: string, authorization: string | undefined): RefusedRequest {
  const { kind, reason } = refusal;
  if (kind === 'unavailable') {
    // Not the token is wrong: whoever comes back with it may be let in.
    const headers = { 'retry-after': String(UNAVAILABLE_RETRY_SECONDS) };
    return new RefusedRequest(503, 'SERVICE_UNAVAILABLE', 'tokens cannot be checked at the moment', headers, reason);
  }
  // RFC 6750, section 3: nothing is said of an error where no token came.
  const challenge = authorization === undefined ? 'Bearer' : 'Bearer error="invalid_token"';
  return new RefusedRequest(401, 'UNAUTHENTICATED', needed, { 'www-authenticate': challenge }, reason);
}

export function sendError(
  response: ServerResponse,
  status: number,
  { code, message, correlationId }: { readonly code: string; readonly message: string; readonly correlationId: string },
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const text = JSON.stringify({ errors: [{ message, extensions: { code, correlationId } }] });
  response.writeHead(status, {
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.end(`${text}\n`);
}
