/**
 * Everything that a contract reads of a delivery, with its place in the file. Pure.
 *
 * Works on the tree, not on the finished contract: rules about readings are checked also where another part of the
 * file is wrong, so that its author sees all errors at once.
 */
import { parseTemplate } from './template';
import { entryOf, type YamlNode, type YamlPath } from './yaml-tree';

export type Reading = {
  readonly path: YamlPath;
  readonly offset: number;
  /** Which part of the contract reads. */
  readonly by: 'identity' | 'incident' | 'occurredAt' | 'effects' | 'forward';
} & (
  | { readonly kind: 'const'; readonly text: string }
  | { readonly kind: 'pointer' | 'envelope'; readonly pointer: string }
  | { readonly kind: 'topicLevel'; readonly level: number }
  /** The incident of the message, in a template. */
  | { readonly kind: 'incident' }
);

/** In the order of the grammar, not of the file. Badly formed parts are left out: they are reported elsewhere. */
export function readingsOf(root: YamlNode): readonly Reading[] {
  const found: Reading[] = [];
  const identity = entryOf(root, 'identity')?.value ?? null;
  for (const part of ['agency', 'source', 'epoch', 'sequence', 'eventId']) {
    addSource(found, 'identity', entryOf(identity, part)?.value, ['identity', part]);
  }
  addSource(found, 'incident', entryOf(root, 'incident')?.value, ['incident']);
  addSource(found, 'occurredAt', entryOf(root, 'occurredAt')?.value, ['occurredAt']);
  const effects = entryOf(root, 'effects')?.value;
  if (effects?.kind === 'seq') effects.items.forEach((rule, index) => addEffect(found, rule, ['effects', index]));
  const forward = entryOf(entryOf(root, 'forward')?.value ?? null, 'topic')?.value;
  addTemplate(found, 'forward', forward, ['forward', 'topic']);
  return found;
}

function addEffect(found: Reading[], rule: YamlNode, path: YamlPath): void {
  const when = entryOf(rule, 'when')?.value;
  if (when?.kind === 'map') {
    for (const { key, keyOffset } of when.entries.values()) {
      found.push({ by: 'effects', kind: 'pointer', pointer: key, path: [...path, 'when', key], offset: keyOffset });
    }
  }
  addTemplate(found, 'effects', entryOf(rule, 'field')?.value, [...path, 'field']);
  for (const key of ['by', 'to', 'value']) {
    addSource(found, 'effects', entryOf(rule, key)?.value, [...path, key]);
  }
}

/** A source, an alternative of one, a part of an event id, or an epoch: they nest the same way. */
function addSource(found: Reading[], by: Reading['by'], node: YamlNode | undefined, path: YamlPath): void {
  if (node?.kind === 'seq') {
    node.items.forEach((item, index) => addSource(found, by, item, [...path, index]));
  } else if (node?.kind === 'map') {
    for (const { key, value } of node.entries.values()) {
      if (key === 'value') addSource(found, by, value, [...path, key]);
      if (value.kind !== 'scalar') continue;
      const at = { by, path: [...path, key], offset: value.offset };
      if (typeof value.value === 'number' && key === 'topicLevel') {
        found.push({ ...at, kind: key, level: value.value });
      }
      if (typeof value.value !== 'string') continue;
      if (key === 'const') found.push({ ...at, kind: key, text: value.value });
      if (key === 'pointer' || key === 'envelope') found.push({ ...at, kind: key, pointer: value.value });
    }
  }
}

function addTemplate(found: Reading[], by: Reading['by'], node: YamlNode | undefined, path: YamlPath): void {
  if (node?.kind !== 'scalar' || typeof node.value !== 'string') return;
  const template = parseTemplate(node.value);
  if (!template.ok) return;
  const at = { by, path, offset: node.offset };
  for (const part of template.parts) {
    if (part.kind === 'pointer') found.push({ ...at, kind: 'pointer', pointer: part.pointer });
    if (part.kind === 'topicLevel') found.push({ ...at, kind: 'topicLevel', level: part.level });
    if (part.kind === 'incident') found.push({ ...at, kind: 'incident' });
  }
}
