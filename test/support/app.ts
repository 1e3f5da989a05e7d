/**
 * The whole product on real servers, in a process of its own that can be killed: `startApp` of the build, as `serve`
 * runs it, with one thing more: it can be told to end itself, with SIGKILL, at a step of a batch.
 *
 * From `dist/`, because the embedded parts are ESM only, and because the build starts in a third of the time.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Role } from '../../src/app';
import type { Step } from '../../src/pipeline/process-batch';
import { onCleanup } from './cleanup';
import { query } from './ledger';
import { startProcess, type TestProcess } from './process';

export interface AppSetup {
  readonly databaseUrl: string;
  readonly mqttUrl: string;
  /** Texts of contract files. */
  readonly contracts: readonly string[];
  /** Absent: the window in the process. */
  readonly redisUrl?: string;
  /** Default 4, which is 3.1.1. */
  readonly mqttVersion?: 4 | 5;
  /** Default `consumer`. */
  readonly role?: Role;
  /** More variables, over these. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface KillPoint {
  readonly step: Step;
  /** 1, 2, …: the how manyeth time the step is reached. */
  readonly time: number;
}

const REPOSITORY = resolve(__dirname, '../..');

const SCRIPT = `
const { startApp } = require('./dist/app');
const { readConfig } = require('./dist/config');
const { createLogger } = require('./dist/ops/logger');
const kill = JSON.parse(process.env.TEST_KILL_AT);
let times = 0;
const onStep = (step) => {
  if (step === kill?.step && ++times === kill.time) process.kill(process.pid, 'SIGKILL');
};
const config = readConfig(process.env, () => { throw new Error('no secret files here'); });
startApp(config, createLogger(config.logLevel), { role: process.env.TEST_ROLE, onStep }).then((app) => {
  process.once('SIGTERM', () => app.close().then(() => process.exit(0)));
  console.log('started');
}, (error) => {
  console.error(error);
  process.exit(1);
});
`;

/** Starts an instance; does not wait for it. */
export function startInstance(setup: AppSetup, killAt: KillPoint | null = null): TestProcess {
  return startProcess(process.execPath, ['--enable-source-maps', '--eval', SCRIPT], {
    cwd: REPOSITORY,
    env: {
      ...appEnvironment(setup),
      TEST_KILL_AT: JSON.stringify(killAt),
      TEST_ROLE: setup.role ?? 'consumer',
    },
  });
}

/** Starts an instance and waits until it consumes every feed of its contracts. */
export async function startConsuming(setup: AppSetup, killAt: KillPoint | null = null): Promise<TestProcess> {
  const app = startInstance(setup, killAt);
  await app.waitForLine(/^started/);
  for (const contract of setup.contracts) await consumes(app, feedOf(contract));
  return app;
}

/** Resolves when the instance has subscribed to the topics of a feed, at once if it has before. */
export async function consumes(app: TestProcess, feed: string, timeoutMs?: number): Promise<void> {
  await app.waitForLine(new RegExp(`"feed":"${feed}".*"msg":"subscribed"`), timeoutMs);
}

/** The variables of an instance. A lease lasts two seconds, the shortest there is. */
export function appEnvironment(setup: AppSetup): Record<string, string> {
  return {
    DATABASE_URL: setup.databaseUrl,
    MQTT_URL: setup.mqttUrl,
    MQTT_VERSION: setup.mqttVersion === 5 ? '5' : '3.1.1',
    CONTRACTS_DIR: contractsFolder(setup.contracts),
    LEASE_TTL_SECONDS: '2',
    PORT: '0',
    LOG_LEVEL: 'debug',
    ...(setup.redisUrl === undefined ? {} : { REDIS_URL: setup.redisUrl }),
    ...setup.env,
  };
}

/** The texts as files of a new folder, removed at the end of the test file. */
export function contractsFolder(contracts: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-contracts-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  contracts.forEach((text, index) => writeFileSync(join(folder, `${index}.yaml`), text));
  return folder;
}

export function feedOf(contract: string): string {
  const [, feed] = /^feed: (\S+)$/m.exec(contract) ?? [];
  if (feed === undefined) throw new Error('the contract names no feed on a line of its own');
  return feed;
}

/** Client id of the session that every instance takes over for a feed. */
export function clientIdOf(feed: string): string {
  return `replay-ledger-${feed}-default`;
}

/** As if the lease time had passed since an instance died: what it held can be taken at once. */
export async function expireLeases(databaseUrl: string): Promise<void> {
  await query(databaseUrl, "UPDATE lease SET expires_at = clock_timestamp() - interval '1 second'");
}
