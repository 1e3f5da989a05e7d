/** Rules of the identity of a contract that no single field can tell (design section 4). Pure. */
import type { ContractFault } from './check-error';
import type { Reading } from './check-readings';
import { MAX_PART_BYTES } from './schema-values';
import { entryOf, type YamlNode, type YamlPath } from './yaml-tree';

export function identityFaults(root: YamlNode, readings: readonly Reading[]): ContractFault[] {
  const identity = entryOf(root, 'identity');
  if (identity?.value.kind !== 'map') return [];
  const mode = modeOf(identity.value);
  if (mode === null) return [];
  return [
    ...modeFaults(identity.value, identity.keyOffset, mode),
    ...(mode === 'eventId' ? jumpFaults(root) : []),
    ...constFaults(readings),
    ...constantIdentityFaults(identity.value, readings),
  ];
}

/** Warnings about what has no meaning in a feed without order. */
export function orderingWarnings(root: YamlNode): ContractFault[] {
  const identity = entryOf(root, 'identity')?.value ?? null;
  const ordering = entryOf(entryOf(root, 'dedup')?.value ?? null, 'ordering')?.value;
  if (modeOf(identity) !== 'eventId' || ordering?.kind !== 'scalar' || ordering.value !== 'strict') return [];
  const message = 'feeds in eventId mode have no order: nothing can be stale, and the feed runs as tolerant';
  return [{ path: ['dedup', 'ordering'], offset: ordering.offset, message }];
}

/** null: not a mode; reported by the grammar. */
function modeOf(identity: YamlNode | null): 'sequence' | 'eventId' | null {
  const mode = entryOf(identity, 'mode')?.value;
  if (mode === undefined) return 'sequence';
  return mode.kind === 'scalar' && (mode.value === 'sequence' || mode.value === 'eventId') ? mode.value : null;
}

function modeFaults(identity: YamlNode, offset: number, mode: 'sequence' | 'eventId'): ContractFault[] {
  const has = (key: string): boolean => entryOf(identity, key) !== null;
  const path: YamlPath = ['identity'];
  if (!has('sequence') && !has('eventId')) {
    const message =
      'has neither sequence nor eventId, so a replay cannot be told from an equal event; a hash of the content is not ' +
      'offered as identity, because it would swallow real events that are equal';
    return [{ path, offset, message }];
  }
  const [needed, foreign] = mode === 'sequence' ? ['sequence', ['eventId']] : ['eventId', ['sequence', 'epoch']];
  const faults: ContractFault[] = [];
  if (!has(needed)) {
    const hint = mode === 'sequence' ? '; for ids instead of numbers write mode: eventId' : '';
    faults.push({ path: [...path, needed], offset, message: `is missing in mode ${mode}${hint}` });
  }
  for (const key of foreign) {
    const entry = entryOf(identity, key);
    if (entry === null) continue;
    const hint = key === 'eventId' ? 'write mode: eventId, or remove it' : 'events with ids have no order: remove it';
    faults.push({ path: [...path, key], offset: entry.keyOffset, message: `has no meaning in mode ${mode}; ${hint}` });
  }
  return faults;
}

function jumpFaults(root: YamlNode): ContractFault[] {
  const jump = entryOf(entryOf(root, 'dedup')?.value ?? null, 'maxSequenceJump');
  if (jump === null) return [];
  const message = 'has no meaning in mode eventId: there are no sequences; remove it';
  return [{ path: ['dedup', 'maxSequenceJump'], offset: jump.keyOffset, message }];
}

/** A part that no message could have passes the grammar, and would make every message malformed. */
function constFaults(readings: readonly Reading[]): ContractFault[] {
  return readings.flatMap((reading) => {
    if (reading.by !== 'identity' || reading.kind !== 'const') return [];
    const bytes = Buffer.byteLength(reading.text);
    const message =
      bytes === 0
        ? 'an identity part must not be empty'
        : bytes > MAX_PART_BYTES
          ? `an identity part has at most ${MAX_PART_BYTES} bytes in UTF-8; this one has ${bytes}`
          : null;
    return message === null ? [] : [{ path: reading.path, offset: reading.offset, message }];
  });
}

/** What tells events apart must come from the message: with a constant, all events after the first are duplicates. */
function constantIdentityFaults(identity: YamlNode, readings: readonly Reading[]): ContractFault[] {
  const faults: ContractFault[] = [];
  const sequence = readings.find((r) => r.kind === 'const' && r.path[0] === 'identity' && r.path[1] === 'sequence');
  if (sequence !== undefined) {
    const message = 'a sequence must come from the message: with a constant, every message has the same number';
    faults.push({ path: sequence.path, offset: sequence.offset, message });
  }
  const eventId = entryOf(identity, 'eventId');
  if (eventId !== null && isConstant(eventId.value)) {
    const message = 'one part of an event id at least must come from the message: all parts are constant';
    faults.push({ path: ['identity', 'eventId'], offset: eventId.keyOffset, message });
  }
  return faults;
}

function isConstant(node: YamlNode): boolean {
  if (node.kind === 'seq') return node.items.length > 0 && node.items.every(isConstant);
  return node.kind === 'map' && entryOf(node, 'const') !== null;
}
