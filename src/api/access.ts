/**
 * Who may read: the bearers of tokens, or, in a service without tokens, whoever reaches the loopback address (config.ts
 * keeps the service there).
 */
import { Refusal } from '../ops/bearer';
import type { Tokens } from '../ops/bearer';
import { may } from '../ops/roles';
import { LOCAL_VIEWER } from './viewer';
import type { Viewer } from './viewer';

export interface Grant {
  readonly viewer: Viewer;
  /** Milliseconds since 1970 from which it is worth nothing; null: never. */
  readonly expiresAtMs: number | null;
}

const LOCAL_GRANT: Grant = { viewer: LOCAL_VIEWER, expiresAtMs: null };

export class Access {
  constructor(private readonly tokens: Tokens | null) {}

  /** @param authorization as in the HTTP header. @param cameAtMs see Tokens */
  async grant(authorization: string | undefined, cameAtMs?: number): Promise<Grant | Refusal> {
    if (this.tokens === null) return LOCAL_GRANT;
    const bearer = await this.tokens.authenticate(authorization, cameAtMs);
    if (bearer instanceof Refusal) return bearer;
    const { name, roles, agencies, expiresAtMs } = bearer;
    return { viewer: { name, roles, agencies, mayReadPayloads: may(roles, 'readPayloads') }, expiresAtMs };
  }

  /** Called when what `grant` answers may have changed. Answers what ends it. */
  onChange(listener: () => void): () => void {
    return this.tokens === null ? () => undefined : this.tokens.onChange(listener);
  }
}

/** Whether both see and may do the same. */
export function sameRights(one: Viewer, other: Viewer): boolean {
  const asSet = (values: readonly string[] | null) => (values === null ? null : [...new Set(values)].sort());
  const rightsOf = ({ name, roles, mayReadPayloads, agencies }: Viewer) =>
    JSON.stringify([name, asSet(roles), mayReadPayloads, asSet(agencies)]);
  return rightsOf(one) === rightsOf(other);
}
