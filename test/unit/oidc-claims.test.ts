import fc from 'fast-check';
import { readRights } from '../../src/ops/oidc-claims';
import type { OidcSettings } from '../../src/ops/oidc-settings';
import { AGENCY_ROLES, ROLES } from '../../src/ops/roles';

const RULES: OidcSettings = {
  issuer: 'https://id.example',
  audience: 'ledger',
  tokenType: 'at+jwt',
  roles: ['roles'],
  rolePrefix: '',
  agencies: null,
  name: ['sub'],
};
const LIMITED: OidcSettings = { ...RULES, agencies: ['agencies'] };

const read = (claims: object, rules: Partial<OidcSettings> = {}) =>
  readRights({ sub: 'alice', ...claims }, { ...RULES, ...rules });

describe('roles of a token', () => {
  const rolesOf = (claims: object, rules?: Partial<OidcSettings>) => {
    const rights = read(claims, rules);
    return typeof rights === 'string' ? rights : rights.roles;
  };

  it('are those that are ours, each once', () => {
    expect(rolesOf({ roles: ['reviewer', 'offline_access', 'viewer', 'reviewer', 7, null] })).toEqual([
      'viewer',
      'reviewer',
    ]);
    expect(rolesOf({ roles: 'admin' })).toEqual(['admin']);
    expect(rolesOf({ roles: 'openid policy-admin viewer' })).toEqual(['viewer', 'policy-admin']);
  });

  it.each([[undefined], [null], [[]], [['root']], ['Admin'], ['xadmin'], [7], [true], [{ 0: 'admin' }], [[['admin']]]])(
    'are none: %j',
    (roles) => {
      expect(rolesOf({ roles })).toBe('no role');
    },
  );

  it('count only with the prefix, where there is one', () => {
    const rules = { rolePrefix: 'replay-ledger:' };
    expect(rolesOf({ roles: ['replay-ledger:reviewer', 'admin', 'other:admin'] }, rules)).toEqual(['reviewer']);
    expect(rolesOf({ roles: ['admin', 'replay-ledger:', 'replay-ledger:replay-ledger:admin'] }, rules)).toBe('no role');
  });

  it('are found by pointer and by name, and never in what an object inherits', () => {
    const nested = { realm_access: { roles: ['viewer'] }, 'https://x.example/roles': ['reviewer'], list: [['admin']] };
    expect(rolesOf(nested, { roles: ['realm_access', 'roles'] })).toEqual(['viewer']);
    expect(rolesOf(nested, { roles: ['https://x.example/roles'] })).toEqual(['reviewer']);
    expect(rolesOf(nested, { roles: ['list', '0'] })).toEqual(['admin']);
    for (const roles of [
      ['realm_access'],
      ['list', 'length'],
      ['list', '00'],
      ['sub', '0'],
      ['__proto__'],
      ['toString'],
    ]) {
      expect([roles, rolesOf(nested, { roles })]).toEqual([roles, 'no role']);
    }
  });
});

describe('agencies of a token', () => {
  const agenciesOf = (agencies: unknown, roles: unknown = ['viewer']) => {
    const rights = read({ agencies, roles }, LIMITED);
    return typeof rights === 'string' ? rights : rights.agencies;
  };

  it('are all without the setting, whatever the token says', () => {
    expect(read({ agencies: ['NFD'], roles: ['admin'] })).toEqual({
      name: 'oidc:alice',
      roles: ['admin'],
      agencies: null,
    });
  });

  it('limit it to them', () => {
    expect(agenciesOf(['NFD', 'SFD', 'NFD'])).toEqual(['NFD', 'SFD']);
    expect(agenciesOf('North Fire')).toEqual(['North Fire']);
    expect(agenciesOf(['NFD', '*'])).toBeNull();
    expect(agenciesOf('*')).toBeNull();
  });

  it.each([
    [undefined],
    [null],
    [[]],
    [''],
    [['']],
    [['NFD', 7]],
    [{ 0: 'NFD' }],
    [true],
    ['x'.repeat(513)],
    ['a\0'],
    ['\ud800'],
  ])('are refused rather than guessed: %j', (agencies) => {
    expect(agenciesOf(agencies)).toBe('no agencies');
  });

  it('take the roles away that cannot be limited', () => {
    expect(read({ agencies: ['NFD'], roles: ['admin', 'reviewer'] }, LIMITED)).toMatchObject({ roles: ['reviewer'] });
    expect(agenciesOf(['NFD'], ['admin', 'policy-admin'])).toBe('no role');
    expect(read({ agencies: ['*'], roles: ['admin'] }, LIMITED)).toMatchObject({ roles: ['admin'], agencies: null });
  });
});

describe('the name of a bearer', () => {
  it('cannot be one of the token file', () => {
    expect(read({ roles: ['viewer'] })).toMatchObject({ name: 'oidc:alice' });
    expect(read({ roles: ['viewer'], email: 'a@b.example' }, { name: ['email'] })).toMatchObject({
      name: 'oidc:a@b.example',
    });
    expect(read({ roles: ['viewer'], sub: 'Ann-Marie O’Neill 👩' })).toMatchObject({
      name: 'oidc:Ann-Marie O’Neill 👩',
    });
    expect(read({ roles: ['viewer'], sub: 'ж'.repeat(255) })).toMatchObject({ name: `oidc:${'ж'.repeat(255)}` });
  });

  it.each([
    [undefined],
    [null],
    [''],
    [7],
    [['a']],
    ['x'.repeat(256)],
    ['a\nb'],
    ['a\0'],
    ['\u0085'],
    ['\u2028'],
    ['\udc00'],
    // What turns the text beside it round, and what is not seen.
    ['boss\u202egro'],
    ['al\u200bice'],
    ['alice\ufeff'],
    ['alice\u3164'],
    [' '],
    ['\u00a0'],
    [' alice'],
    ['alice '],
  ])('is refused: %j', (sub) => {
    expect(read({ roles: ['viewer'], sub })).toBe('no name');
  });
});

it('never gives a right that the claims do not name, whatever they are', () => {
  const word = fc.oneof(fc.constantFrom(...ROLES, ...ROLES.map((role) => `p:${role}`), '*', 'NFD', ''), fc.string());
  const claim = fc.oneof(word, fc.array(word), fc.array(fc.oneof(word, fc.jsonValue())), fc.jsonValue());
  let admitted = 0;
  fc.assert(
    fc.property(
      claim,
      claim,
      fc.oneof(word, fc.jsonValue()),
      fc.constantFrom('', 'p:'),
      (roles, agencies, sub, prefix) => {
        const rights = readRights({ roles, agencies, sub }, { ...LIMITED, rolePrefix: prefix });
        if (typeof rights === 'string') return;
        admitted += 1;
        const said: unknown[] = typeof roles === 'string' ? roles.split(' ') : (roles as unknown[]);
        expect(rights.roles.length).toBeGreaterThan(0);
        for (const role of rights.roles) expect(said).toContain(prefix + role);
        const places: unknown[] = typeof agencies === 'string' ? [agencies] : (agencies as unknown[]);
        if (rights.agencies === null) {
          expect(places).toContain('*');
        } else {
          expect(new Set(rights.agencies)).toEqual(new Set(places));
          expect(AGENCY_ROLES).toEqual(expect.arrayContaining([...rights.roles]));
        }
        expect(rights.name).toBe(`oidc:${String(sub)}`);
      },
    ),
    { numRuns: 1_000 },
  );
  // Or it would hold for whoever lets nobody in.
  expect(admitted).toBeGreaterThan(0);
});
