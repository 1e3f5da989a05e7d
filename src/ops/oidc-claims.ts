/**
 * What an access token allows, as its claims say it. Pure. Everything fails closed: a claim that is missing or of another
 * shape than asked for gives no right.
 */
import { AGENCY_ROLES, ROLES } from './roles';
import type { Role } from './roles';

/** The way to a claim: names of members, or indices, from the outermost. */
export type ClaimPath = readonly string[];

export interface ClaimRules {
  readonly roles: ClaimPath;
  /** Roles count only with this before them. */
  readonly rolePrefix: string;
  /** null: no token is limited to agencies. Else the claim is needed in every token. */
  readonly agencies: ClaimPath | null;
  readonly name: ClaimPath;
}

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
const AGENCY_MAX_BYTES = 512;
const NAME_MAX_LENGTH = 255;
/** Controls, line separators and lone surrogates: not to be stored, or to be taken for something else in a log. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/u;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,8})$/;

/** The rights, or which of them is missing. */
export function readRights(claims: Claims, rules: ClaimRules): Rights | 'no name' | 'no role' | 'no agencies' {
  const name = at(claims, rules.name);
  if (typeof name !== 'string' || name === '' || name.length > NAME_MAX_LENGTH || UNPRINTABLE.test(name)) {
    return 'no name';
  }
  const agencies = rules.agencies === null ? null : agenciesOf(at(claims, rules.agencies));
  if (agencies === undefined) return 'no agencies';
  const given = rolesOf(at(claims, rules.roles), rules.rolePrefix);
  const roles = agencies === null ? given : given.filter((role) => AGENCY_ROLES.includes(role));
  if (roles.length === 0) return 'no role';
  return { name: `oidc:${name}`, roles, agencies };
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

function isAgency(value: unknown): value is string {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > AGENCY_MAX_BYTES) return false;
  return !/[\0\p{Surrogate}]/u.test(value);
}
