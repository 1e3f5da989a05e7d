/** Access tokens of a real OpenID provider over HTTP: who is let in, who is not, and what they see. */
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { ROLES } from '../../src/ops/roles';
import {
  AUDIENCE,
  macToken,
  makeKey,
  partsOf,
  signToken,
  startOidcProvider,
  unsignedToken,
} from '../support/oidc-provider';
import type { TokenWishes } from '../support/oidc-provider';
import { b } from '../support/pipeline';
import { until } from '../support/wait';
import { lateRequest, makeTokens } from './access-fixture';
import { UUID } from './api-fixture';
import { AGENCIES, reasons, setUpOidc, startOidcApi } from './oidc-fixture';
import type { OidcSetting } from './oidc-fixture';
import { TokenFile } from '../../src/ops/token-file';
import { onCleanup } from '../support/cleanup';

const VIEWER: TokenWishes = { claims: { roles: ['viewer'] } };
const seconds = () => Math.floor(Date.now() / 1000);

let setting: OidcSetting;
beforeAll(async () => {
  setting = await setUpOidc();
});

describe('a token of the provider', () => {
  it('reads, and its own issuer, audience, subject and type are what counts', async () => {
    const { ask, provider } = setting;
    const token = await provider.token(VIEWER);
    expect(partsOf(token).header).toMatchObject({ typ: 'at+jwt' });
    expect(await ask(token)).toEqual({
      status: 200,
      data: { decisions: { nodes: [{ agency: 'NFD' }, { agency: 'SFD' }] } },
    });
    const { header, claims } = partsOf(token);
    const same = { ...header, typ: 'application/at+JWT' };
    expect((await ask(signToken(same, { ...claims, aud: ['other', AUDIENCE] }, setting.key))).status).toBe(200);
    expect((await ask(await provider.token({ ...VIEWER, audience: 'https://other.example' }))).status).toBe(401);
  });

  it('is refused for each thing that is wrong with it, in the same words', async () => {
    const { app, ask, provider, key, said } = setting;
    const before = reasons(setting).length;
    const { header, claims } = partsOf(await provider.token(VIEWER));
    const without = (name: string) => Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name));
    const signed = (changes: object, head: object = {}) =>
      signToken({ ...header, ...head }, { ...claims, ...changes }, key);
    const good = signed({});
    const [head = '', body = '', signature = ''] = good.split('.');
    const foreign = makeKey(key.kid);
    const pem = key.publicKey.export({ type: 'spki', format: 'pem' });
    const attempts: [reason: string, token: string][] = [
      ['wrong audience', signed({ aud: 'replay' })],
      ['wrong audience', signed({ aud: [] })],
      ['wrong audience', signToken(header, without('aud'), key)],
      ['wrong issuer', signed({ iss: `${provider.issuer}/` })],
      ['wrong issuer', signToken(header, without('iss'), key)],
      ['wrong type', signed({}, { typ: 'JWT' })],
      ['wrong type', signed({}, { typ: undefined })],
      ['wrong type', signed({ at_hash: 'x', nonce: 'y' }, { typ: 'JWT' })],
      ['expired', signed({ exp: seconds() })],
      ['expired', signed({ exp: seconds() - 60 })],
      ['bad claim', signToken(header, without('exp'), key)],
      ['bad claim', signed({ exp: '9999999999' })],
      ['bad claim', signToken(header, without('sub'), key)],
      ['not yet valid', signed({ nbf: seconds() + 10 })],
      ['not yet valid', signed({ iat: seconds() + 10 })],
      ['bad claim', signed({ nbf: 'now' })],
      ['bad claim', signed({ iat: 'now' })],
      ['wrong algorithm', unsignedToken({ ...header, alg: 'none' }, claims)],
      ['wrong algorithm', macToken({ ...header, alg: 'HS256' }, claims, pem)],
      [
        'wrong algorithm',
        macToken({ ...header, alg: 'HS256' }, claims, JSON.stringify(key.publicKey.export({ format: 'jwk' }))),
      ],
      ['wrong signature', signToken(header, claims, foreign)],
      [
        'wrong signature',
        `${head}.${Buffer.from(JSON.stringify({ ...claims, roles: ['admin'] })).toString('base64url')}.${signature}`,
      ],
      ['wrong signature', `${head}.${body}.${signature.slice(2)}`],
      ['unknown key', signToken({ ...header, kid: 'other' }, claims, makeKey('other'))],
      // A key that the token brings along is nobody's.
      ['wrong signature', signToken({ ...header, jwk: foreign.publicKey.export({ format: 'jwk' }) }, claims, foreign)],
      ['not supported', signed({}, { crit: ['x'], x: 1 })],
      ['wrong signature', `${head}..${signature}`],
      ['malformed', '..'],
      ['bound to a key of its bearer', signed({ cnf: { jkt: 'x' } })],
      ['no role', signed({ roles: ['root'] })],
      ['no name', signed({ sub: 'a\nb' })],
      // Not looked at: no JWS, or over 8 KiB.
      ['unknown token, no JWT', head],
      ['unknown token, no JWT', `${good}.x`],
      ['too long', signed({ filler: 'x'.repeat(6_200) })],
    ];
    for (const [reason, token] of attempts) {
      const response = await fetch(app.api.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ query: AGENCIES }),
      });
      expect([reason, response.status]).toEqual([reason, 401]);
      expect(response.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
      expect(await response.json()).toEqual({
        errors: [
          {
            message: 'a valid token is needed',
            extensions: { code: 'UNAUTHENTICATED', correlationId: expect.stringMatching(UUID) as string },
          },
        ],
      });
    }
    expect(reasons(setting).slice(before)).toEqual(attempts.map(([reason]) => reason));
    // One line each, which the answer leads to.
    const [line] = app.log.filter(({ message }) => message === 'request refused').slice(-1);
    expect(line?.facts).toMatchObject({
      code: 'UNAUTHENTICATED',
      correlationId: expect.stringMatching(UUID) as string,
    });
    expect(said.filter(({ level }) => level !== 'info')).toEqual([]);
    // The log says why, and nothing of the token or its claims.
    const logged = JSON.stringify([said, app.log]);
    for (const secret of [signature, body, String(claims.client_id), String(claims.jti)]) {
      expect(logged).not.toContain(secret);
    }
    for (const token of [good, signed({ nbf: seconds() + 3 }), signed({ iat: seconds() + 3 })]) {
      expect((await ask(token)).status).toBe(200);
    }
  });

  it('is taken in any asymmetric algorithm that the provider has a key for', async () => {
    const algorithms = ['RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
    const keys = ['RS256', ...algorithms].map((algorithm) => makeKey(`key-${algorithm}`, algorithm));
    const provider = await startOidcProvider(...keys);
    const { ask } = await startOidcApi(setting.path, { issuer: provider.issuer });
    const { claims } = partsOf(await provider.token(VIEWER));
    for (const key of keys) {
      const token = signToken({ alg: key.algorithm, typ: 'at+jwt', kid: key.kid }, claims, key);
      expect([key.algorithm, (await ask(token)).status]).toEqual([key.algorithm, 200]);
    }
    expect((await ask(await provider.token({ ...VIEWER, algorithm: 'ES256' }))).status).toBe(200);
  });

  it('that names no key is tried with each that fits', async () => {
    const [one, two, other] = [makeKey('one'), makeKey('two'), makeKey('other')];
    const provider = await startOidcProvider(one, two);
    const api = await startOidcApi(setting.path, { issuer: provider.issuer });
    const { ask } = api;
    const { claims } = partsOf(await provider.token(VIEWER));
    const unnamed = { alg: 'RS256', typ: 'at+jwt' };
    for (const key of [one, two]) expect((await ask(signToken(unnamed, claims, key))).status).toBe(200);
    expect((await ask(signToken(unnamed, claims, other))).status).toBe(401);
    expect((await ask(signToken(unnamed, { ...claims, exp: 1 }, two))).status).toBe(401);
    expect(reasons(api)).toEqual(['wrong signature', 'expired']);
  });

  it('of a provider that does not follow RFC 9068 is taken where that is configured, but for ID tokens', async () => {
    const api = await setting.another({ settings: { tokenType: 'JWT' } });
    const { ask } = api;
    const { header, claims } = partsOf(await setting.provider.token({ ...VIEWER, type: 'JWT' }));
    const signed = (typ: string | undefined, changes = {}) =>
      signToken({ ...header, typ }, { ...claims, ...changes }, setting.key);
    for (const typ of ['JWT', 'jwt', undefined]) expect([typ, (await ask(signed(typ))).status]).toEqual([typ, 200]);
    for (const typ of ['at+jwt', 'logout+jwt']) expect([typ, (await ask(signed(typ))).status]).toEqual([typ, 401]);
    for (const hash of ['at_hash', 'c_hash']) expect((await ask(signed('JWT', { [hash]: 'x' }))).status).toBe(401);
    expect(reasons(api)).toEqual(Array(4).fill('wrong type'));
  });
});

