/** A plan of contracts, for people. */
import { formatContractError } from '../../contract/check-error';
import { isPending } from '../../contract/plan';
import type { FieldChange, Grade } from '../../contract/plan';
import { exitCodeOf } from '../../startup/contract-plan';
import type { ContractsPlan, PlannedFeed } from '../../startup/contract-plan';

const GRADE_WORDS: Readonly<Record<Grade, string>> = {
  safe: 'safe',
  weakens_protection: 'weakens protection',
  changes_identity: 'changes identity',
};

/** Values are cut, as rules of effects can be long; `--json` has all of them. */
const MAX_VALUE_LENGTH = 160;

export function describePlan(plan: ContractsPlan, write: (line: string) => void): void {
  for (const error of plan.errors) write(formatContractError(error));
  for (const feed of plan.feeds) for (const line of linesOf(feed)) write(line);
  const pending = plan.feeds.filter(isPending).length;
  const refused = plan.errors.length + plan.feeds.filter(({ refusal }) => refusal !== null).length;
  const what = refused > 0 ? ', but it cannot be applied' : '';
  write(pending === 0 ? `No feed changes${what}.` : `${pending} of ${plan.feeds.length} feeds differ${what}.`);
}

/** What `--json` prints: values are JSON of their own kind, null where there is none. */
export function planJson(plan: ContractsPlan): object {
  const valued = (change: FieldChange) => ({
    ...change,
    before: valueOf(change.before),
    after: valueOf(change.after),
  });
  return {
    exitCode: exitCodeOf(plan),
    errors: plan.errors,
    feeds: plan.feeds.map((feed) => ({ ...feed, changes: feed.changes.map(valued), drift: feed.drift.map(valued) })),
  };
}

function valueOf(text: string | null): unknown {
  return text === null ? null : JSON.parse(text);
}

function linesOf(plan: PlannedFeed): string[] {
  return [
    `${plan.feed} (${plan.file}): ${statusOf(plan)}`,
    ...plan.changes.flatMap(changeLines),
    ...plan.drift.map(driftLine),
    ...(plan.refusal === null ? [] : [`  refused: ${plan.refusal}`]),
  ];
}

function statusOf({ status, changes, drift, restores, textDiffers }: PlannedFeed): string {
  switch (status) {
    case 'new':
      return 'new feed';
    case 'without_file':
      return 'its file is gone; its contract stays in force';
    case 'changed':
      return `${count(changes.length, 'change')}${restores ? '; goes back to an earlier contract' : ''}`;
    case 'unchanged':
      if (drift.length > 0) return 'no change, but the policy was changed through the API';
      return textDiffers ? 'no change (the text differs, and means the same)' : 'no change';
  }
}

function changeLines({ field, before, after, grade, effect }: FieldChange): string[] {
  return [`  ${GRADE_WORDS[grade]}: ${field}: ${shown(before)} -> ${shown(after)}`, `    ${effect}`];
}

function driftLine({ field, before, after }: FieldChange): string {
  return `  drift: ${field}: ${shown(before)} is in force, the file says ${shown(after)}; "contract export" writes it there`;
}

function shown(value: string | null): string {
  if (value === null) return '(absent)';
  return value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
