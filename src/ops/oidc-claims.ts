/**
 * What an access token allows, as its claims say it. Pure. Everything fails closed: a claim that is missing or of another
 * shape than asked for gives no right.
 */
import { OIDC_PREFIX, isPlainName } from './names';
import type { ClaimPath, OidcSettings } from './oidc-settings';
import { AGENCY_ROLES, ROLES, isAgency } from './roles';
import type { Role } from './roles';

export interface Rights {
  /** `oidc:` and the claim, so that nobody is mistaken for a name of the token file, which holds no colon. */
  readonly name: string;
  /** At least one. */
  readonly roles: readonly Role[];
  /** null: all. */
  readonly agencies: readonly string[] | null;
}

export type Claims = Readonly<Record<string, unknown>>;

const ALL_AGENCIES = '*';
const NAME_MAX_LENGTH = 255;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The rights, or which of them is missing. */
export function readRights(claims: Claims, rules: OidcSettings): Rights | 'no name' | 'no role' | 'no agencies' {
  const name = at(claims, rules.name);
  if (typeof name !== 'string' || name.length > NAME_MAX_LENGTH || !isPlainName(name)) return 'no name';
  const agencies = rules.agencies === null ? null : agenciesOf(at(claims, rules.agencies));
  if (agencies === undefined) return 'no agencies';
  const given = rolesOf(at(claims, rules.roles), rules.rolePrefix);
  const roles = agencies === null ? given : given.filter((role) => AGENCY_ROLES.includes(role));
  if (roles.length === 0) return 'no role';
  return { name: `${OIDC_PREFIX}${name}`, roles, agencies };
}

/** Members that an object itself has, and indices; undefined where the way ends sooner. */
function at(claims: Claims, path: ClaimPath): unknown {
  let value: unknown = claims;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    if (Array.isArray(value) && !ARRAY_INDEX.test(step)) return undefined;
    value = (value as Claims)[step];
  }
  return value;
}

/** One text may list several, separated by spaces, as `scope` does. What is no role of ours says nothing. */
function rolesOf(value: unknown, prefix: string): readonly Role[] {
  const given: readonly unknown[] = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  return ROLES.filter((role) => given.includes(prefix + role));
}

/** null: all of them; undefined: the claim does not say which, and to guess could show too much. */
function agenciesOf(value: unknown): readonly string[] | null | undefined {
  const given: readonly unknown[] = typeof value === 'string' ? [value] : Array.isArray(value) ? value : [];
  if (given.length === 0 || !given.every(isAgency)) return undefined;
  return given.includes(ALL_AGENCIES) ? null : [...new Set(given)];
}
