/**
 * Rules between the fields of one contract (design sections 4 and 7). Pure.
 *
 * They work on the tree, and each looks only at what it needs: a rule is checked also where another part of the file is
 * wrong, so that its author sees all errors at once.
 */
import type { ContractFault } from './check-error';
import { identityFaults, orderingWarnings } from './check-identity';
import { windowShortfall } from './check-policy';
import { readingsOf, type Reading } from './check-readings';
import { readDecimal } from './decimal';
import { parsePointer } from './pointer';
import { DELIVERY_DEFAULTS } from './schema';
import { startsWithWildcard, validateFilter } from './topic-filter';
import { entryOf, nodeAt, offsetOf, pathText, type YamlNode, type YamlPath } from './yaml-tree';

export interface RuleFindings {
  readonly faults: readonly ContractFault[];
  /** What is allowed and worth a second look. */
  readonly warnings: readonly ContractFault[];
}

export function checkRules(root: YamlNode): RuleFindings {
  const readings = readingsOf(root);
  const filters = filtersOf(root);
  return {
    faults: [
      ...identityFaults(root, readings),
      ...windowFaults(root),
      ...repeatedFilterFaults(filters),
      ...topicLevelFaults(readings, filters),
      ...envelopeFaults(root, readings),
      ...incidentFaults(root, readings),
      ...ignoreFaults(root, readings),
      ...amountFaults(root, readings),
    ],
    warnings: [
      ...filterWarnings(filters),
      ...topicLevelWarnings(readings, filters),
      ...pointerWarnings(readings),
      ...orderingWarnings(root),
      ...effectWarnings(root),
    ],
  };
}

interface PlacedFilter {
  readonly filter: string;
  readonly path: YamlPath;
  readonly offset: number;
}

/** The filters that are well-formed. */
function filtersOf(root: YamlNode): readonly PlacedFilter[] {
  const topics = nodeAt(root, ['topics']);
  if (topics?.kind !== 'seq') return [];
  return topics.items.flatMap((item, index) =>
    item.kind === 'scalar' && typeof item.value === 'string' && validateFilter(item.value) === null
      ? [{ filter: item.value, path: ['topics', index], offset: item.offset }]
      : [],
  );
}

function windowFaults(root: YamlNode): ContractFault[] {
  const path = ['dedup', 'windowSeconds'];
  const windowSeconds = secondsAt(root, path, undefined);
  const defaults = DELIVERY_DEFAULTS;
  const sessionExpirySeconds = secondsAt(root, ['delivery', 'sessionExpirySeconds'], defaults.sessionExpirySeconds);
  const maxReplayDelaySeconds = secondsAt(root, ['delivery', 'maxReplayDelaySeconds'], defaults.maxReplayDelaySeconds);
  if (windowSeconds === null || sessionExpirySeconds === null || maxReplayDelaySeconds === null) return [];
  const message = windowShortfall({ windowSeconds }, { sessionExpirySeconds, maxReplayDelaySeconds });
  return message === null ? [] : [{ offset: offsetOf(root, path), path, message }];
}

function secondsAt(root: YamlNode, path: YamlPath, absent: number | undefined): number | null {
  const node = nodeAt(root, path);
  if (node === null) return absent ?? null;
  return node.kind === 'scalar' && typeof node.value === 'number' ? node.value : null;
}

function repeatedFilterFaults(filters: readonly PlacedFilter[]): ContractFault[] {
  return filters
    .filter(({ filter }, index) => filters.findIndex((other) => other.filter === filter) < index)
    .map(({ filter, path, offset }) => ({ path, offset, message: `the filter "${filter}" is listed already` }));
}

function hasLevel(filter: string, level: number): boolean {
  return filter.endsWith('#') || filter.split('/').length > level;
}

function topicLevelFaults(readings: readonly Reading[], filters: readonly PlacedFilter[]): ContractFault[] {
  if (filters.length === 0) return [];
  return readings.flatMap((reading) =>
    reading.kind === 'topicLevel' && !filters.some(({ filter }) => hasLevel(filter, reading.level))
      ? [fault(reading, `no topic of this contract has a level ${reading.level}: levels count from 0`)]
      : [],
  );
}

function topicLevelWarnings(readings: readonly Reading[], filters: readonly PlacedFilter[]): ContractFault[] {
  return readings.flatMap((reading) => {
    if (reading.kind !== 'topicLevel' || !filters.some(({ filter }) => hasLevel(filter, reading.level))) return [];
    const short = filters.find(({ filter }) => !hasLevel(filter, reading.level));
    return short === undefined ? [] : [fault(reading, `topics of "${short.filter}" have no level ${reading.level}`)];
  });
}

