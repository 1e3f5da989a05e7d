/**
 * Who may read: the bearers of tokens, or, without a token file, whoever reaches the loopback address (config.ts keeps the
 * service there).
 */
import { may } from '../ops/roles';
import type { TokenFile } from '../ops/token-file';
import { LOCAL_VIEWER } from './viewer';
import type { Viewer } from './viewer';

export type Tokens = Pick<TokenFile, 'authenticate' | 'onChange'>;

export interface Grant {
  readonly viewer: Viewer;
  /** Milliseconds since 1970 from which it is worth nothing; null: never. */
  readonly expiresAtMs: number | null;
}

const LOCAL_GRANT: Grant = { viewer: LOCAL_VIEWER, expiresAtMs: null };

export class Access {
  constructor(private readonly tokens: Tokens | null) {}

  /** @param authorization as in the HTTP header. @returns null where it bears no token that is valid now */
  grant(authorization: string | undefined): Grant | null {
    if (this.tokens === null) return LOCAL_GRANT;
    const holder = this.tokens.authenticate(authorization);
    if (holder === null) return null;
    const { name, role, agencies, expiresAtMs } = holder;
    return { viewer: { name, role, agencies, mayReadPayloads: may(role, 'readPayloads') }, expiresAtMs };
  }

  /** Called when what `grant` answers may have changed. Answers what ends it. */
  onChange(listener: () => void): () => void {
    return this.tokens === null ? () => undefined : this.tokens.onChange(listener);
  }
}

/** Whether both see and may do the same. */
export function sameRights(one: Viewer, other: Viewer): boolean {
  const agenciesOf = ({ agencies }: Viewer) => (agencies === null ? null : [...new Set(agencies)].sort());
  const rightsOf = (viewer: Viewer) =>
    JSON.stringify([viewer.name, viewer.role, viewer.mayReadPayloads, agenciesOf(viewer)]);
  return rightsOf(one) === rightsOf(other);
}
