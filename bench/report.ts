/** From measurements to what is printed. */
import type { Measured } from './child';
import type { RoundResult } from './rounds';

export interface Rate {
  /** Messages a second, the median of the rounds. */
  readonly rate: number;
}

export interface RatedPath extends Rate {
  readonly toBare: number;
  readonly toPerMessagePrisma: number;
}

export interface Report {
  readonly bare: Rate;
  readonly perMessagePrisma: Rate;
  readonly firstSeen: RatedPath;
  readonly replayBurst: RatedPath;
  /** Of the product's processes. */
  readonly peakRssBytes: number;
  readonly versions: Readonly<Record<string, string>>;
}

/** What the whole path is expected to reach beside its peers of the same run. */
const LEAST_TO_BARE = 0.08;
const LEAST_TO_PER_MESSAGE = 30;

export function reportOf(rounds: readonly RoundResult[], versions: Report['versions']): Report {
  const rateOf = (part: keyof RoundResult): number => median(rounds.map((round) => perSecond(round[part])));
  const bare = rateOf('bare');
  const perMessagePrisma = rateOf('perMessagePrisma');
  const path = (rate: number): RatedPath => ({
    rate: Math.round(rate),
    toBare: digits(rate / bare, 3),
    toPerMessagePrisma: digits(rate / perMessagePrisma, 1),
  });
  return {
    bare: { rate: Math.round(bare) },
    perMessagePrisma: { rate: digits(perMessagePrisma, 1) },
    firstSeen: path(rateOf('firstSeen')),
    replayBurst: path(rateOf('replayBurst')),
    peakRssBytes: Math.max(
      ...rounds.flatMap((round) => [round.firstSeen.peakRssBytes, round.replayBurst.peakRssBytes]),
    ),
    versions,
  };
}

export function table(report: Report): string {
  const { bare, perMessagePrisma, firstSeen, replayBurst, peakRssBytes, versions } = report;
  const row = (name: string, rate: number, ...ratios: string[]): string =>
    [name.padEnd(44), rate.toFixed(0).padStart(10), ...ratios.map((ratio) => ratio.padStart(12))].join(' ').trimEnd();
  const path = (name: string, { rate, toBare, toPerMessagePrisma }: RatedPath): string =>
    row(name, rate, toBare.toFixed(3), `${toPerMessagePrisma.toFixed(1)} x`);
  const met = [firstSeen, replayBurst].every(
    ({ toBare, toPerMessagePrisma }) => toBare >= LEAST_TO_BARE && toPerMessagePrisma >= LEAST_TO_PER_MESSAGE,
  );
  return [
    `${''.padEnd(44)} ${'messages/s'.padStart(10)} ${'to bare'.padStart(12)} ${'to Prisma'.padStart(12)}`,
    row('bare MQTT.js subscriber, no work', bare.rate),
    row('one Prisma transaction a message', perMessagePrisma.rate),
    path('whole path, first seen', firstSeen),
    path('whole path, replay burst', replayBurst),
    '',
    `Expected of the whole path: ${LEAST_TO_BARE} to bare and ${LEAST_TO_PER_MESSAGE} x to Prisma, each: ${met ? 'met' : 'NOT met'}.`,
    `Peak memory of the whole path: ${Math.round(peakRssBytes / 1e6)} MB.`,
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', '),
  ].join('\n');
}

function perSecond({ messages, seconds }: Measured): number {
  return messages / seconds;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN;
  return (lower + upper) / 2;
}

function digits(value: number, fraction: number): number {
  return Number(value.toFixed(fraction));
}
