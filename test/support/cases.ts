import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** One thing that went wrong for somebody, and the right outcome (`test/cases/README.md` has the notation). */
export interface Case {
  /** `C001`, … */
  readonly id: string;
  readonly area: string;
  readonly symptom: string;
  /** Verbatim: big numbers and escapes are as they came. */
  readonly input: string;
  readonly expected: string;
}

const FILE = resolve(__dirname, '../cases/cases.jsonl');

let cases: ReadonlyMap<string, Case> | null = null;

export function allCases(): ReadonlyMap<string, Case> {
  cases ??= new Map(
    readFileSync(FILE, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Case)
      .map((entry) => [entry.id, entry]),
  );
  return cases;
}

/** @throws if there is none of that id. */
export function caseById(id: string): Case {
  const found = allCases().get(id);
  if (found === undefined) throw new Error(`no case ${id} in ${FILE}`);
  return found;
}
