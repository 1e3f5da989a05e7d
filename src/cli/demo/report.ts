/** The night as people read it: at most 80 columns, colour only where it is asked for. */
import { styleText } from 'node:util';
import type { Suppression } from './ledger-view';
import type { NightResult } from './night';
import { describe, INCIDENT, TRUTH } from './scenario';

export type Paint = (colour: 'bold' | 'dim' | 'green' | 'red', text: string) => string;

/** @param colour false leaves every text as it is */
export function painter(colour: boolean): Paint {
  return (format, text) => (colour ? styleText(format, text) : text);
}

export const TITLE = 'The night of the hurricane, over real MQTT';

export const PROLOGUE = [
  'A structure fire, two engines, three casualties, and a broker that dies.',
  'The feed comes at QoS 1, which is at-least-once. A naive consumer adds up what',
  'it is given; Replay Ledger reads the same feed from the same brokers.',
] as const;

/** Widths of the columns of the two pictures. */
const UNIT = 14;
const NAIVE = 32;

/** @param apiOpen whether the API goes on answering after the report */
export function report(night: NightResult, apiUrl: string, apiOpen: boolean, paint: Paint): string[] {
  const { suppressions } = night.ledger;
  return [
    '',
    paint('bold', 'Two pictures of one fire'),
    ...pictures(night, paint),
    '',
    paint('bold', `Suppressed replays (${suppressions.length}), each with the original that it repeats`),
    ...suppressionTable(suppressions, paint),
    '',
    paint('bold', 'Balance'),
    ...balance(night, paint),
    '',
    paint('bold', 'The ledger answers queries'),
    ...questions(apiUrl, apiOpen),
  ];
}

function pictures({ naive, ledger: { cop } }: NightResult, paint: Paint): string[] {
  const row = (label: string, theirs: string, ours: string, truth: string): string =>
    `  ${label.padEnd(UNIT)}${judged(theirs, truth, NAIVE, paint)}${judged(ours, truth, 0, paint)}`;
  return [
    paint('dim', `  ${''.padEnd(UNIT)}${'naive consumer'.padEnd(NAIVE)}Replay Ledger`),
    row('casualties', String(naive.casualties), String(cop.casualties), String(TRUTH.casualties)),
    ...Object.entries(TRUTH.units).map(([unit, truth]) =>
      row(unit, naive.units[unit] ?? 'unknown', cop.units[unit] ?? 'unknown', truth),
    ),
  ];
}

/** Green where it is the truth; in words too, for those who see no colours. */
function judged(value: string, truth: string, width: number, paint: Paint): string {
  if (value === truth) return paint('green', value.padEnd(width));
  return paint('red', `${value} (wrong: ${truth})`.padEnd(width));
}

interface Row {
  readonly entry: string;
  readonly source: string;
  readonly sequence: string;
  readonly event: string;
  readonly original: string;
  readonly tier: string;
  readonly after: string;
}

const HEADINGS: Row = {
  entry: 'entry',
  source: 'source',
  sequence: 'sequence',
  event: 'event',
  original: 'original',
  tier: 'tier',
  after: 'after',
};

function suppressionTable(all: readonly Suppression[], paint: Paint): string[] {
  const rows = all.map((each) => ({
    entry: String(each.position),
    source: each.source,
    sequence: each.sequence,
    event: describe(each.change),
    original: String(each.originalPosition),
    tier: each.tier,
    after: `${each.lagSeconds.toFixed(2)} s`,
  }));
  return [paint('dim', line(HEADINGS)), ...rows.map(line)];
}

function line({ entry, source, sequence, event, original, tier, after }: Row): string {
  const what = `${entry.padStart(7)}  ${source.padEnd(10)}${sequence.padStart(8)}  ${event.padEnd(18)}`;
  return `${what}${original.padStart(8)}  ${tier.padEnd(15)}${after.padStart(8)}`;
}

function balance({ published, delivered, redelivered, ledger }: NightResult, paint: Paint): string[] {
  const { received, entries, appliedKeys, applied, released, balanced } = ledger.balance;
  const outcomes = Object.entries(ledger.outcomes).map(([outcome, count]) => `${count} ${outcome}`);
  return [
    `  ${published} published, ${delivered} delivered (${redelivered} of them again): ${outcomes.join(', ')}`,
    `  received ${received} = entries ${entries}`,
    `  applied keys ${appliedKeys} = applied ${applied} + released ${released}`,
    balanced ? paint('green', '  balanced: nothing vanished, nothing counts twice') : paint('red', '  NOT balanced'),
  ];
}

function questions(apiUrl: string, apiOpen: boolean): string[] {
  return [
    `  ${apiUrl}`,
    apiOpen ? '' : '  It closes now; in a terminal, without --once, it stays open.',
    `  curl -s ${apiUrl} \\`,
    `    -H 'content-type: application/json' \\`,
    `    -d '{"query": "{ incident(id: \\"${INCIDENT}\\") { state } }"}'`,
  ];
}
