import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onCleanup } from './cleanup';
import { forgetProcess, watchFolder, watchProcess } from './reaper';
import { giveToServers, makeServerFolder, spawnAsServerUser } from './server-user';
import { sleep } from './wait';

export interface ServerSpec {
  /** For messages: `postgres`, `redis`, `mosquitto`. */
  readonly name: string;
  readonly command: string;
  readonly args: (folder: string) => readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Resolves when the server answers; rejects while it does not. */
  readonly probe: () => Promise<void>;
  readonly startTimeoutMs?: number;
  /** Ends it at once, for the end of the test file or of this process. */
  readonly endSignal: 'KILL' | 'QUIT' | 'TERM';
}

/**
 * A real server that a test may end and start again. States: down → `start` → up → `stop` or `kill9` → down. A server
 * that ends by itself is down as well. Every call is idempotent.
 */
export class ServerProcess {
  private child: ChildProcess | null = null;
  private exited: Promise<unknown> = Promise.resolve();

  /** A temporary folder of the server's own, with its log; removed at the end of the test file. */
  readonly folder: string;

  constructor(private readonly spec: ServerSpec) {
    this.folder = makeServerFolder(spec.name);
    watchFolder(this.folder);
    onCleanup(async () => {
      await this.stop(`SIG${spec.endSignal}`);
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get running(): boolean {
    return this.child !== null;
  }

  /** @throws if the server is down. */
  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error(`${this.spec.name} is not running`);
    return pid;
  }

  get logFile(): string {
    return join(this.folder, 'server.log');
  }

  /** The end of what the server has written. */
  logTail(lines = 30): string {
    try {
      return readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
    } catch {
      return '';
    }
  }

  /** Starts it and waits until it answers. @throws with the end of its log if it ends or does not answer in time. */
  async start(): Promise<void> {
    if (this.child !== null) return;
    this.launch();
    const deadline = Date.now() + (this.spec.startTimeoutMs ?? 30_000);
    for (;;) {
      if (this.child === null) throw new Error(`${this.spec.name} ended while starting:\n${this.logTail()}`);
      try {
        return await this.spec.probe();
      } catch (error) {
        if (Date.now() < deadline) {
          await sleep(20);
          continue;
        }
        await this.kill9();
        throw new Error(`${this.spec.name} does not answer:\n${this.logTail()}`, { cause: error });
      }
    }
  }

  /** Signals the running server. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** Ends it in order, by a signal that the server understands, and waits for its end; kills it after `timeoutMs`. */
  async stop(signal: NodeJS.Signals, timeoutMs = 20_000): Promise<void> {
    if (this.child === null) return;
    this.child.kill(signal);
    const timer = setTimeout(() => this.child?.kill('SIGKILL'), timeoutMs);
    await this.exited;
    clearTimeout(timer);
  }

  /** SIGKILL, and waits for the end. */
  async kill9(): Promise<void> {
    this.child?.kill('SIGKILL');
    await this.exited;
  }

  private launch(): void {
    const { name, command, args, env } = this.spec;
    const log = openSync(this.logFile, 'a');
    giveToServers(this.logFile);
    // Detached: a Ctrl-C at the terminal reaches the tests, and they (or the reaper) end the servers in their order.
    const child = spawn(command, args(this.folder), {
      ...spawnAsServerUser(),
      env: { PATH: process.env.PATH, LC_ALL: 'C', ...env },
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    if (child.pid === undefined) {
      child.once('error', () => undefined);
      throw new Error(`${name}: cannot start ${command}`);
    }
    const pid = child.pid;
    watchProcess(pid, this.spec.endSignal);
    child.unref();
    this.child = child;
    this.exited = once(child, 'exit').then(() => {
      forgetProcess(pid);
      if (this.child === child) this.child = null;
    });
  }
}
