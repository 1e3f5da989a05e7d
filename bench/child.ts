/**
 * Every part is measured in a process of its own, so that memory, garbage and optimised code of one are not another's.
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { REPOSITORY } from './product';

/** A part that lost a message would wait for it for ever; the longest one takes a few minutes. */
const PATIENCE_MS = 30 * 60_000;
const TYPESCRIPT_HOOK = join(REPOSITORY, 'test/support/typescript-hook.js');

export interface Measured {
  readonly messages: number;
  /** From the broker's CONNACK to the last message landed. */
  readonly seconds: number;
  readonly peakRssBytes: number;
}

/**
 * Runs `bench/parts/<part>.ts` on a job and resolves with its result.
 * @param nodeArgs flags of Node for the child
 * @throws Error where the child fails; it has written why to standard error
 */
export function runPart<Result>(part: string, job: object, nodeArgs: readonly string[] = []): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = fork(join(__dirname, 'parts', `${part}.ts`), [], {
      cwd: REPOSITORY,
      execArgv: ['--enable-source-maps', '--require', TYPESCRIPT_HOOK, ...nodeArgs],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
    let result: Result | undefined;
    child.on('message', (message) => (result = message as Result));
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      clearTimeout(timer);
      if (code === 0 && result !== undefined) resolve(result);
      else reject(new Error(`the part ${part} failed (${signal ?? `exit code ${code}`})`));
    });
    child.send(job);
  });
}

/** The other end, in the child: takes one job, answers, ends. */
export function serveJob<Job, Result>(work: (job: Job) => Promise<Result>): void {
  process.once('message', (job) => {
    work(job as Job).then(
      (result) => process.send?.(result, () => process.exit(0)),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}

/** Of this process since its start. */
export function peakRssBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}
