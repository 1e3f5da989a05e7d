import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockFolder } from '../../src/embedded/folder-lock';
import { onCleanup } from '../support/cleanup';
import { startScript } from '../support/process';
import type { TestProcess } from '../support/process';

let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'lock-'));
  onCleanup(() => rmSync(root, { recursive: true, force: true }));
});

function newFolder(): string {
  return mkdtempSync(join(root, 'folder-'));
}

/** Holds the folder until it is killed, or says why not. */
function startHolder(folder: string): TestProcess {
  return startScript(`
    const { lockFolder } = require('./src/embedded/folder-lock');
    lockFolder(${JSON.stringify(folder)}).then(
      () => { console.log('HOLDS'); setInterval(() => undefined, 1000); },
      (error) => console.log('REFUSED ' + error.code + ' ' + error.message),
    );`);
}

async function isHeld(process: TestProcess): Promise<boolean> {
  const [line] = await process.waitForLine(/^(HOLDS|REFUSED FOLDER_LOCKED .*)$/);
  return line === 'HOLDS';
}

test('held until it is released, and nothing is left behind', async () => {
  const folder = newFolder();
  const lock = await lockFolder(folder);
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'FOLDER_LOCKED' });
  await lock.release();
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
  await (await lockFolder(folder)).release();
});

test('the folder is made, and other ways to it are the same folder', async () => {
  const folder = join(newFolder(), 'a', 'b');
  const lock = await lockFolder(folder);
  await expect(lockFolder(join(folder, '..', 'b'))).rejects.toMatchObject({ code: 'FOLDER_LOCKED' });
  await lock.release();
});

test('a live process holds, also when it is stopped; the refusal names folder and process', async () => {
  const folder = newFolder();
  const holder = startHolder(folder);
  await holder.waitForLine(/^HOLDS$/);
  const message = `the data folder ${folder} is in use by another process (pid ${holder.pid})`;
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'FOLDER_LOCKED', message });
  holder.signal('SIGSTOP');
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'FOLDER_LOCKED', message });
  holder.signal('SIGCONT');
  await holder.kill9();
});

test('kill -9: the next one takes it, and clears up', async () => {
  const folder = newFolder();
  for (let round = 0; round < 3; round += 1) {
    const holder = startHolder(folder);
    expect(await isHeld(holder)).toBe(true);
    await holder.kill9();
  }
  expect(readdirSync(folder)).toHaveLength(1);
  const lock = await lockFolder(folder);
  expect(readdirSync(folder)).toHaveLength(1);
  await lock.release();
});

test('an orderly exit without release: the same', async () => {
  const folder = newFolder();
  const process = startScript(`require('./src/embedded/folder-lock').lockFolder(${JSON.stringify(folder)})`);
  expect((await process.exit).code).toBe(0);
  await (await lockFolder(folder)).release();
});

test('many at once in one process, over a stale lock: exactly one holds', async () => {
  const folder = newFolder();
  const dead = startHolder(folder);
  await dead.waitForLine(/^HOLDS$/);
  await dead.kill9();
  for (let round = 0; round < 20; round += 1) {
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => lockFolder(folder)));
    const held = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(held).toHaveLength(1);
    await held[0]?.release();
  }
});

test('many processes at once, over a stale lock: exactly one holds', async () => {
  const folder = newFolder();
  const dead = startHolder(folder);
  await dead.waitForLine(/^HOLDS$/);
  await dead.kill9();
  const processes = Array.from({ length: 6 }, () => startHolder(folder));
  const held = await Promise.all(processes.map(isHeld));
  expect(held.filter(Boolean)).toHaveLength(1);
  await Promise.all(processes.map((process) => process.kill9()));
});

test('a folder whose path is longer than that of a socket may be', async () => {
  const folder = join(newFolder(), 'x'.repeat(100), 'y'.repeat(100));
  mkdirSync(folder, { recursive: true });
  const lock = await lockFolder(folder);
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'FOLDER_LOCKED' });
  await lock.release();
  expect(readdirSync(folder)).toEqual([]);
});
