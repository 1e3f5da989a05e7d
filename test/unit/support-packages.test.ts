import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onCleanup } from '../support/cleanup';
import { serverPrograms } from '../support/packages';
import { startScript } from '../support/process';

const FIND = `require('./test/support/packages.ts').serverPrograms().then(
  (found) => console.log(JSON.stringify(found)),
  (error) => { console.error(String(error)); process.exitCode = 1; },
);`;

/** A folder that stands for PATH, with the few programs that finding needs, and a cache beside it. */
function machine(): { path: string; cache: string } {
  // The account that servers run under has to read what is made here.
  const umask = process.umask(0o022);
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-machine-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  const path = join(folder, 'bin');
  const cache = join(folder, 'cache');
  mkdirSync(path);
  onCleanup(() => void process.umask(umask));
  for (const name of ['id', 'test', 'sh']) symlinkSync(`/usr/bin/${name}`, join(path, name));
  return { path, cache };
}

function program(file: string, prints: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\necho '${prints}'\n`);
  chmodSync(file, 0o755);
}

test('the three servers are found, each new enough', async () => {
  const found = await serverPrograms();
  expect(Number(found.postgres.version)).toBeGreaterThanOrEqual(14);
  expect(Number(found.redis.version)).toBeGreaterThanOrEqual(6.2);
  expect(Number(found.mosquitto.version)).toBeGreaterThanOrEqual(2);
});

test('without servers and without apt-get the error says what to install', async () => {
  const { path, cache } = machine();
  const env = { PATH: path, REPLAY_LEDGER_CACHE: cache, REPLAY_LEDGER_IGNORE_SYSTEM: '1' };
  const child = startScript(FIND, { env });
  await expect(child.exit).resolves.toMatchObject({ code: 1 });
  expect(child.stderr).toContain('Not found: postgres, redis-server, mosquitto');
  expect(child.stderr).toContain('sudo apt-get install postgresql redis-server mosquitto');
  expect(child.stderr).toContain('brew install');
  expect(child.stderr).toContain('apt-get cannot be run');
});

test('a server in the cache is used, one that is too old counts as missing', async () => {
  const { path, cache } = machine();
  const postgres = join(cache, 'postgresql/usr/lib/postgresql');
  for (const version of ['9', '16']) {
    program(join(postgres, version, 'bin/initdb'), '');
    program(join(postgres, version, 'bin/postgres'), `postgres (PostgreSQL) ${version}.3`);
  }
  program(join(cache, 'redis-server/usr/bin/redis-server'), 'Redis server v=6.0.16 sha=0');
  program(join(cache, 'mosquitto/usr/sbin/mosquitto'), 'mosquitto version 2.0.11');
  const env = { PATH: path, REPLAY_LEDGER_CACHE: cache, REPLAY_LEDGER_IGNORE_SYSTEM: '1' };

  const old = startScript(FIND, { env });
  await old.exit;
  expect(old.stderr).toContain('Not found: redis-server.');

  program(join(cache, 'redis-server/usr/bin/redis-server'), 'Redis server v=6.2.0 sha=0');
  const complete = startScript(FIND, { env });
  await expect(complete.exit).resolves.toMatchObject({ code: 0 });
  expect(JSON.parse(complete.stdout)).toMatchObject({
    postgres: { path: join(postgres, '16/bin/postgres'), version: '16.3' },
    redis: { version: '6.2' },
    mosquitto: { version: '2.0' },
  });
});
