/**
 * Watches over what one socket has not taken yet, over its being there at all, and over its right to be.
 *
 * A message is sent only when the one before it, of the same subscription, has left the process. So what lies here for a
 * reader who does not read is one message a subscription; the bound on bytes is against everything else that makes us
 * write, as a flood of pings does.
 */
import type { WebSocket } from 'ws';
import type { Access } from './access';
import type { ApiServices } from './context';
import { Session } from './session';

/** Ours, in the range that RFC 6455 leaves to applications and graphql-transport-ws does not use. */
export const CLOSE_TOO_SLOW = 4490;
const CLOSE_INTERNAL_ERROR = 1011;
/** How long a socket that is being closed may take to say goodbye. */
export const GOODBYE_MS = 1_000;

export class SocketGuard {
  readonly session: Session;
  private readonly keepAlive: NodeJS.Timeout;
  private readonly gone: Promise<void>;
  private goodbye: NodeJS.Timeout | null = null;
  private answered = true;

  constructor(
    private readonly socket: WebSocket,
    private readonly services: ApiServices,
    access: Access,
  ) {
    this.session = new Session(access, (code, reason, cause) => this.cutOff(code, reason, cause));
    this.gone = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('pong', () => (this.answered = true));
    this.keepAlive = setInterval(() => this.ping(), services.limits.keepAliveMs);
  }

  /**
   * Resolves when the message has left the process, or when the socket is gone: a subscription must not run on against a
   * socket that takes nothing, and that it went away is no error of ours.
   */
  send(data: string): Promise<void> {
    const { socket } = this;
    const { maxBufferedBytes, stalledAfterMs } = this.services.limits;
    if (this.session.check() && socket.bufferedAmount > maxBufferedBytes) {
      this.cutOff(CLOSE_TOO_SLOW, 'too much unread');
    }
    if (socket.readyState !== socket.OPEN) return this.gone;
    return new Promise((resolve) => {
      const stalled = setTimeout(() => this.cutOff(CLOSE_TOO_SLOW, 'reading too slowly'), stalledAfterMs);
      socket.send(data, (error) => {
        clearTimeout(stalled);
        resolve(error ? this.gone : undefined);
      });
    });
  }

  /** What comes after the end of the session, or while the socket says goodbye, is not looked at. */
  async take(handle: () => Promise<void>): Promise<void> {
    if (!this.session.check() || this.socket.readyState !== this.socket.OPEN) return;
    try {
      await handle();
    } catch (error) {
      if (this.socket.readyState !== this.socket.OPEN) return;
      this.services.log.error({ err: error }, 'cannot handle a message');
      this.close(CLOSE_INTERNAL_ERROR, 'internal error');
    }
  }

  /** After a change of the tokens. */
  recheck(): void {
    this.session.recheck().catch((error: unknown) => {
      this.services.log.error({ err: error }, 'cannot check a token again');
      this.cutOff(CLOSE_INTERNAL_ERROR, 'internal error');
    });
  }

  /** The reason reaches a reader who comes back soon; then the connection ends, whether it was read or not. */
  close(code?: number, reason?: string): void {
    if (this.goodbye !== null || this.socket.readyState === this.socket.CLOSED) return;
    this.socket.close(code, reason);
    this.goodbye = setTimeout(() => this.socket.terminate(), GOODBYE_MS);
  }

  stop(): void {
    this.session.stop();
    clearInterval(this.keepAlive);
    if (this.goodbye !== null) clearTimeout(this.goodbye);
  }

  private ping(): void {
    if (!this.answered) return this.cutOff(CLOSE_TOO_SLOW, 'no answer to a ping');
    this.answered = false;
    this.socket.ping();
  }

  /** @param cause for the log alone */
  private cutOff(code: number, reason: string, cause?: string): void {
    if (this.goodbye === null) {
      this.services.log.warn({ code, reason, cause, bufferedBytes: this.socket.bufferedAmount }, 'socket cut off');
    }
    this.close(code, reason);
  }
}
