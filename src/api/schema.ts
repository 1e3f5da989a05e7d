/** The schema, put together. */
import 'reflect-metadata';
import { lexicographicSortSchema, printSchema } from 'graphql';
import type { GraphQLSchema } from 'graphql';
import { buildSchemaSync } from 'type-graphql';
import type { PubSub } from 'type-graphql';
import { AdminResolver } from './resolvers/admin';
import { ContractResolver } from './resolvers/contract';
import { DecisionResolver } from './resolvers/decision';
import { FeedResolver } from './resolvers/feed';
import { IncidentResolver, IncidentSourceResolver } from './resolvers/incident';
import { PreviewDifferenceResolver, PreviewResolver } from './resolvers/preview';
import { PolicyResolver, PolicyVersionResolver } from './resolvers/policy';
import { SourceResolver } from './resolvers/source';
import { PolicySubscriptionResolver, SubscriptionResolver } from './resolvers/subscription';
import { registerContractEnums } from './types/contract';
import { WindowResolver } from './resolvers/window';
import { registerEnums } from './types/enums';

/** The library wants one; subscriptions read the ledger instead (design section 8), so nothing is ever sent over it. */
const NO_PUB_SUB: PubSub = {
  publish: refuse,
  subscribe: refuse,
};

export function buildApiSchema(): GraphQLSchema {
  registerEnums();
  registerContractEnums();
  return buildSchemaSync({
    resolvers: [
      AdminResolver,
      ContractResolver,
      DecisionResolver,
      FeedResolver,
      IncidentResolver,
      IncidentSourceResolver,
      PolicyResolver,
      PolicyVersionResolver,
      PreviewDifferenceResolver,
      PreviewResolver,
      SourceResolver,
      PolicySubscriptionResolver,
      SubscriptionResolver,
      WindowResolver,
    ],
    pubSub: NO_PUB_SUB,
    // Arguments are checked by the model: its messages and codes are the ones that are documented.
    validate: false,
  });
}

/** SDL with descriptions, sorted, as `schema/schema.graphql` holds it. */
export function emitGraphqlSchema(): string {
  return `${printSchema(lexicographicSortSchema(buildApiSchema()))}\n`;
}

function refuse(): never {
  throw new Error('no topic is published');
}