function envelopeFaults(root: YamlNode, readings: readonly Reading[]): ContractFault[] {
  if (entryOf(root, 'items') !== null) return [];
  return readings.flatMap((reading) =>
    reading.kind === 'envelope'
      ? [fault(reading, 'envelope is for deliveries with items; this contract has none: write pointer')]
      : [],
  );
}

function incidentFaults(root: YamlNode, readings: readonly Reading[]): ContractFault[] {
  if (entryOf(root, 'incident') !== null) return [];
  const faults = readings.flatMap((reading) =>
    reading.kind === 'incident'
      ? [fault(reading, '{incident} is used, but the contract does not say where incident is read')]
      : [],
  );
  const effects = entryOf(root, 'effects');
  if (effects?.value.kind === 'seq' && effects.value.items.length > 0) {
    const message = 'effects change incidents, but the contract does not say where incident is read';
    faults.push({ path: ['effects'], offset: effects.keyOffset, message });
  }
  return faults;
}

/** Two messages that differ in what is read must never have the same digest. */
function ignoreFaults(root: YamlNode, readings: readonly Reading[]): ContractFault[] {
  const ignore = nodeAt(root, ['digest', 'ignore']);
  if (ignore?.kind !== 'seq') return [];
  return ignore.items.flatMap((item, index) => {
    if (item.kind !== 'scalar' || typeof item.value !== 'string') return [];
    const at = { path: ['digest', 'ignore', index], offset: item.offset };
    const ignored = item.value;
    if (ignored === '')
      return [{ ...at, message: 'the whole message cannot be ignored; to trust the key alone write digest: off' }];
    const read = readings.find((r) => r.kind === 'pointer' && r.by !== 'occurredAt' && touch(ignored, r.pointer));
    if (read?.kind !== 'pointer') return [];
    const same = read.pointer === ignored ? 'it' : `"${read.pointer}"`;
    return [{ ...at, message: `"${ignored}" cannot be ignored: ${pathText(read.path)} reads ${same}` }];
  });
}

/** Whether one pointer is equal to, above or below the other. */
function touch(a: string, b: string): boolean {
  const [left, right] = [parsePointer(a), parsePointer(b)];
  if (left === null || right === null) return false;
  const shorter = left.length < right.length ? left : right;
  return shorter.every((_, i) => left[i] === right[i]);
}

/** A constant amount that is no number would fail every message. */
function amountFaults(root: YamlNode, readings: readonly Reading[]): ContractFault[] {
  return readings.flatMap((reading) => {
    if (reading.kind !== 'const' || reading.by !== 'effects') return [];
    const operation = nodeAt(root, [...reading.path.slice(0, 2), 'do']);
    const name = operation?.kind === 'scalar' ? operation.value : null;
    if (name !== 'increment' && name !== 'advance') return [];
    return readDecimal(reading.text).ok
      ? []
      : [fault(reading, `${name} needs a decimal number with at most 38 digits on either side of the point`)];
  });
}

function filterWarnings(filters: readonly PlacedFilter[]): ContractFault[] {
  return filters
    .filter(({ filter }) => startsWithWildcard(filter))
    .map(({ filter, path, offset }) => ({
      path,
      offset,
      message: `the filter "${filter}" starts with a wildcard: it takes messages of every domain on the broker`,
    }));
}

const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Safe, because only own members resolve; but hardly what anyone means. */
function pointerWarnings(readings: readonly Reading[]): ContractFault[] {
  return readings.flatMap((reading) => {
    if (reading.kind !== 'pointer' && reading.kind !== 'envelope') return [];
    const name = parsePointer(reading.pointer)?.find((token) => PROTOTYPE_NAMES.has(token));
    return name === undefined
      ? []
      : [fault(reading, `"${name}" is read only where a message really has a member of that name`)];
  });
}

function effectWarnings(root: YamlNode): ContractFault[] {
  const effects = entryOf(root, 'effects');
  const forward = entryOf(root, 'forward');
  const off = effects?.value.kind === 'scalar' && effects.value.value === 'off';
  if (off && forward !== null) {
    return [{ path: ['forward'], offset: forward.keyOffset, message: 'nothing is forwarded while effects are off' }];
  }
  const none = effects === null || (effects.value.kind === 'seq' && effects.value.items.length === 0);
  if (!none || forward !== null) return [];
  const message =
    'no effects and no forward: messages are decided and recorded, and change nothing; effects: off says so';
  return [{ path: ['effects'], offset: effects?.keyOffset ?? root.offset, message }];
}

function fault(reading: Reading, message: string): ContractFault {
  return { path: reading.path, offset: reading.offset, message };
}
