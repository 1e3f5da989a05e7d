import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { MAIN } from './build';
import { onCleanup } from './cleanup';
import { forgetProcess, watchProcess } from './reaper';
import { until } from './wait';

export interface Exit {
  /** null where a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface SpawnOptions {
  /** The child gets these and the variables of the shell, but none of the product's own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Given to the child and closed; default nothing. */
  readonly input?: string;
}

/** A child process under test. */
export interface TestProcess {
  readonly pid: number;
  /** All it has written so far. */
  readonly stdout: string;
  readonly stderr: string;
  readonly running: boolean;
  /** Resolves at its end, with everything it wrote collected; never rejects. */
  readonly exit: Promise<Exit>;
  /**
   * The first line of stdout or stderr that fits, also one that came before the call.
   * @throws with all its output, if the child ends first or after `timeoutMs` (default 30 000).
   */
  waitForLine(pattern: RegExp, timeoutMs?: number): Promise<RegExpMatchArray>;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, and waits. */
  stop(): Promise<Exit>;
  kill9(): Promise<Exit>;
}

const REPOSITORY = resolve(__dirname, '../..');

/** What a child needs of the environment to run at all: a product variable of the developer's shell must not leak in. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'NODE_V8_COVERAGE'];

/** Runs the built product: `startProduct(['serve'], { env })`. It is killed at the end of the test file. */
export function startProduct(args: readonly string[], options: SpawnOptions = {}): TestProcess {
  return startProcess(process.execPath, ['--enable-source-maps', MAIN, ...args], options);
}

const HOOK = join(__dirname, 'typescript-hook.js');

/**
 * Runs CommonJS JavaScript that can `require` TypeScript, in a process of its own and without a build. Paths in it are
 * relative to the repository: `require('./src/…')`. Packages that are ESM only can be imported dynamically.
 */
export function startScript(source: string, options: SpawnOptions = {}): TestProcess {
  const args = ['--enable-source-maps', '--require', HOOK, '--eval', source];
  return startProcess(process.execPath, args, { cwd: REPOSITORY, ...options });
}

/** Any program, with the same care. */
export function startProcess(command: string, args: readonly string[], options: SpawnOptions = {}): TestProcess {
  return new RealProcess(command, args, options);
}

class RealProcess implements TestProcess {
  stdout = '';
  stderr = '';
  running = true;
  readonly pid: number;
  readonly exit: Promise<Exit>;
  private readonly child: ChildProcess;

  constructor(
    private readonly command: string,
    private readonly args: readonly string[],
    options: SpawnOptions,
  ) {
    const inherited = INHERITED.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...Object.fromEntries(inherited), ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    if (child.pid === undefined) {
      child.once('error', () => undefined);
      throw new Error(`cannot start ${command}`);
    }
    this.child = child;
    this.pid = child.pid;
    watchProcess(this.pid, 'KILL');
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    child.stdin.on('error', () => undefined); // it ended without reading
    child.stdin.end(options.input ?? '');
    child.once('exit', () => forgetProcess(this.pid));
    this.exit = once(child, 'close').then(([code, signal]: unknown[]) => {
      this.running = false;
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
    onCleanup(async () => void (await this.kill9()));
  }

  async waitForLine(pattern: RegExp, timeoutMs = 30_000): Promise<RegExpMatchArray> {
    const what = `${pattern} from ${this.command} ${this.args.join(' ')}`;
    try {
      const found = await until(() => this.find(pattern) ?? (this.running ? null : 'ended'), {
        what,
        timeoutMs,
        everyMs: 10,
      });
      const match = found === 'ended' ? this.find(pattern) : found;
      if (match === null) throw new Error(`it ended without ${pattern}`);
      return match;
    } catch (error) {
      throw new Error(`no line ${what}\nstdout:\n${this.stdout}\nstderr:\n${this.stderr}`, { cause: error });
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  stop(): Promise<Exit> {
    this.child.kill('SIGTERM');
    return this.exit;
  }

  kill9(): Promise<Exit> {
    this.child.kill('SIGKILL');
    return this.exit;
  }

  private find(pattern: RegExp): RegExpMatchArray | null {
    for (const text of [this.stdout, this.stderr]) {
      for (const line of text.split('\n')) {
        const match = line.match(pattern);
        if (match !== null) return match;
      }
    }
    return null;
  }
}
