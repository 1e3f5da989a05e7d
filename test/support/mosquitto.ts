import { copyFileSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from './free-port';
import { serverPrograms } from './packages';
import { ServerProcess } from './server-process';
import { ensureServerFolder, giveToServers } from './server-user';
import { until } from './wait';

export interface MosquittoOptions {
  readonly port?: number;
  /** Persistence folder; default a temporary one. What lies in it (a snapshot) is loaded. */
  readonly dir?: string;
  /** Sessions and queues survive a restart; default true. */
  readonly persistence?: boolean;
  /** Unacknowledged messages per client; 0 is no limit. mosquitto's own default is 20. */
  readonly maxInflightMessages?: number;
  /** More lines of mosquitto.conf. */
  readonly extraConfig?: string;
}

export interface MosquittoServer {
  /** `mqtt://127.0.0.1:<port>`, anonymous. */
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  readonly options: MosquittoOptions;
  readonly pid: number;
  readonly running: boolean;
  /**
   * Copies the broker's state of this moment (sessions, queued and unacknowledged messages) to `<dir>/mosquitto.db`.
   * What a standby that starts on it does not know of later acknowledgements, it delivers again.
   */
  snapshotTo(dir: string): Promise<void>;
  /** On the same port and folder: sessions as of the last save. */
  start(): Promise<void>;
  /** Saves its state first. */
  stop(): Promise<void>;
  /** Nothing is saved. */
  kill9(): Promise<void>;
  logTail(lines?: number): string;
}

const DATABASE = 'mosquitto.db';

/** A broker whose failover is deterministic: it saves its state when told to, and never by itself. */
export async function startMosquitto(options: MosquittoOptions = {}): Promise<MosquittoServer> {
  const server = new RealMosquitto((await serverPrograms()).mosquitto, options.port ?? (await freePort()), options);
  await server.start();
  return server;
}

/**
 * A standby of a broker that is down, on the same port and with the same options, whose state is the snapshot. The
 * snapshot is copied first, so that several standbys may start from one.
 */
export async function startStandby(primary: MosquittoServer, snapshotDir: string): Promise<MosquittoServer> {
  if (primary.running) throw new Error('the primary still holds the port: kill it first');
  const { mosquitto } = await serverPrograms();
  const standby = new RealMosquitto(mosquitto, primary.port, { ...primary.options, dir: undefined });
  ensureServerFolder(standby.dir);
  copyFileSync(join(snapshotDir, DATABASE), join(standby.dir, DATABASE));
  giveToServers(join(standby.dir, DATABASE));
  await standby.start();
  return standby;
}

class RealMosquitto implements MosquittoServer {
  readonly dir: string;
  private readonly server: ServerProcess;

  constructor(
    program: { readonly path: string; readonly env: Readonly<Record<string, string>> },
    readonly port: number,
    readonly options: MosquittoOptions,
  ) {
    this.server = new ServerProcess({
      name: 'mosquitto',
      command: program.path,
      args: (folder) => ['-c', join(folder, 'mosquitto.conf')],
      env: program.env,
      probe: () => accepts(port),
      endSignal: 'KILL',
    });
    this.dir = options.dir ?? join(this.server.folder, 'data');
    ensureServerFolder(this.dir);
    const config = join(this.server.folder, 'mosquitto.conf');
    writeFileSync(config, this.config());
    giveToServers(config);
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.server.pid;
  }

  get running(): boolean {
    return this.server.running;
  }

  async snapshotTo(dir: string): Promise<void> {
    const file = join(this.dir, DATABASE);
    const before = version(file);
    this.server.signal('SIGUSR1');
    // It writes a new file and renames it, so a new version is a complete one.
    await until(() => version(file) !== before, { what: 'mosquitto to save its state', timeoutMs: 10_000, everyMs: 5 });
    ensureServerFolder(dir);
    copyFileSync(file, join(dir, DATABASE));
    giveToServers(join(dir, DATABASE));
  }

  start(): Promise<void> {
    return this.server.start();
  }

  stop(): Promise<void> {
    return this.server.stop('SIGTERM');
  }

  kill9(): Promise<void> {
    return this.server.kill9();
  }

  logTail(lines?: number): string {
    return this.server.logTail(lines);
  }

  private config(): string {
    const { persistence = true, maxInflightMessages, extraConfig = '' } = this.options;
    const lines = [
      `listener ${this.port} 127.0.0.1`,
      'allow_anonymous true',
      `persistence ${persistence}`,
      `persistence_location ${this.dir}/`,
      `persistence_file ${DATABASE}`,
      'autosave_interval 0',
      'max_queued_messages 0', // no limit: a drain of any size
      ...(maxInflightMessages === undefined ? [] : [`max_inflight_messages ${maxInflightMessages}`]),
      'log_dest stderr',
      'log_type error',
      'log_type warning',
      'log_type notice',
      'log_type information',
      extraConfig,
    ];
    return `${lines.join('\n')}\n`; // no `user` line: it serves only a start as root, and we drop root before
  }
}

function version(file: string): string {
  if (!existsSync(file)) return 'none';
  const status = statSync(file, { bigint: true });
  return `${status.ino}/${status.mtimeNs}`;
}

function accepts(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}
