/** An API whose tokens are those of a real OpenID provider. */
import { AccessTokens } from '../../src/ops/access-tokens';
import { OidcTokens } from '../../src/ops/oidc';
import type { OidcTiming } from '../../src/ops/oidc-keys';
import type { OidcSettings } from '../../src/ops/oidc-settings';
import type { ApiOptions } from '../../src/api/server';
import type { TokenFile } from '../../src/ops/token-file';
import { onCleanup } from '../support/cleanup';
import { AUDIENCE, makeKey, startOidcProvider } from '../support/oidc-provider';
import type { OidcProvider, SigningKey } from '../support/oidc-provider';
import { b, startPipeline } from '../support/pipeline';
import type { TestPipeline } from '../support/pipeline';
import { startTestApi } from './api-fixture';
import type { Answer, LogLine, TestApi } from './api-fixture';

export const SETTINGS: Omit<OidcSettings, 'issuer'> = {
  audience: AUDIENCE,
  tokenType: 'at+jwt',
  roles: ['roles'],
  rolePrefix: '',
  agencies: null,
  name: ['sub'],
};

/** Rotation is by hand in most tests, so that nothing happens beside them. */
export const UNHURRIED: Partial<OidcTiming> = { refreshMs: 3_600_000, retryMs: 20 };

export interface ApiOfTokens {
  readonly app: TestApi;
  readonly oidc: OidcTokens;
  /** What the tokens said in the log. */
  readonly said: LogLine[];
  /** A query with a token. */
  ask(token: string, query?: string, variables?: object): Promise<Answer>;
}

export interface OidcApiOptions {
  readonly issuer: string;
  readonly settings?: Partial<OidcSettings>;
  readonly timing?: Partial<OidcTiming>;
  readonly file?: TokenFile;
  readonly api?: Partial<ApiOptions>;
}

export async function startOidcApi(path: TestPipeline, options: OidcApiOptions): Promise<ApiOfTokens> {
  const { issuer, settings, timing = {}, file = null, api } = options;
  const said: LogLine[] = [];
  const note = (level: LogLine['level']) => (facts: object, message: string) => {
    said.push({ level, facts: facts as LogLine['facts'], message });
  };
  const log = { debug: note('info'), info: note('info'), warn: note('warn'), error: note('error') };
  const oidc = new OidcTokens({ ...SETTINGS, issuer, ...settings }, log, { ...UNHURRIED, ...timing });
  onCleanup(() => oidc.close());
  const tokens = new AccessTokens(file, oidc);
  const app = await startTestApi({ database: path.database, wakeUps: path.wakeUps, tokens, ...api });
  const ask: ApiOfTokens['ask'] = (token, query = AGENCIES, variables = {}) =>
    app.post(query, variables as Record<string, unknown>, { authorization: `Bearer ${token}` });
  return { app, oidc, said, ask };
}

export const AGENCIES = '{ decisions { nodes { agency } } }';

export interface OidcSetting extends ApiOfTokens {
  readonly path: TestPipeline;
  readonly provider: OidcProvider;
  readonly key: SigningKey;
  /** Another API on the same ledger and provider. */
  another(options: Omit<OidcApiOptions, 'issuer'>): Promise<ApiOfTokens>;
}

/** A provider with one key, a ledger with an entry of each of two agencies, and an API. */
export async function setUpOidc(options: Omit<OidcApiOptions, 'issuer'> = {}): Promise<OidcSetting> {
  const key = makeKey('first');
  const [provider, path] = await Promise.all([startOidcProvider(key), startPipeline()]);
  await path.deliver(b(1), b(1, { agency: 'SFD' }));
  const { issuer } = provider;
  const started = await startOidcApi(path, { issuer, ...options });
  return { ...started, path, provider, key, another: (other) => startOidcApi(path, { issuer, ...other }) };
}

/** Reasons of the refusals so far. */
export function reasons({ app }: ApiOfTokens): unknown[] {
  return app.log.filter(({ message }) => message === 'request refused').map(({ facts }) => facts.reason);
}
