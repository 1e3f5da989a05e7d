import { ConfigError, readConfig } from '../../src/config';
import type { Environment } from '../../src/config-reader';

const READ_NOTHING = () => '';
const oidcOf = (env: Environment) => readConfig(env, READ_NOTHING).oidc;

function problems(env: Environment): readonly string[] {
  try {
    readConfig(env, READ_NOTHING);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const BOTH = { OIDC_ISSUER: 'https://id.example/realms/ops', OIDC_AUDIENCE: 'replay-ledger' };

describe('the OpenID provider', () => {
  it('is none without its variables', () => {
    expect(oidcOf({})).toBeNull();
  });

  it('needs issuer and audience, and the rest has defaults', () => {
    expect(oidcOf(BOTH)).toEqual({
      issuer: 'https://id.example/realms/ops',
      audience: 'replay-ledger',
      roles: ['roles'],
      rolePrefix: '',
      agencies: null,
      name: ['sub'],
      tokenType: 'at+jwt',
    });
  });

  it('takes names literally, and what begins with a slash for a pointer', () => {
    expect(
      oidcOf({
        ...BOTH,
        OIDC_ROLES_CLAIM: '/realm_access/a~1b~0c',
        OIDC_AGENCIES_CLAIM: 'https://ledger.example/agencies',
        OIDC_NAME_CLAIM: 'preferred_username',
        OIDC_ROLE_PREFIX: 'replay-ledger:',
        OIDC_TOKEN_TYPE: 'JWT',
      }),
    ).toMatchObject({
      roles: ['realm_access', 'a/b~c'],
      agencies: ['https://ledger.example/agencies'],
      name: ['preferred_username'],
      rolePrefix: 'replay-ledger:',
      tokenType: 'JWT',
    });
  });

  it.each([
    'https://id.example',
    'https://id.example/',
    'http://127.0.0.1:8080/realms/x',
    'http://[::1]:1',
    'http://localhost',
  ])('may be %s', (issuer) => {
    expect(oidcOf({ ...BOTH, OIDC_ISSUER: issuer })?.issuer).toBe(issuer);
  });

  it.each([
    'id.example',
    'http://id.example',
    'http://127.0.0.1.example',
    'ftp://id.example',
    'https://id.example?x=1',
    'https://id.example/?',
    'https://id.example/#x',
    'https://user@id.example',
    'https://u:p@id.example',
    ' https://id.example',
  ])('may not be %s', (issuer) => {
    expect(problems({ ...BOTH, OIDC_ISSUER: issuer })).toEqual([expect.stringMatching(/^OIDC_ISSUER: must be a URL/)]);
  });

  it('says everything that is wrong at once', () => {
    expect(
      problems({
        HOST: '0.0.0.0',
        OIDC_AUDIENCE: 'x',
        OIDC_ROLES_CLAIM: '/a~2',
        OIDC_AGENCIES_CLAIM: 'agencies',
        OIDC_TOKEN_TYPE: 'jwt',
      }),
    ).toEqual([
      'OIDC_AUDIENCE: is set together with OIDC_ISSUER, or neither is',
      expect.stringMatching(/^OIDC_ROLES_CLAIM: is used only together/),
      expect.stringMatching(/^OIDC_AGENCIES_CLAIM: is used only together/),
      expect.stringMatching(/^OIDC_TOKEN_TYPE: is used only together/),
      expect.stringMatching(/^OIDC_ROLES_CLAIM: is no JSON Pointer/),
      expect.stringMatching(/^OIDC_TOKEN_TYPE: must be one of at\+jwt/),
      expect.stringMatching(/^HOST: 0\.0\.0\.0 is no loopback address/),
    ]);
    expect(problems({ OIDC_ISSUER: 'https://id.example' })).toEqual([
      'OIDC_AUDIENCE: is set together with OIDC_ISSUER, or neither is',
    ]);
  });

  it('is enough for an address that is not loopback', () => {
    expect(problems({ HOST: '0.0.0.0' })).toEqual([expect.stringContaining('set API_TOKENS_FILE or OIDC_ISSUER')]);
    expect(problems({ HOST: '0.0.0.0', ...BOTH })).toEqual([]);
  });
});
