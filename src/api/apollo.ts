/** Apollo Server with everything that the API does not offer switched off. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ApolloServer, HeaderMap } from '@apollo/server';
import type { ApolloServerPlugin } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { GraphQLError } from 'graphql';
import type { ApiContext } from './context';
import { badInput } from './errors';
import type { ApiLimits } from './limits';
import type { ApiLog } from './log';
import { maskError } from './mask';
import { measure } from './measure';
import type { OperationRules } from './operation';

/**
 * The id of the request under way. Apollo formats errors without saying for which request; the call stack knows.
 */
export const currentCorrelationId = new AsyncLocalStorage<string>();

export function createApollo({ schema, limits, development }: OperationRules, log: ApiLog): ApolloServer<ApiContext> {
  return new ApolloServer<ApiContext>({
    schema,
    introspection: development,
    allowBatchedHttpRequests: false,
    csrfPrevention: true,
    persistedQueries: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    // Apollo would look it up in the environment, and behave by it.
    nodeEnv: 'production',
    parseOptions: { maxTokens: limits.maxTokens },
    formatError: (_, error) =>
      maskError(error, { correlationId: currentCorrelationId.getStore() ?? '', development, log }),
    logger: {
      debug: () => undefined,
      info: (message: string) => log.info({}, message),
      warn: (message: string) => log.warn({}, message),
      error: (message: string) => log.error({}, message),
    },
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      costPlugin(limits),
    ],
  });
}

/** After validation, when fragments are known to end and variables have values. */
function costPlugin(limits: ApiLimits): ApolloServerPlugin<ApiContext> {
  return {
    requestDidStart: () =>
      Promise.resolve({
        didResolveOperation: ({ schema, document, operation, request }) => {
          const excess =
            operation?.operation === 'subscription'
              ? badInput('subscriptions go by WebSocket (graphql-transport-ws), at the same address')
              : operation && measure({ schema, document, operation, variables: request.variables ?? {} }, limits);
          if (!excess) return Promise.resolve();
          const http = { status: 400, headers: new HeaderMap() };
          return Promise.reject(new GraphQLError(excess.message, { originalError: excess, extensions: { http } }));
        },
      }),
  };
}
