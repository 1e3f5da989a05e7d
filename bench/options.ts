import { parseArgs } from 'node:util';

export interface Options {
  /** Backlog of each measured part, in messages. */
  readonly messages: number;
  readonly rounds: number;
  /** One JSON object on standard output instead of a table. */
  readonly json: boolean;
  /** Measure the heap of a long run instead of rates. */
  readonly heap: boolean;
  /** Folder for CPU profiles of the measured processes. */
  readonly cpuProf: string | null;
}

export const USAGE = `usage: npm run -s bench -- [options]
  --messages N     queued messages of each part; default 50000, with --heap at least 1000000
  --rounds N       rounds, of which the median counts; default 3
  --heap           is the heap flat between message 200000 and 1000000?
  --json           print one JSON object
  --cpu-prof DIR   write a CPU profile of every measured process to DIR`;

const DEFAULT_MESSAGES = 50_000;
const DEFAULT_ROUNDS = 3;

/** @throws RangeError or TypeError with a message for people */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      messages: { type: 'string', default: String(DEFAULT_MESSAGES) },
      rounds: { type: 'string', default: String(DEFAULT_ROUNDS) },
      json: { type: 'boolean', default: false },
      heap: { type: 'boolean', default: false },
      'cpu-prof': { type: 'string' },
    },
  });
  return {
    messages: count('messages', values.messages),
    rounds: count('rounds', values.rounds),
    json: values.json,
    heap: values.heap,
    cpuProf: values['cpu-prof'] ?? null,
  };
}

function count(name: string, text: string): number {
  if (/^[1-9]\d{0,7}$/.test(text)) return Number(text);
  throw new RangeError(`--${name} must be a whole number from 1 to 99999999, is ${JSON.stringify(text)}`);
}
