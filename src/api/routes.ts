/** What is at which path. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../ops/bearer';
import type { Readiness } from '../ops/health';
import type { MetricsText } from '../ops/metrics';
import { isPageRequest, sendGraphiql } from './graphiql';
import type { Graphiql } from './graphiql';
import { serveGraphql } from './http';
import type { GraphqlRoute } from './http';
import type { ApiLog } from './log';
import { RefusedRequest, refusedToken, sendError } from './refused';

export const GRAPHQL_PATH = '/graphql';

/** What operators ask of the service. It tells of whole feeds, so not every token is enough. */
export interface Operations {
  /** Asked for every `/readyz`; a rejection means not ready. */
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Promise<MetricsText>;
  /** Whether the bearer of this `Authorization` header may read the metrics, and the details of readiness. */
  readonly mayRead: (authorization: string | undefined) => Promise<'granted' | Refusal>;
}

export interface Routes {
  readonly graphql: GraphqlRoute;
  readonly operations: Operations;
  /** null: not served. */
  readonly graphiql: Graphiql | null;
  readonly log: ApiLog;
}

/** Never rejects. */
export async function serve(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const correlationId = randomUUID();
  response.setHeader('x-content-type-options', 'nosniff');
  try {
    await answer(routes, request, response, correlationId);
  } catch (error) {
    if (error instanceof RefusedRequest) {
      const { status, code, message, headers, reason } = error;
      const { method } = request;
      routes.log.warn({ correlationId, code, reason, method, origin: request.headers.origin }, 'request refused');
      sendError(response, status, { code, message, correlationId }, headers);
    } else if (!response.destroyed) {
      routes.log.error({ err: error, correlationId }, 'request failed');
      sendError(response, 500, { code: 'INTERNAL_SERVER_ERROR', message: 'internal error', correlationId });
    }
  }
}

async function answer(
  { graphql, operations, graphiql, log }: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  correlationId: string,
): Promise<void> {
  const path = pathOf(request);
  if (graphiql !== null && isPageRequest(path, request)) return sendGraphiql(graphiql, path, request, response);
  switch (path) {
    case GRAPHQL_PATH:
      return serveGraphql(graphql, request, response, correlationId);
    case '/healthz':
      return sendJson(request, response, 200, { alive: true });
    case '/readyz':
      return sendReadiness(operations, log, request, response, correlationId);
    case '/metrics':
      return sendMetrics(operations, request, response);
    default:
      return sendError(response, 404, { code: 'NOT_FOUND', message: 'there is nothing here', correlationId });
  }
}

/** Whether it is ready, to everybody, as load balancers hold no token; why, and of which feeds, to operators. */
async function sendReadiness(
  { readiness, mayRead }: Operations,
  log: ApiLog,
  request: IncomingMessage,
  response: ServerResponse,
  correlationId: string,
): Promise<void> {
  const state = await readiness().catch((error: unknown): Readiness => {
    log.warn({ err: error, correlationId }, 'cannot tell whether the service is ready');
    return { ready: false, details: {} };
  });
  const details = (await mayRead(request.headers.authorization)) === 'granted' ? state.details : {};
  sendJson(request, response, state.ready ? 200 : 503, { ready: state.ready, ...details });
}

/** @throws RefusedRequest */
async function sendMetrics(
  { metrics, mayRead }: Operations,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (!isReading(request)) return refuseMethod(response);
  const { authorization } = request.headers;
  const right = await mayRead(authorization);
  if (right instanceof Refusal) {
    throw refusedToken(right, 'a token is needed that is limited to no agency', authorization);
  }
  const { contentType, body } = await metrics();
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (!isReading(request)) return refuseMethod(response);
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(request.method === 'HEAD' ? undefined : `${JSON.stringify(body)}\n`);
}

function isReading({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD';
}

function refuseMethod(response: ServerResponse): void {
  response.writeHead(405, { allow: 'GET, HEAD' }).end();
}

export function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?')[0] ?? '';
}
