/**
 * An operation that came over a WebSocket, from text to what can be executed: the steps and limits that Apollo Server
 * takes over HTTP, in the same order.
 */
import {
  GraphQLError,
  NoSchemaIntrospectionCustomRule,
  getOperationAST,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { DocumentNode, ExecutionArgs, GraphQLSchema } from 'graphql';
import { badInput } from './errors';
import type { ApiLimits } from './limits';
import { measure } from './measure';

export interface OperationText {
  readonly query: string;
  readonly operationName?: string | null;
  readonly variables?: Readonly<Record<string, unknown>> | null;
}

export interface OperationRules {
  readonly schema: GraphQLSchema;
  readonly limits: ApiLimits;
  readonly development: boolean;
}

export type PreparedOperation =
  | { readonly ok: true; readonly args: ExecutionArgs }
  | { readonly ok: false; readonly errors: readonly GraphQLError[] };

export function prepareOperation(
  { query, operationName, variables }: OperationText,
  rules: OperationRules,
): PreparedOperation {
  const { schema, limits, development } = rules;
  let document: DocumentNode;
  try {
    document = parse(query, { maxTokens: limits.maxTokens });
  } catch (error) {
    return { ok: false, errors: [coded(error, 'GRAPHQL_PARSE_FAILED')] };
  }
  const invalid = validate(schema, document, [
    ...specifiedRules,
    ...(development ? [] : [NoSchemaIntrospectionCustomRule]),
  ]);
  if (invalid.length > 0)
    return { ok: false, errors: invalid.map((error) => coded(error, 'GRAPHQL_VALIDATION_FAILED')) };
  const operation = getOperationAST(document, operationName);
  if (operation === null || operation === undefined) {
    return { ok: false, errors: [refusal(badInput('operationName names no operation of the document'))] };
  }
  const excess = measure({ schema, document, operation, variables: variables ?? {} }, limits);
  if (excess !== null) return { ok: false, errors: [refusal(excess)] };
  return { ok: true, args: { schema, document, operationName, variableValues: variables ?? {} } };
}

function refusal(error: Error): GraphQLError {
  return new GraphQLError(error.message, { originalError: error });
}

function coded(error: unknown, code: string): GraphQLError {
  if (!(error instanceof GraphQLError)) return refusal(error instanceof Error ? error : new Error(String(error)));
  const { message, nodes, source, positions } = error;
  return new GraphQLError(message, { nodes, source, positions, extensions: { code } });
}
