/**
 * Whether a topic that a forward template can give is one that a filter takes. Pure.
 *
 * Both are patterns with unknown text, so their languages are intersected: a breadth-first walk over pairs of places,
 * as in the product of two automata. Exact but for what a placeholder can hold, which is taken to be any text of one
 * level that is not empty.
 */
import { parseTemplate, type Template, type TemplatePart } from './template';

/** One character of a set, or with `isRepeated` any number of them. */
interface Element {
  /** The character itself, any within a level, or any at all. */
  readonly takes: { readonly char: string } | 'level' | 'any';
  readonly isRepeated: boolean;
}

type Pattern = readonly Element[];

const LEVEL_TEXT: Pattern = [
  { takes: 'level', isRepeated: false },
  { takes: 'level', isRepeated: true },
];

/**
 * A topic that the template gives for a message on one of `ownFilters` and that `filter` takes, or null if there is
 * none. The template is taken to be valid.
 */
export function forwardWitness(template: string, ownFilters: readonly string[], filter: string): string | null {
  const parse = parseTemplate(template);
  if (!parse.ok) return null;
  const targets = filterPatterns(filter);
  for (const ownFilter of ownFilters) {
    for (const topic of filterPatterns(ownFilter)) {
      const given = templatePattern(parse.parts, ownFilter, topic);
      for (const target of targets) {
        const witness = intersect(given, target);
        if (witness !== null) return witness;
      }
    }
  }
  return null;
}

/** Two where the filter ends in `/#`, which takes the level above it as well. */
function filterPatterns(filter: string): readonly Pattern[] {
  if (filter === '#')
    return [
      [
        { takes: 'any', isRepeated: false },
        { takes: 'any', isRepeated: true },
      ],
    ];
  const isOpen = filter.endsWith('/#');
  const levels = (isOpen ? filter.slice(0, -2) : filter).split('/');
  const pattern = levels.flatMap((level, index): Pattern => [
    ...literal(index === 0 ? '' : '/'),
    ...(level === '+' ? [{ takes: 'level', isRepeated: true } as const] : literal(level)),
  ]);
  return isOpen ? [pattern, [...pattern, ...literal('/'), { takes: 'any', isRepeated: true }]] : [pattern];
}

/** `topic`: what `{topic}` holds for messages that came by `ownFilter`. */
function templatePattern(parts: Template, ownFilter: string, topic: Pattern): Pattern {
  const levels = ownFilter.split('/');
  const elementsOf = (part: TemplatePart): Pattern => {
    if (part.kind === 'text') return literal(part.text);
    if (part.kind === 'topic') return topic;
    const level = part.kind === 'topicLevel' ? levels[part.level] : undefined;
    return level === undefined || level === '+' || level === '#' ? LEVEL_TEXT : literal(level);
  };
  return parts.flatMap(elementsOf);
}

function literal(text: string): Pattern {
  return Array.from(text, (char) => ({ takes: { char }, isRepeated: false }));
}

interface Step {
  readonly a: number;
  readonly b: number;
  readonly char: string;
  readonly before: Step | null;
}

/** A text that both patterns take, or null. */
function intersect(left: Pattern, right: Pattern): string | null {
  const seen = new Set<number>();
  const queue: Step[] = [];
  const visit = (step: Step): void => {
    const id = step.a * (right.length + 1) + step.b;
    if (seen.has(id)) return;
    seen.add(id);
    queue.push(step);
  };
  visit({ a: 0, b: 0, char: '', before: null });
  // The queue grows while it is walked, up to one step a pair of places.
  for (const step of queue) {
    const [l, r] = [left[step.a], right[step.b]];
    if (l === undefined && r === undefined) return textOf(step);
    if (l?.isRepeated) visit({ a: step.a + 1, b: step.b, char: '', before: step });
    if (r?.isRepeated) visit({ a: step.a, b: step.b + 1, char: '', before: step });
    const char = l === undefined || r === undefined ? null : common(l, r);
    if (char === null) continue;
    visit({ a: step.a + (l?.isRepeated ? 0 : 1), b: step.b + (r?.isRepeated ? 0 : 1), char, before: step });
  }
  return null;
}

/** A character that both elements take, or null. */
function common(l: Element, r: Element): string | null {
  if (typeof l.takes === 'object') return takes(r, l.takes.char) ? l.takes.char : null;
  if (typeof r.takes === 'object') return takes(l, r.takes.char) ? r.takes.char : null;
  return 'x';
}

function takes(element: Element, char: string): boolean {
  if (typeof element.takes === 'object') return element.takes.char === char;
  return element.takes === 'any' || char !== '/';
}

function textOf(last: Step): string {
  const chars: string[] = [];
  for (let step: Step | null = last; step !== null; step = step.before) chars.push(step.char);
  return chars.reverse().join('');
}
