/**
 * `npm run bench`: what the main path carries, beside a bare subscriber and the consumer that most teams would write, in
 * one run on one machine: only the ratios mean anything elsewhere. Fails where a message is lost, repeated or left.
 */
import { resolve } from 'node:path';
import { cleanup } from '../test/support/cleanup';
import { heapTable, measureHeap } from './heap';
import { type Options, readOptions, USAGE } from './options';
import { reportOf, table } from './report';
import { type RoundResult, runRound } from './rounds';
import { type Servers, startServers, versions } from './servers';

function progress(what: string): void {
  process.stderr.write(`bench: ${what}\n`);
}

async function run(options: Options): Promise<boolean> {
  progress('starting mosquitto, Redis and Postgres');
  const servers = await startServers();
  const nodeArgs = options.cpuProf === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(options.cpuProf)}`];
  return options.heap ? runHeap(servers, options, nodeArgs) : runRates(servers, options, nodeArgs);
}

async function runRates(servers: Servers, options: Options, nodeArgs: readonly string[]): Promise<boolean> {
  const rounds: RoundResult[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    rounds.push(await runRound(servers, { round, messages: options.messages, nodeArgs, progress }));
  }
  const report = reportOf(rounds, await versions());
  console.log(options.json ? JSON.stringify(report) : table(report));
  return true;
}

async function runHeap(servers: Servers, options: Options, nodeArgs: readonly string[]): Promise<boolean> {
  const report = await measureHeap(servers, options.messages, nodeArgs, progress);
  console.log(options.json ? JSON.stringify({ heap: report }) : heapTable(report));
  return report.flat;
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    return 1;
  }
  try {
    return (await run(options)) ? 0 : 1;
  } finally {
    await cleanup();
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
