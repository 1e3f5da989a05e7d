/**
 * What the statements of the API share. All of them are read-only, take the viewer, and walk an index.
 *
 * What JavaScript would round (64-bit integers, numeric, microseconds) comes over as text.
 */
import { Prisma } from '../../generated/prisma/client';
import type { Viewer } from '../viewer';

export type Sql = Prisma.Sql;
const { sql, empty } = Prisma;

export const micros = (column: Sql): Sql => sql`to_micros(${column})::text`;
export const hex = (column: Sql): Sql => sql`encode(${column}, 'hex')`;

/** A condition on the agency of a row; nothing for a reader who sees all. */
export function agencyScope(viewer: Viewer, column: Sql): Sql {
  return viewer.agencies === null ? empty : sql`AND ${column} = ANY(${[...viewer.agencies]}::text[])`;
}
