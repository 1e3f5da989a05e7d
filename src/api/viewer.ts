import { may } from '../ops/roles';
import type { Permission, Role } from '../ops/roles';
import { ApiError } from './errors';

/**
 * Who reads. Every statement on the ledger takes a viewer, so that nothing can be read around it.
 */
export interface Viewer {
  readonly name: string;
  /** At least one; what any of them may is allowed. */
  readonly roles: readonly Role[];
  /** Only entries of these agencies can be seen; null: all, those without an agency too. */
  readonly agencies: readonly string[] | null;
  /** Payloads may hold personal data. */
  readonly mayReadPayloads: boolean;
}

/** Whoever reaches the loopback address of a service without tokens. */
export const LOCAL_VIEWER: Viewer = { name: 'local', roles: ['admin'], agencies: null, mayReadPayloads: true };

export function maySeeAgency(viewer: Viewer, agency: string | null): boolean {
  return viewer.agencies === null || (agency !== null && viewer.agencies.includes(agency));
}

/**
 * By the table of ops/roles.ts.
 * @throws ApiError FORBIDDEN
 */
export function requirePermission(viewer: Viewer, permission: Permission): void {
  const { roles } = viewer;
  if (may(roles, permission)) return;
  const who = roles.length === 1 ? `the role ${roles.join()}` : `the roles ${roles.join(', ')}`;
  throw new ApiError('FORBIDDEN', `${who} may not do this`, { permission });
}
