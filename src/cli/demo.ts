/**
 * `replay-ledger demo`: a broker dies, its standby delivers again, and nothing is counted twice. Everything in it is
 * real, the brokers and the database embedded; ports are free ones, and the folder is a temporary one.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApp } from '../app';
import { readConfig } from '../config';
import { Cleanup } from '../ops/cleanup';
import { createLogger } from '../ops/logger';
import { messageOf } from './message';
import { BrokerPair } from './demo/brokers';
import { runNight } from './demo/night';
import type { NightResult } from './demo/night';
import { painter, PROLOGUE, report, TITLE } from './demo/report';
import { CONTRACT, FEED, TRUTH } from './demo/scenario';
import { DemoFailed, DemoStopped, Patience } from './demo/stop';

export interface DemoOptions {
  /** End after the story; otherwise the API stays open until `stop`. */
  readonly once: boolean;
  /** Standard output gets one JSON object, and the story goes to standard error. */
  readonly json: boolean;
  /** Resolves to the name of the signal that asks us to end. Ending before the story does is no failure. */
  readonly stop: Promise<string>;
}

/** What `--json` prints. */
interface DemoResult {
  readonly published: number;
  readonly delivered: number;
  readonly redelivered: number;
  readonly naive: NightResult['naive'];
  readonly cop: NightResult['naive'];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly balanced: boolean;
  readonly apiUrl: string;
}

/** As `serve` has it by default. */
const CLIENT_ID_PREFIX = 'replay-ledger';

/** @throws what keeps the parts from starting; DemoFailed */
export async function runDemo({ once, json, stop }: DemoOptions): Promise<void> {
  const out = json ? process.stderr : process.stdout;
  const tell = (line: string): void => void out.write(`${line}\n`);
  // Node's own judgement of a terminal, which knows NO_COLOR.
  const paint = painter(out.isTTY && out.hasColors());
  const patience = new Patience(stop);
  // A reader that has had enough (`| head`) would otherwise end the process with the folder left behind.
  out.on('error', (error: Error) => patience.fail(error));
  const cleanup = new Cleanup((what, error) =>
    process.stderr.write(`${what} could not be closed: ${messageOf(error)}\n`),
  );
  try {
    tell(paint('bold', TITLE));
    for (const line of PROLOGUE) tell(line);
    tell('');
    const { night, apiUrl } = await stage(patience, cleanup, tell);
    if (json) process.stdout.write(`${JSON.stringify(resultOf(night, apiUrl))}\n`);
    else for (const line of report(night, apiUrl, !once, paint)) tell(line);
    if (!isTrue(night))
      throw new DemoFailed('the ledger does not show what happened: that is a fault, please report it');
    if (once) return;
    tell('');
    tell('Broker and API stay open until you press Ctrl-C.');
    await stop;
  } catch (error) {
    if (!(error instanceof DemoStopped)) throw error;
    process.stderr.write(`${error.message} before the end of the story\n`);
  } finally {
    await cleanup.run();
  }
}

async function stage(
  patience: Patience,
  cleanup: Cleanup,
  tell: (line: string) => void,
): Promise<{ readonly night: NightResult; readonly apiUrl: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'replay-ledger-demo-'));
  cleanup.add('temporary folder', () => rm(folder, { recursive: true, force: true }));
  const contractsDir = join(folder, 'contracts');
  await mkdir(contractsDir);
  await writeFile(join(contractsDir, `${FEED}.yaml`), CONTRACT);

  const brokers = await BrokerPair.start((error) => patience.fail(error));
  cleanup.add('broker', () => brokers.close());
  tell('Waiting for the embedded database: a new one takes 2 to 10 seconds ...');
  const config = readConfig(
    {
      MQTT_URL: brokers.url,
      MQTT_VERSION: '3.1.1',
      MQTT_CLIENT_ID_PREFIX: CLIENT_ID_PREFIX,
      PORT: '0',
      CONTRACTS_DIR: contractsDir,
      DATA_DIR: join(folder, 'data'),
    },
    () => '', // none of these variables names a file
  );
  const app = await startApp(config, createLogger('error'));
  cleanup.add('Replay Ledger', () => app.close());
  patience.check();
  const { apiUrl } = app;
  if (apiUrl === null) throw new DemoFailed('the API did not start');
  tell(`Ready. Brokers on ${brokers.url}, API on ${apiUrl}`);
  tell('');
  const ourClientId = `${CLIENT_ID_PREFIX}-${FEED}-default`;
  return { night: await runNight({ brokers, apiUrl, ourClientId, patience, cleanup, tell }), apiUrl };
}

/** The demo must not end well on a wrong picture, least of all where nobody reads it. */
function isTrue({ ledger: { cop, balance } }: NightResult): boolean {
  const units = Object.entries(TRUTH.units);
  return (
    balance.balanced &&
    cop.casualties === TRUTH.casualties &&
    units.every(([unit, status]) => cop.units[unit] === status)
  );
}

function resultOf({ published, delivered, redelivered, naive, ledger }: NightResult, apiUrl: string): DemoResult {
  const { cop, outcomes, balance } = ledger;
  return { published, delivered, redelivered, naive, cop, outcomes, balanced: balance.balanced, apiUrl };
}
