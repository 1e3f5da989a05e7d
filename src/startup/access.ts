import type { Config } from '../config';
import type { Cleanup } from '../ops/cleanup';
import type { Logger } from '../ops/port';
import { may } from '../ops/roles';
import { TokenFile, TokenFileError } from '../ops/token-file';
import { StartError } from './parts';

/** The tokens of the service; null where it has none, and listens on loopback alone (config.ts). @throws StartError */
export function openTokens(config: Config, log: Logger, cleanup: Cleanup): TokenFile | null {
  if (config.apiTokensFile === null) return null;
  try {
    const tokens = new TokenFile(config.apiTokensFile, log);
    cleanup.add('token file', () => tokens.close());
    return tokens;
  } catch (error) {
    if (error instanceof TokenFileError) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

/** Counts are of whole feeds, so a token that is limited to agencies may not read them. */
export function mayReadMetrics(tokens: TokenFile | null, authorization: string | undefined): boolean {
  if (tokens === null) return true;
  const holder = tokens.authenticate(authorization);
  return holder !== null && holder.agencies === null && may(holder.role, 'readMetrics');
}