describe('what a token may', () => {
  const PAYLOAD = '{ decision(feed: "cad-north", position: 0) { payloadText } }';
  const UPDATE = `mutation ($version: Int!) { updateDedupPolicy(input: { feed: "cad-north", expectedVersion: $version,
    reason: "drill", policy: { maxEntries: 99 } }) { policy { version } } }`;
  const UPDATE_FIRST = UPDATE.replace('($version: Int!)', '').replace('$version', '1');
  const textOf = async (roles: readonly string[]) => {
    const { data } = await setting.ask(await setting.provider.token({ claims: { roles } }), PAYLOAD);
    return (data?.decision as { payloadText: string | null }).payloadText;
  };

  it('is what one of its roles allows', async () => {
    for (const role of ROLES) {
      expect([role, await textOf([role])]).toEqual([role, ['reviewer', 'admin'].includes(role) ? b(1) : null]);
    }
    expect(await textOf(['policy-admin', 'reviewer'])).toBe(b(1));
    const both = await setting.provider.token({ claims: { roles: ['viewer', 'reviewer'] } });
    const { errors } = await setting.ask(both, UPDATE, { version: 1 });
    expect(errors).toMatchObject([{ message: 'the roles viewer, reviewer may not do this' }]);
  });

  it('is on record under its name, allowed or not', async () => {
    const { ask, provider } = setting;
    const [clerk, boss] = await Promise.all([
      provider.token({ claims: { roles: ['viewer'] }, subject: 'clerk@ops' }),
      provider.token({ claims: { roles: ['viewer', 'policy-admin'] }, subject: 'boss@ops' }),
    ]);
    expect((await ask(clerk, UPDATE, { version: 1 })).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    expect((await ask(boss, UPDATE, { version: 1 })).errors).toBeUndefined();
    const { data } = await ask(boss, '{ adminLog(last: 2) { nodes { kind actor } } }');
    expect(data?.adminLog.nodes).toEqual([
      { kind: 'POLICY_CHANGE_REFUSED', actor: 'oidc:clerk@ops' },
      { kind: 'POLICY_CHANGED', actor: 'oidc:boss@ops' },
    ]);
  });

  it('ends with it, though the body of the request be late', async () => {
    const { app, ask, provider } = setting;
    const claims = { roles: ['admin'] };
    const [brief, lasting] = await Promise.all([
      provider.token({ claims, seconds: 2, subject: 'brief' }),
      provider.token({ claims }),
    ]);
    const [late, later] = [await lateRequest(app, brief, UPDATE_FIRST), await lateRequest(app, lasting, AGENCIES)];
    await until(async () => (await ask(brief)).status === 401, { what: 'its end' });
    expect([await late.finish(), await later.finish()]).toEqual([401, 200]);
    const { data } = await ask(lasting, '{ adminLog(last: 99) { nodes { actor } } }');
    expect(JSON.stringify(data)).not.toContain('oidc:brief');
  });

  it('ends at its agencies, in the data too', async () => {
    const api = await setting.another({ settings: { agencies: ['agencies'] } });
    const { ask } = api;
    const tokenOf = (claims: object) => setting.provider.token({ claims: { roles: ['reviewer', 'admin'], ...claims } });
    const seen = async (claims: object) => {
      const { status, data } = await ask(await tokenOf(claims));
      return data == null ? status : (data.decisions.nodes as { agency: string }[]).map(({ agency }) => agency);
    };
    expect(await seen({ agencies: ['NFD'] })).toEqual(['NFD']);
    expect(await seen({ agencies: 'SFD' })).toEqual(['SFD']);
    expect(await seen({ agencies: ['*'] })).toEqual(['NFD', 'SFD']);
    const north = await tokenOf({ agencies: ['NFD'] });
    const { data } = await ask(north, '{ decision(feed: "cad-north", position: 1) { payloadText } }');
    expect(data).toEqual({ decision: null });
    // An admin of some agencies there is not: the role that can be limited remains.
    expect((await ask(north, UPDATE, { version: 9 })).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    expect(await seen({})).toBe(401);
    expect(await seen({ agencies: [] })).toBe(401);
    expect(await seen({ agencies: ['NFD'], roles: ['admin'] })).toBe(401);
    expect(reasons(api)).toEqual(['no agencies', 'no agencies', 'no role']);
  });

  it('is read from the claims that were configured', async () => {
    const { ask } = await setting.another({
      settings: {
        roles: ['realm_access', 'roles'],
        rolePrefix: 'replay-ledger:',
        agencies: ['https://ledger.example/agencies'],
        name: ['preferred_username'],
      },
    });
    const claims = {
      realm_access: { roles: ['offline_access', 'replay-ledger:policy-admin'] },
      roles: ['admin'],
      'https://ledger.example/agencies': ['*'],
      preferred_username: 'kim',
    };
    const token = await setting.provider.token({ claims });
    expect((await ask(token, PAYLOAD)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    expect((await ask(token, UPDATE, { version: 77 })).errors?.[0]?.extensions.code).toBe('VERSION_CONFLICT');
    const { data } = await ask(token, '{ adminLog(last: 1) { nodes { actor } } }');
    expect(data?.adminLog.nodes).toEqual([{ actor: 'oidc:kim' }]);
    expect((await ask(await setting.provider.token({ claims: { roles: ['admin'] } }))).status).toBe(401);
  });
});

it('stands beside the token file: each kind is asked of its own', async () => {
  const tokens = makeTokens();
  const filed = tokens.add({ name: 'filed' });
  // Whatever a token of the file looks like.
  const dotted = 'of.another.kind';
  const sha256 = createHash('sha256').update(dotted).digest('hex');
  appendFileSync(tokens.path, `${JSON.stringify({ name: 'dotted', role: 'viewer', sha256 })}\n`);
  const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const file = new TokenFile(tokens.path, quiet);
  onCleanup(() => file.close());
  const both = await setting.another({ file });
  const issued = await setting.provider.token(VIEWER);
  for (const token of [filed, dotted, issued]) expect((await both.ask(token)).status).toBe(200);
  for (const token of [`${filed}x`, `${issued}x`]) expect((await both.ask(token)).status).toBe(401);
  // With the provider alone a token of the file is nobody's, whatever it looks like.
  for (const token of [filed, dotted, `${filed}.${filed}.${filed}`])
    expect((await setting.ask(token)).status).toBe(401);
});
