/**
 * Holds a YAML tree against the grammar and says what is wrong in the words of people who write contracts. Pure.
 */
import type { z } from 'zod';
import type { ContractFault } from './check-error';
import { contractSchema, type ContractInput } from './schema';
import { keyOffsetOf, nodeAt, offsetOf, toValue, type YamlNode, type YamlPath, type YamlScalar } from './yaml-tree';

/** Of one mapping; a file of another kind has nothing but unknown keys. */
const MAX_UNKNOWN_KEYS = 100;

type Issue = z.core.$ZodIssue;

export interface ShapeReading {
  /** null if there are faults of shape; numbers that are written badly leave it. */
  readonly input: ContractInput | null;
  readonly faults: readonly ContractFault[];
}

export function readShape(root: YamlNode): ShapeReading {
  const result = contractSchema.safeParse(withExactJump(toValue(root), root));
  const faults = result.success
    ? []
    : result.error.issues.filter(isCause).flatMap((issue) => issueFaults(root, issue, []));
  // A value that is wrong altogether says so once.
  const wrong = new Set(faults.map((fault) => fault.offset));
  const numbers = numberFaults(root, []).filter((fault) => !wrong.has(fault.offset));
  return { input: result.success ? result.data : null, faults: [...faults, ...numbers] };
}

const JUMP: YamlPath = ['dedup', 'maxSequenceJump'];

/** A jump may have 38 digits, and a double would lose half of them: it is read from the text of the file. */
function withExactJump(value: unknown, root: YamlNode): unknown {
  const jump = nodeAt(root, JUMP);
  if (jump?.kind !== 'scalar' || typeof jump.value !== 'number') return value;
  // There is a node at the path, so both are maps.
  const contract = value as { readonly dedup: object };
  return { ...contract, dedup: { ...contract.dedup, maxSequenceJump: jump.text } };
}

function issueFaults(root: YamlNode, issue: Issue, base: YamlPath): ContractFault[] {
  const path = [...base, ...(issue.path as YamlPath)];
  if (issue.code === 'unrecognized_keys') return unknownKeyFaults(root, path, issue.keys, issue.message.split(' '));
  if (issue.code === 'invalid_key') {
    const message = `the key "${String(path[path.length - 1])}" ${issue.issues[0]?.message ?? 'is not allowed'}`;
    return [{ offset: keyOffsetOf(root, path), path, message }];
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const branch = fittingBranch(issue.errors);
    if (branch !== null) return branch.filter(isCause).flatMap((inner) => issueFaults(root, inner, path));
  }
  const node = nodeAt(root, path);
  return node?.kind === 'scalar' && node.isStandIn ? [] : [valueFault(root, path, issue.message)];
}

/** False for a rule about an object whose mistyped key is reported already: the rule misses that very key. */
function isCause(issue: Issue, _: number, all: readonly Issue[]): boolean {
  const same = (other: Issue): boolean => other.path.join('\0') === issue.path.join('\0');
  return issue.code !== 'custom' || !all.some((other) => other.code === 'unrecognized_keys' && same(other));
}

/** Of the forms that a value may have, the one that its author meant: right in kind, with the fewest issues. */
function fittingBranch(branches: ReadonlyArray<readonly Issue[]>): readonly Issue[] | null {
  const fitting = branches.filter(
    (issues) => !issues.some((i) => i.path.length === 0 && (i.code === 'invalid_type' || i.code === 'invalid_value')),
  );
  return [...fitting].sort((a, b) => a.length - b.length)[0] ?? null;
}

function valueFault(root: YamlNode, path: YamlPath, expectation: string): ContractFault {
  const offset = offsetOf(root, path);
  const node = nodeAt(root, path);
  if (node === null) {
    return { offset, path, message: `is missing; it ${expectation}` };
  }
  if (node.kind !== 'scalar' || !expectation.startsWith('must be ')) return { offset, path, message: expectation };
  return { offset, path, message: `${expectation}${foundInstead(node, expectation)}` };
}

/** What was found where a scalar has the wrong kind; how to make it text, where text is wanted. */
function foundInstead(node: YamlScalar, expectation: string): string {
  const shown = node.text.length > 60 ? `${node.text.slice(0, 60)}…` : node.text;
  if (typeof node.value === 'string') return `, not "${shown}"`;
  if (node.text === '') return ', but nothing is written here';
  const wantsText = /^must be (a text|the name|a topic|a field|1 to 64)/.test(expectation);
  if (typeof node.value === 'number' && !wantsText) return `, not ${shown}`;
  const kind = node.value === null ? 'null' : typeof node.value === 'number' ? 'a number' : 'a boolean';
  return `, but YAML reads ${shown} as ${kind}${wantsText ? `; to mean the text, quote it: "${shown}"` : ''}`;
}

function unknownKeyFaults(
  root: YamlNode,
  path: YamlPath,
  keys: readonly string[],
  known: readonly string[],
): ContractFault[] {
  return keys.slice(0, MAX_UNKNOWN_KEYS).map((key) => {
    const guess = closest(key, known);
    const hint = guess === null ? `known here: ${known.join(', ')}` : `did you mean "${guess}"?`;
    const full = [...path, key];
    return { offset: keyOffsetOf(root, full), path: full, message: `unknown key "${key.slice(0, 60)}"; ${hint}` };
  });
}

/**
 * Numbers must be written as decimal digits: 1e3, 0x10, 0o17, 007, +5 and 600.0 are numbers to YAML too, and some of
 * them are other numbers to other readers of the same file.
 */
function numberFaults(node: YamlNode, path: YamlPath): ContractFault[] {
  if (node.kind === 'seq') return node.items.flatMap((item, index) => numberFaults(item, [...path, index]));
  if (node.kind === 'map') {
    return Array.from(node.entries.values()).flatMap(({ key, value }) => numberFaults(value, [...path, key]));
  }
  if (typeof node.value !== 'number') return [];
  const fault = (message: string): ContractFault[] => [{ offset: node.offset, path, message }];
  const plain = /^-?(?:0|[1-9][0-9]*)(\.[0-9]*[1-9])?$/.exec(node.text);
  if (plain === null || node.text === '-0') return fault(`must be written in plain decimal digits, not "${node.text}"`);
  const isJump = path.join('.') === JUMP.join('.');
  const digits = node.text.replace(/[-.]/g, '').replace(/^0+/, '').length;
  return digits > 15 && !isJump ? fault('has more digits than can be kept exactly; at most 15') : [];
}

/** The known key that a mistyped one is closest to, or null. */
function closest(key: string, known: readonly string[]): string | null {
  const normal = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '');
  const written = normal(key.slice(0, 60));
  const ranked = known
    .map((candidate) => ({ candidate, distance: candidateDistance(written, normal(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(1, Math.floor(best.candidate.length / 3))
    ? best.candidate
    : null;
}

function candidateDistance(written: string, candidate: string): number {
  // source_id is meant as source, windowSecs as windowSeconds.
  const isPrefix =
    candidate.length >= 3 && written.length >= 3 && (written.startsWith(candidate) || candidate.startsWith(written));
  return isPrefix ? 1 : editDistance(written, candidate);
}

/** Optimal string alignment distance: insertions, deletions, substitutions and swapped neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const at = (cells: readonly number[], k: number): number => cells[k] ?? Number.POSITIVE_INFINITY;
      let best = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, at(beforeLast, j - 2) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? Number.POSITIVE_INFINITY;
}
