/** What resolvers work with. */
import type { PrismaClient } from '../generated/prisma/client';
import type { HeadWatcher } from './live/heads';
import type { Gate } from './live/gate';
import type { ApiLimits } from './limits';
import type { ApiLog } from './log';
import type { ContractTexts } from './read/contracts';
import { createLoaders } from './read/loaders';
import type { Loaders } from './read/loaders';
import { Messages } from './read/messages';
import type { Viewer } from './viewer';

/** Of the service: one, as long as it runs. */
export interface ApiServices {
  readonly prisma: PrismaClient;
  readonly limits: ApiLimits;
  readonly log: ApiLog;
  readonly contracts: ContractTexts;
  /** What is wrong with the contract file of a feed; null: nothing that this process knows of. */
  readonly contractErrorOf: (feed: string) => string | null;
  readonly heads: HeadWatcher;
  readonly streamReads: Gate;
}

/** Of one operation, or of one event of a subscription. */
export interface ApiContext {
  readonly services: ApiServices;
  readonly viewer: Viewer;
  /** Given to the client with every error, and logged with its cause. */
  readonly correlationId: string;
  readonly loaders: Loaders;
  readonly messages: Messages;
}

export function createContext(
  services: ApiServices,
  of: { readonly viewer: Viewer; readonly correlationId: string },
): ApiContext {
  const loaders = createLoaders(services.prisma, of.viewer);
  const messages = new Messages(services.prisma, loaders, services.contracts, services.limits.maxPayloadBytes);
  return { services, ...of, loaders, messages };
}
