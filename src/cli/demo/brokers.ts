/** A primary broker and its standby, on one port: the standby takes over when the primary is gone. */
import { startEmbeddedBroker } from '../../embedded/broker';
import type { EmbeddedBroker } from '../../embedded/broker';
import { holdAcknowledgements, restoreSessions, snapshotSessions } from '../../embedded/sessions';
import type { SessionSnapshot } from '../../embedded/sessions';

const HOST = '127.0.0.1';

export class BrokerPair {
  private constructor(
    private active: EmbeddedBroker,
    private readonly onError: (error: Error) => void,
  ) {}

  /** Starts the primary on a free port. `onError`: a broker broke down unasked. */
  static async start(onError: (error: Error) => void): Promise<BrokerPair> {
    return new BrokerPair(await startEmbeddedBroker({ host: HOST, port: 0, onError }), onError);
  }

  get url(): string {
    return `mqtt://${HOST}:${this.active.port}`;
  }

  sessions(clientIds: readonly string[]): Promise<readonly SessionSnapshot[]> {
    return snapshotSessions(this.active.sessions, clientIds);
  }

  /** Acknowledgements wait until the function that is answered is called. */
  holdAcknowledgements(): () => void {
    return holdAcknowledgements(this.active.sessions);
  }

  /** The primary dies: every connection breaks, and what it alone knew is lost. Then the standby takes its port. */
  async failOver(sessions: readonly SessionSnapshot[]): Promise<void> {
    const { port } = this.active;
    await this.active.close();
    this.active = await startEmbeddedBroker({
      host: HOST,
      port,
      onError: this.onError,
      prepare: (store) => restoreSessions(store, sessions),
    });
  }

  close(): Promise<void> {
    return this.active.close();
  }
}
