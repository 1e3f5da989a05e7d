/**
 * What a socket may see. Its token is checked when it comes, at `connection_init`, and stays under watch: a socket lives
 * for days, and must not outlive the right to read.
 *
 * States: open (no token yet; graphql-transport-ws allows nothing then) → asking (the token is being checked; nothing is
 * allowed yet) → admitted (and asking again, after a change of the tokens) → over, when the token expires, is revoked, has
 * other rights or cannot be checked any more. Over is for good: a client that may still read connects again, and resumes by
 * `after`. Stopped, when the socket is gone: what is still being asked then has no effect.
 */
import { Refusal } from '../ops/bearer';
import { sameRights } from './access';
import type { Access, Grant } from './access';
import type { Viewer } from './viewer';

/** Of graphql-transport-ws (Forbidden): coming back with the same token is of no use. */
export const CLOSE_FORBIDDEN = 4403;
/** Ours: the token is valid, and means something else than before. */
export const CLOSE_RIGHTS_CHANGED = 4491;
/** Of the registry of RFC 6455 (Try Again Later): clients come back with the same token. */
export const CLOSE_TRY_AGAIN_LATER = 1013;

/** Node fires a timer at once that is set further ahead. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Session {
  private authorization: string | undefined;
  /** When the token came: see Tokens. */
  private cameAtMs = 0;
  private grant: Grant | null = null;
  private timer: NodeJS.Timeout | null = null;
  /** How often the tokens have changed: an answer counts only if they did not while it was made. */
  private changes = 0;
  private rechecking = false;
  private stopped = false;

  /**
   * @param close ends the socket; called when the session is over, perhaps more than once. `cause`: what the tokens say, for
   * the log
   */
  constructor(
    private readonly access: Access,
    private readonly close: (code: number, reason: string, cause?: string) => void,
  ) {}

  /**
   * Called once.
   * @param params of `connection_init`
   * @returns whether it may go on; `over`: the socket is closed already, or being closed
   */
  async admit(params: Readonly<Record<string, unknown>> | undefined): Promise<'admitted' | 'over' | Refusal> {
    this.authorization = authorizationOf(params ?? {});
    this.cameAtMs = performance.now();
    return this.ask((answer) => {
      if (this.stopped) return 'over';
      if (answer instanceof Refusal) {
        if (answer.kind === 'refused') return answer;
        this.close(CLOSE_TRY_AGAIN_LATER, 'tokens cannot be checked at the moment', answer.reason);
        return 'over';
      }
      this.grant = answer;
      this.watch();
      return 'admitted';
    });
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

  /** After a change of the tokens. Where an answer is under way, it is asked for again instead. */
  async recheck(): Promise<void> {
    this.changes += 1;
    const { grant } = this;
    if (grant === null || this.rechecking) return;
    this.rechecking = true;
    await this.ask((answer) => {
      this.rechecking = false;
      if (this.stopped) return;
      if (answer instanceof Refusal) {
        if (answer.kind === 'unavailable') {
          this.close(CLOSE_TRY_AGAIN_LATER, 'the token cannot be checked any more', answer.reason);
        } else if (this.check()) {
          this.close(CLOSE_FORBIDDEN, 'the token was revoked', answer.reason);
        }
      } else if (sameRights(grant.viewer, answer.viewer)) {
        this.grant = answer;
        this.watch();
      } else {
        this.close(CLOSE_RIGHTS_CHANGED, 'the rights of the token have changed');
      }
    });
  }

  stop(): void {
    this.stopped = true;
    this.stopTimer();
  }

  /** @param settle is called in the same turn in which the answer is found to be the newest: none can overtake it. */
  private async ask<T>(settle: (answer: Grant | Refusal) => T): Promise<T> {
    for (;;) {
      const before = this.changes;
      const answer = await this.access.grant(this.authorization, this.cameAtMs);
      if (this.changes === before || this.stopped) return settle(answer);
    }
  }

  private watch(): void {
    this.stopTimer();
    const expiresAtMs = this.grant?.expiresAtMs ?? null;
    if (expiresAtMs === null || !this.check()) return;
    this.timer = setTimeout(() => this.watch(), Math.min(expiresAtMs - Date.now(), MAX_TIMER_MS));
  }

  private stopTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** The member `authorization`, in any case, as clients that hand on HTTP headers write it; two of them are none. */
function authorizationOf(params: Readonly<Record<string, unknown>>): string | undefined {
  const found = Object.entries(params).filter(([name]) => name.toLowerCase() === 'authorization');
  const value = found.length === 1 ? found[0]?.[1] : undefined;
  return typeof value === 'string' ? value : undefined;
}
