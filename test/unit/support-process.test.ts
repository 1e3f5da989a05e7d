import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProcess, startScript } from '../support/process';
import { until } from '../support/wait';

const node = (script: string, options = {}) => startProcess(process.execPath, ['-e', script], options);

/** A process that ended and whose parent has not asked for it yet is gone too. */
function alive(pid: number): boolean {
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim();
  return state !== '' && !state.startsWith('Z');
}

describe('startProcess', () => {
  test('collects both streams, finds lines that came before, and reports the exit code', async () => {
    const child = node('console.log("port 4711"); console.error("warned"); process.exitCode = 3');
    await expect(child.exit).resolves.toEqual({ code: 3, signal: null });
    expect((await child.waitForLine(/port (\d+)/))[1]).toBe('4711');
    expect(child.stderr).toBe('warned\n');
  });

  test('waiting for a line that never comes fails at once with the output when the child ends', async () => {
    const child = node('console.log("something else")');
    await expect(child.waitForLine(/ready/)).rejects.toThrow(/no line \/ready\/[^]*something else/);
  });

  test('kill9 and stop end it; input and only the given variables reach it', async () => {
    const killed = node('console.log("up"); setInterval(() => {}, 1000)');
    await killed.waitForLine(/up/);
    await expect(killed.kill9()).resolves.toEqual({ code: null, signal: 'SIGKILL' });
    expect(killed.running).toBe(false);

    process.env.DATABASE_URL = 'postgresql://leaked';
    const script = 'console.log(process.env.DATABASE_URL, process.env.GIVEN); process.stdin.pipe(process.stdout)';
    const told = node(script, { env: { GIVEN: 'yes' }, input: 'typed' });
    delete process.env.DATABASE_URL;
    await told.exit;
    expect(told.stdout).toBe('undefined yes\ntyped');
  });
});

test('what a process watched does not outlive it, even by kill -9; what it forgot is left alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-reaper test-'));
  const script = `
    const { watchProcess, forgetProcess, watchFolder } = require('./test/support/reaper.ts');
    const { spawn } = require('node:child_process');
    const sleeper = () => spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).pid;
    const watched = [sleeper(), sleeper()]; const forgotten = sleeper();
    watched.forEach((pid) => watchProcess(pid, 'TERM'));
    watchProcess(forgotten, 'TERM'); forgetProcess(forgotten);
    watchFolder(${JSON.stringify(folder)});
    console.log('pids', ...watched, forgotten);
    setInterval(() => {}, 1000);`;
  const parent = startScript(script);
  const line = await parent.waitForLine(/pids (\d+) (\d+) (\d+)/);
  const [first, second, forgotten] = line.slice(1).map(Number) as [number, number, number];
  expect([first, second, forgotten].map(alive)).toEqual([true, true, true]);
  await parent.kill9();
  await until(() => !alive(first) && !alive(second), { what: 'the watched processes to end', timeoutMs: 5_000 });
  await until(() => !existsSync(folder), { what: 'the folder to go', timeoutMs: 10_000 });
  expect(alive(forgotten)).toBe(true);
  process.kill(forgotten, 'SIGKILL');
});
