import type { Config } from '../config';
import { AccessTokens } from '../ops/access-tokens';
import { Refusal } from '../ops/bearer';
import type { Tokens } from '../ops/bearer';
import type { Cleanup } from '../ops/cleanup';
import { OidcTokens } from '../ops/oidc';
import type { Logger } from '../ops/port';
import { may } from '../ops/roles';
import { TokenFile, TokenFileError } from '../ops/token-file';
import { StartError } from './parts';

export interface OpenTokens {
  /** null: the service has none, and listens on loopback alone (config.ts). */
  readonly tokens: Tokens | null;
  /** Those of the OpenID provider, which are among them; null without one. */
  readonly oidc: OidcTokens | null;
}

/** @throws StartError */
export function openTokens(config: Config, log: Logger, cleanup: Cleanup): OpenTokens {
  const file = openTokenFile(config, log, cleanup);
  if (config.oidc === null) return { tokens: file === null ? null : new AccessTokens(file, null), oidc: null };
  const oidc = new OidcTokens(config.oidc, log);
  cleanup.add('keys of the OpenID provider', () => oidc.close());
  return { tokens: new AccessTokens(file, oidc), oidc };
}

function openTokenFile(config: Config, log: Logger, cleanup: Cleanup): TokenFile | null {
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
export async function mayReadMetrics(
  tokens: Tokens | null,
  authorization: string | undefined,
): Promise<'granted' | Refusal> {
  if (tokens === null) return 'granted';
  const bearer = await tokens.authenticate(authorization);
  if (bearer instanceof Refusal) return bearer;
  const isGranted = bearer.agencies === null && may(bearer.roles, 'readMetrics');
  return isGranted ? 'granted' : new Refusal('refused', 'may not read metrics');
}
