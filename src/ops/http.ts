/** `/healthz`, `/readyz` and `/metrics` for a process that serves no API. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Refusal, UNAVAILABLE_RETRY_SECONDS } from './bearer';
import type { Readiness } from './health';
import type { MetricsText } from './metrics';
import type { Logger } from './port';

export interface OpsServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Promise<MetricsText>;
  /** Whether the bearer of this `Authorization` header may read the metrics. */
  readonly mayReadMetrics: (authorization: string | undefined) => Promise<'granted' | Refusal>;
  readonly log: Logger;
}

export interface OpsServer {
  /** `http://<host>:<port>`, without a path. */
  readonly url: string;
  close(): Promise<void>;
}

/** @throws an error with code EADDRINUSE */
export async function startOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const server = createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      options.log.error({ err: error }, 'a request for health or metrics failed');
      if (!response.headersSent) reply(response, 500, { error: 'internal error' });
      else response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  // A TCP server that listens has an address of this form.
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(options: OpsServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [path] = (request.url ?? '').split('?');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    reply(response, 405, { error: 'method not allowed' });
  } else if (path === '/healthz') {
    reply(response, 200, { status: 'alive' });
  } else if (path === '/readyz') {
    const { ready, details } = await options.readiness();
    reply(response, ready ? 200 : 503, { ready, ...details });
  } else if (path === '/metrics') {
    await answerMetrics(options, request, response);
  } else {
    reply(response, 404, { error: 'not found' });
  }
}

async function answerMetrics(
  options: OpsServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const right = await options.mayReadMetrics(request.headers.authorization);
  if (right instanceof Refusal) {
    const { kind, reason } = right;
    options.log.warn({ path: '/metrics', kind, reason }, 'request refused');
    if (kind === 'unavailable') {
      response.setHeader('retry-after', UNAVAILABLE_RETRY_SECONDS);
      reply(response, 503, { error: 'tokens cannot be checked at the moment' });
    } else {
      response.setHeader('www-authenticate', 'Bearer');
      reply(response, 401, { error: 'a token is needed that is limited to no agency' });
    }
    return;
  }
  const { contentType, body } = await options.metrics();
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}

function reply(response: ServerResponse, status: number, body: object): void {
  const headers = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
