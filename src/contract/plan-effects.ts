/** Differences between the effects of two contracts, and what they read outside the message. Pure. */
import { valueSource } from './effects-plan';
import { parseTemplate } from './template';
import type { EffectRule, FeedContract, ValueSource } from './types';

export interface EffectChange {
  /** JSON text of the rules, or `"off"`; null: it is not there. */
  readonly before: string | null;
  readonly after: string | null;
  /** Whether an update may no longer reach the incident as it did. */
  readonly weakens: boolean;
  readonly effect: string;
}

export function effectRuleChanges(before: FeedContract['effects'], after: FeedContract['effects']): EffectChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (after === 'off') {
    return [change(before, after, true, 'messages are decided and recorded, and change no incident')];
  }
  if (before === 'off') return [change(before, after, false, 'messages change incidents from now on')];
  const [old, fresh] = [before.map(textOf), after.map(textOf)];
  const changes = [
    ...without(old, fresh).map((rule): EffectChange => ({
      before: rule,
      after: null,
      weakens: true,
      effect: 'a rule is gone: what it changed is no longer changed',
    })),
    ...without(fresh, old).map((rule): EffectChange => ({
      before: null,
      after: rule,
      weakens: false,
      effect: 'a rule is new: it changes incidents from now on',
    })),
  ];
  return changes.length > 0
    ? changes
    : [change(before, after, true, 'rules run in another order, so another one may write last')];
}

/**
 * One text for all that is read outside the message beside what identity always reads: equal texts, equal digests.
 * Under `effects: off` neither effects nor forwarding read anything.
 */
export function outsideReadings({ identity, incident, effects, forward }: FeedContract): string {
  const found = new Set<string>();
  if (incident !== null) addSource(found, incident);
  for (const rule of effects === 'off' ? [] : effects) {
    addTemplate(found, rule.field);
    addSource(found, valueSource(rule));
  }
  if (forward !== null && effects !== 'off') addTemplate(found, forward.topic);
  // Later alternatives are read only where the first is absent.
  const parts = identity.mode === 'sequence' ? [identity.sequence, identity.epoch?.value ?? []] : identity.eventId;
  const always = new Set<string>();
  for (const part of [identity.agency, identity.source, ...parts]) addSource(always, part.slice(0, 1));
  return [...found]
    .filter((name) => !always.has(name))
    .sort()
    .join('\n');
}

/** Named as the digest names them (`decode.ts`). */
function addSource(found: Set<string>, source: ValueSource): void {
  for (const origin of source) {
    if ('envelope' in origin) found.add(`envelope:${origin.envelope}`);
    if ('topicLevel' in origin) found.add(`topicLevel:${origin.topicLevel}`);
    if ('userProperty' in origin) found.add(`userProperty:${origin.userProperty}`);
  }
}

function addTemplate(found: Set<string>, text: string): void {
  const template = parseTemplate(text);
  if (!template.ok) return; // The loader refuses it.
  for (const part of template.parts) {
    if (part.kind === 'topicLevel') found.add(`topicLevel:${part.level}`);
    if (part.kind === 'topic') found.add('topic');
  }
}

function change(before: FeedContract['effects'], after: FeedContract['effects'], weakens: boolean, effect: string) {
  return { before: JSON.stringify(before), after: JSON.stringify(after), weakens, effect };
}

function textOf(rule: EffectRule): string {
  return JSON.stringify(rule);
}

/** Members of the first list that the second has not, each as often as it lacks it. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const left = [...other];
  return list.filter((text) => {
    const at = left.indexOf(text);
    if (at === -1) return true;
    left.splice(at, 1);
    return false;
  });
}
