/**
 * What a socket may see. Its token is checked when it comes, at `connection_init`, and stays under watch: a socket lives
 * for days, and must not outlive the right to read.
 *
 * States: open (no token yet; graphql-transport-ws allows nothing then) → admitted → over, when the token expires, is
 * revoked, or has other rights. Over is for good: a client that may still read connects again, and resumes by `after`.
 */
import { sameRights } from './access';
import type { Access, Grant } from './access';
import type { Viewer } from './viewer';

/** Of graphql-transport-ws (Forbidden): coming back with the same token is of no use. */
export const CLOSE_FORBIDDEN = 4403;
/** Ours: the token is valid, and means something else than before. */
export const CLOSE_RIGHTS_CHANGED = 4491;

/** Node fires a timer at once that is set further ahead. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Session {
  private authorization: string | undefined;
  private grant: Grant | null = null;
  private timer: NodeJS.Timeout | null = null;

  /** @param close ends the socket; called when the session is over, perhaps more than once */
  constructor(
    private readonly access: Access,
    private readonly close: (code: number, reason: string) => void,
  ) {}

  /** @param params of `connection_init`. @returns whether it may go on */
  admit(params: Readonly<Record<string, unknown>> | undefined): boolean {
    this.authorization = authorizationOf(params ?? {});
    this.grant = this.access.grant(this.authorization);
    this.watch();
    return this.grant !== null;
  }

  /** Of an admitted session. */
  get viewer(): Viewer {
    if (this.grant === null) throw new Error('an operation came before the token');
    return this.grant.viewer;
  }

  /**
   * Whether it goes on at this very moment. Asked before everything that comes in or goes out: a timer is late when the
   * process is busy, and knows nothing of a clock that was set.
   */
  check(): boolean {
    const expiresAtMs = this.grant?.expiresAtMs ?? null;
    if (expiresAtMs === null || Date.now() < expiresAtMs) return true;
    this.close(CLOSE_FORBIDDEN, 'the token has expired');
    return false;
  }

  /** After a change of the tokens. */
  recheck(): void {
    const { grant } = this;
    if (grant === null) return;
    const now = this.access.grant(this.authorization);
    if (now === null) {
      if (this.check()) this.close(CLOSE_FORBIDDEN, 'the token was revoked');
    } else if (sameRights(grant.viewer, now.viewer)) {
      this.grant = now;
      this.watch();
    } else {
      this.close(CLOSE_RIGHTS_CHANGED, 'the rights of the token have changed');
    }
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private watch(): void {
    this.stop();
    const expiresAtMs = this.grant?.expiresAtMs ?? null;
    if (expiresAtMs === null || !this.check()) return;
    this.timer = setTimeout(() => this.watch(), Math.min(expiresAtMs - Date.now(), MAX_TIMER_MS));
  }
}

/** The member `authorization`, in any case, as clients that hand on HTTP headers write it; two of them are none. */
function authorizationOf(params: Readonly<Record<string, unknown>>): string | undefined {
  const found = Object.entries(params).filter(([name]) => name.toLowerCase() === 'authorization');
  const value = found.length === 1 ? found[0]?.[1] : undefined;
  return typeof value === 'string' ? value : undefined;
}
