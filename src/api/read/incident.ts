/** An incident as it is read: each part once, and only when it is asked for. */
import { parsePointer } from '../../contract/pointer';
import type { PrismaClient } from '../../generated/prisma/client';
import { ApiError } from '../errors';
import type { FieldRecord, OutcomeGroup } from '../model/records';
import { incident, incidentBytes, incidentFields, incidentGroups, incidentMembers } from '../statements/facts';
import type { Viewer } from '../viewer';
import type { Loaders } from './loaders';
import { jsonOfText } from './payloads';
import { outcomeGroup } from './rows';
import type { GroupRow } from './rows';

/** What one answer may hold of an incident; as for payloads, the process has others to serve. */
const MAX_STATE_BYTES = 16 * 1024 * 1024;

export class IncidentRecord {
  private readFields: Promise<FieldRecord[]> | null = null;
  private readGroups: Promise<OutcomeGroup[]> | null = null;

  private constructor(
    readonly id: string,
    private readonly prisma: PrismaClient,
    private readonly viewer: Viewer,
    private readonly feedIds: readonly number[],
  ) {}

  /** null: nothing is known of it, as far as this viewer may see. */
  static async find(
    prisma: PrismaClient,
    viewer: Viewer,
    loaders: Loaders,
    id: string,
  ): Promise<IncidentRecord | null> {
    const feedIds = [...(await loaders.feeds()).keys()];
    const [row] = await prisma.$queryRaw<{ known: boolean }[]>(incident(viewer, id, feedIds));
    return row?.known === true ? new IncidentRecord(id, prisma, viewer, feedIds) : null;
  }

  /** In byte order of their paths. */
  fields(): Promise<FieldRecord[]> {
    return (this.readFields ??= this.loadFields());
  }

  /** Entries by feed, source and outcome. */
  groups(): Promise<OutcomeGroup[]> {
    return (this.readGroups ??= this.loadGroups());
  }

  private async loadFields(): Promise<FieldRecord[]> {
    const [size] = await this.prisma.$queryRaw<{ bytes: string }[]>(incidentBytes(this.id));
    if (Number(size?.bytes ?? 0) > MAX_STATE_BYTES) {
      throw new ApiError(
        'RESPONSE_TOO_LARGE',
        `the fields of this incident exceed ${MAX_STATE_BYTES} bytes; its decisions can be read page by page`,
      );
    }
    type FieldRow = Omit<FieldRecord, 'position' | 'members'> & { readonly position: string };
    const [rows, members] = await Promise.all([
      this.prisma.$queryRaw<FieldRow[]>(incidentFields(this.id)),
      this.prisma.$queryRaw<{ path: string; value: string }[]>(incidentMembers(this.id)),
    ]);
    const sets = new Map<string, string[]>();
    for (const { path, value } of members) {
      const set = sets.get(path);
      if (set === undefined) sets.set(path, [value]);
      else set.push(value);
    }
    return rows.map((row) => ({ ...row, position: BigInt(row.position), members: (sets.get(row.path) ?? []).sort() }));
  }

  private async loadGroups(): Promise<OutcomeGroup[]> {
    const rows = await this.prisma.$queryRaw<GroupRow[]>(incidentGroups(this.viewer, this.id, this.feedIds));
    return rows.map(outcomeGroup);
  }
}

/** The value of a field for the `JSON` scalar. */
export function valueOf(field: FieldRecord): unknown {
  return field.value === null ? field.members.map(jsonOfText) : jsonOfText(field.value);
}

type Tree = Map<string, Tree | { readonly value: unknown }>;

/**
 * Fields as one object, nested at the slashes of their paths. A field that is a value and a parent of others keeps its
 * value under the empty name.
 */
export function stateOf(fields: readonly FieldRecord[]): unknown {
  const root: Tree = new Map();
  for (const field of fields) {
    // Placeholders are escaped when a path is made, but constants of a contract may hold any text.
    const names = parsePointer(`/${field.path}`) ?? field.path.split('/');
    let node = root;
    for (const name of names.slice(0, -1)) node = childOf(node, name);
    place(node, names[names.length - 1] ?? '', { value: valueOf(field) });
  }
  return plain(root);
}

function childOf(node: Tree, name: string): Tree {
  const known = node.get(name);
  if (known instanceof Map) return known;
  const child: Tree = new Map();
  if (known !== undefined) child.set('', known);
  node.set(name, child);
  return child;
}

function place(node: Tree, name: string, leaf: { readonly value: unknown }): void {
  const known = node.get(name);
  if (known instanceof Map) known.set('', leaf);
  else node.set(name, leaf);
}

function plain(node: Tree): unknown {
  const object = Object.create(null) as Record<string, unknown>;
  for (const [name, child] of node) object[name] = child instanceof Map ? plain(child) : child.value;
  return object;
}
