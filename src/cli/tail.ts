/** `replay-ledger tail`: decisions of a running service on a terminal, as they are made. */
import { readFileSync } from 'node:fs';
import { followDecisions } from '../api/client';
import type { FollowFilter, Followed, FollowedDecision } from '../api/client';
import { isHeld } from '../dedup/state';
import type { EntryOutcome } from '../ledger/entry';

export interface TailOptions {
  readonly url: string;
  /** See FollowOptions. */
  readonly token: () => string | null;
  readonly filter: FollowFilter;
  readonly after: string | null;
  /** One JSON object a line instead of text for people. */
  readonly json: boolean;
  readonly colour: boolean;
  readonly signal: AbortSignal;
  readonly write: (line: string) => void;
  /** What is no decision: lost connections. */
  readonly note: (line: string) => void;
}

/**
 * The token that a file holds whenever it is asked; of before, while there is none in it, as when it is being replaced.
 * @throws where there is no such file now
 */
export function tokenOfFile(path: string): () => string {
  const read = (): string => readFileSync(path, 'utf8').trim();
  let token = read();
  return () => {
    try {
      token = read() || token;
    } catch {
      // Whoever replaces it is not done yet.
    }
    return token;
  };
}

/** Until the signal. @throws FollowError */
export async function tail(options: TailOptions): Promise<void> {
  const { json, colour, write, note } = options;
  const onTrouble = (reason: string): void => note(`not connected, trying again: ${printable(reason)}`);
  for await (const followed of followDecisions({ ...options, onTrouble })) {
    write(json ? jsonLine(followed) : textLine(followed.decision, colour));
  }
}

export function jsonLine({ cursor, decision }: Followed): string {
  return JSON.stringify({ ...decision, feed: decision.feed.name, cursor });
}

/** `12:01:07.123Z cad #43 DUPLICATE_SUPPRESSED WINDOW county-fire/engine-7 41 I-77 repeats #12 after 34.2 s` */
export function textLine(decision: FollowedDecision, colour: boolean): string {
  const { feed, position, outcome, tier, recordedAt, incidentId, late } = decision;
  const parts = [
    recordedAt.slice(11, 23) + 'Z',
    `${feed.name} #${position}`,
    outcome,
    ...(tier === 'NONE' ? [] : [tier]),
    ...(late ? ['late'] : []),
    sourceText(decision),
    ...(incidentId === null ? [] : [incidentId]),
    relationText(decision),
  ];
  const line = parts
    .filter((part) => part !== '')
    .map(printable)
    .join('  ');
  return colour ? `${colourOf(outcome)}${line}${RESET}` : line;
}

function sourceText({ agency, sourceId, epoch, sequence, eventId, topic }: FollowedDecision): string {
  if (agency === null || sourceId === null) return `on ${topic}`;
  const number = eventId === null ? sequence : eventId.join('/');
  return [`${agency}/${sourceId}`, epoch, number].filter((part) => part !== null).join(' ');
}

function relationText({ outcome, originalPosition, replayLagSeconds, reason }: FollowedDecision): string {
  if (outcome === 'APPLIED' && reason === 'applied') return '';
  if (outcome !== 'DUPLICATE_SUPPRESSED' || originalPosition === null) {
    return originalPosition === null ? reason : `${reason}, compare #${originalPosition}`;
  }
  return `repeats #${originalPosition}${replayLagSeconds === null ? '' : ` after ${replayLagSeconds.toFixed(1)} s`}`;
}

const RESET = '\x1b[0m';

function colourOf(outcome: EntryOutcome): string {
  if (outcome === 'APPLIED' || outcome === 'RELEASED') return '\x1b[32m';
  if (outcome === 'DUPLICATE_SUPPRESSED') return '\x1b[36m';
  if (outcome === 'IGNORED' || outcome === 'DISMISSED') return '\x1b[2m';
  return isHeld(outcome) ? '\x1b[33m' : '';
}

/** What producers wrote must not steer the terminal: control and bidirectional characters are shown by number. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
