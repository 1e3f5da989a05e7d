/** Relay page arguments (design section 8: at most 200 a page). */
import { badInput } from '../errors';
import type { ApiLimits } from '../limits';

export interface PageInput {
  readonly first?: number | null;
  readonly after?: string | null;
  readonly last?: number | null;
  readonly before?: string | null;
}

export interface PageRequest {
  readonly direction: 'forward' | 'backward';
  readonly size: number;
  readonly after: string | null;
  readonly before: string | null;
}

/** @throws ApiError BAD_USER_INPUT */
export function readPage(input: PageInput, limits: ApiLimits): PageRequest {
  const { first, last } = input;
  if (isGiven(first) && isGiven(last)) throw badInput('first and last cannot be used together');
  const name = isGiven(last) ? 'last' : 'first';
  const size = last ?? first ?? limits.defaultPageSize;
  if (size < 1 || size > limits.maxPageSize) throw badInput(`${name} must be from 1 to ${limits.maxPageSize}`);
  return {
    direction: name === 'last' ? 'backward' : 'forward',
    size,
    after: input.after ?? null,
    before: input.before ?? null,
  };
}

function isGiven(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** A page of a Relay connection. */
export interface Page<T> {
  readonly edges: readonly { readonly node: T; readonly cursor: string }[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
}

/**
 * Cuts the one row too many that a page is read with, and puts rows in list order.
 *
 * What lies on the other side is known without another query: a cursor of this list stands at an entry of it.
 */
export function cutPage<T>(rows: readonly T[], { direction, size, after, before }: PageRequest) {
  const more = rows.length > size;
  const kept = rows.slice(0, size);
  return direction === 'forward'
    ? { rows: kept, hasNextPage: more, hasPreviousPage: after !== null }
    : { rows: kept.reverse(), hasNextPage: before !== null, hasPreviousPage: more };
}
