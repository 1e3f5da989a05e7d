/**
 * Who may do what (the role matrix of docs). Data, so that the documentation and every check read the same table.
 *
 * Roles are not steps of a ladder: whoever sizes windows need not read payloads, which may hold personal data.
 */
import { idFault } from '../contract/identity';

export const ROLES = ['viewer', 'reviewer', 'policy-admin', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export const PERMISSIONS = {
  /** Decisions, incidents, sources, feeds, policies; subscriptions to them. */
  readDecisions: ['viewer', 'reviewer', 'policy-admin', 'admin'],
  /** `/metrics`; only for a token that is limited to no agency, because counts are of whole feeds. */
  readMetrics: ['viewer', 'reviewer', 'policy-admin', 'admin'],
  /** Messages as they came. */
  readPayloads: ['reviewer', 'admin'],
  /** Release and dismiss held messages. */
  resolveHeld: ['reviewer', 'admin'],
  /** Change the dedup policy of a feed, and preview it. */
  changePolicy: ['policy-admin', 'admin'],
  /** Bring another contract into force. */
  applyContract: ['policy-admin', 'admin'],
  /** Open an epoch for a source whose counter was reset. */
  openSourceEpoch: ['admin'],
} as const satisfies Record<string, readonly Role[]>;

export type Permission = keyof typeof PERMISSIONS;

/** Whether any of the roles allows it. */
export function may(roles: readonly Role[], permission: Permission): boolean {
  const allowed: readonly Role[] = PERMISSIONS[permission];
  return roles.some((role) => allowed.includes(role));
}

/** Roles that can be limited to agencies. Policies and contracts are of whole feeds, so who changes them sees them all. */
export const AGENCY_ROLES: readonly Role[] = ['viewer', 'reviewer'];

/** Whether a message can come from it: no other can be what a role is limited to. */
export function isAgency(value: unknown): value is string {
  return typeof value === 'string' && idFault(value) === null;
}
