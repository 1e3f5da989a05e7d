/**
 * Who reads. Every statement on the ledger takes a viewer, so that nothing can be read around it.
 */
export interface Viewer {
  readonly name: string;
  /** Only entries of these agencies can be seen; null: all, those without an agency too. */
  readonly agencies: readonly string[] | null;
  /** Payloads may hold personal data. */
  readonly mayReadPayloads: boolean;
}

/** Whoever reaches the loopback address of a service without tokens. */
export const LOCAL_VIEWER: Viewer = { name: 'local', agencies: null, mayReadPayloads: true };

export function maySeeAgency(viewer: Viewer, agency: string | null): boolean {
  return viewer.agencies === null || (agency !== null && viewer.agencies.includes(agency));
}
