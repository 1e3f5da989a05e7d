/**
 * A YAML document as plain data with positions: what the rest of the loader looks at. Pure.
 */

export interface YamlScalar {
  readonly kind: 'scalar';
  /** As the YAML 1.2 core schema reads it. */
  readonly value: string | number | boolean | null;
  /** As it stands in the file, without quotes; numbers are exact only here. */
  readonly text: string;
  /** Start of the node in UTF-16 units of the source, as in every node. */
  readonly offset: number;
  /** Stands in for a value that was refused, and reported, as a whole: nothing more is to be said about it. */
  readonly isStandIn?: true;
}

export interface YamlSeq {
  readonly kind: 'seq';
  readonly items: readonly YamlNode[];
  readonly offset: number;
}

export interface YamlEntry {
  readonly key: string;
  readonly keyOffset: number;
  readonly value: YamlNode;
}

export interface YamlMap {
  readonly kind: 'map';
  /** By key, in the order of the file. Repeated keys, also under NFC, were reported and left out. */
  readonly entries: ReadonlyMap<string, YamlEntry>;
  readonly offset: number;
}

export type YamlNode = YamlScalar | YamlSeq | YamlMap;

/** Keys of maps, indices of sequences, from the root. */
export type YamlPath = ReadonlyArray<string | number>;

/** The value of a node. Objects have no prototype. */
export function toValue(node: YamlNode): unknown {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'seq':
      return node.items.map(toValue);
    case 'map': {
      const object: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
      for (const { key, value } of node.entries.values()) object[key] = toValue(value);
      return object;
    }
  }
}

export function entryOf(node: YamlNode | null, key: string): YamlEntry | null {
  return node?.kind === 'map' ? (node.entries.get(key) ?? null) : null;
}

/** The node at a path, or null. */
export function nodeAt(root: YamlNode | null, path: YamlPath): YamlNode | null {
  let node = root;
  for (const step of path) {
    node =
      typeof step === 'number'
        ? node?.kind === 'seq'
          ? (node.items[step] ?? null)
          : null
        : (entryOf(node, step)?.value ?? null);
  }
  return node;
}

/**
 * Where an error at `path` is best shown: the value itself, or, if it is absent, the key of the innermost map that
 * should have it (its start, where it has no key).
 */
export function offsetOf(root: YamlNode, path: YamlPath): number {
  let node: YamlNode = root;
  let shown = root.offset;
  for (const step of path) {
    const entry = typeof step === 'string' ? entryOf(node, step) : null;
    const next = entry?.value ?? (typeof step === 'number' && node.kind === 'seq' ? node.items[step] : undefined);
    if (next === undefined) return shown;
    shown = entry?.keyOffset ?? next.offset;
    node = next;
  }
  return node.offset;
}

/** Where the key at the end of `path` stands, else where its map does. */
export function keyOffsetOf(root: YamlNode, path: YamlPath): number {
  const key = path[path.length - 1];
  const entry = typeof key === 'string' ? entryOf(nodeAt(root, path.slice(0, -1)), key) : null;
  return entry?.keyOffset ?? offsetOf(root, path);
}

/** A path as people write it: `effects[0].when./type`, or `(the contract)` for the root. */
export function pathText(path: YamlPath): string {
  const text = path.reduce<string>((t, step) => (typeof step === 'number' ? `${t}[${step}]` : `${t}.${step}`), '');
  return text.startsWith('.') ? text.slice(1) : text;
}
