/** Scalars that lose nothing on their way through JSON. */
import { GraphQLError, GraphQLScalarType, Kind } from 'graphql';
import type { ValueNode } from 'graphql';
import { utcTime } from '../contract/time';
import { microsOf, timeOf } from './model/time';

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;
const INTEGER = /^-?(?:0|[1-9]\d{0,18})$/;

/** Always a string in answers: a client's JSON parser would round a large number without saying so. */
export const BigIntScalar = new GraphQLScalarType<bigint, string>({
  name: 'BigInt',
  description:
    'A 64-bit integer. Answered as a string of decimal digits, so that no JSON parser rounds it; ' +
    'accepted as such a string or as an integer.',
  serialize: (value) => {
    if (typeof value === 'bigint') return value.toString();
    if (typeof value === 'number' && Number.isSafeInteger(value)) return value.toString();
    throw new GraphQLError('BigInt cannot represent this value');
  },
  parseValue: (value) => {
    // A number beyond 2^53 was rounded before it came here.
    if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
    if (typeof value === 'string') return bigintOf(value);
    throw new GraphQLError('BigInt must be an integer, or a string of its digits');
  },
  parseLiteral: (node: ValueNode) => {
    if (node.kind === Kind.INT || node.kind === Kind.STRING) return bigintOf(node.value);
    throw new GraphQLError('BigInt must be an integer, or a string of its digits', { nodes: node });
  },
});

/** Inside: microseconds since 1970 as a bigint. A JavaScript Date would cut them to milliseconds. */
export const DateTimeScalar = new GraphQLScalarType<bigint, string>({
  name: 'DateTime',
  description:
    'A time as in RFC 3339. Answered in UTC with exactly six fractional digits, e.g. `2026-08-29T06:10:00.061789Z`; ' +
    'accepted with any offset and up to six fractional digits.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => {
    if (typeof value === 'bigint') return timeOf(value);
    throw new GraphQLError('DateTime cannot represent this value');
  },
  parseValue: (value) => microsOfText(value),
  parseLiteral: (node: ValueNode) => microsOfText(node.kind === Kind.STRING ? node.value : null),
});

export const JsonScalar = new GraphQLScalarType<unknown, unknown>({
  name: 'JSON',
  description:
    'Any JSON value. A number that a double cannot hold exactly is given as a string of its digits, so that nothing is ' +
    'rounded on the way.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc8259',
  serialize: (value) => value,
  parseValue: () => {
    throw new GraphQLError('JSON is not accepted as input');
  },
  parseLiteral: () => {
    throw new GraphQLError('JSON is not accepted as input');
  },
});

function bigintOf(text: string): bigint {
  if (!INTEGER.test(text)) throw new GraphQLError('BigInt must be an integer, or a string of its digits');
  const value = BigInt(text);
  if (value < MIN_INT64 || value > MAX_INT64) throw new GraphQLError('BigInt must fit into 64 bits');
  return value;
}

const TOO_FINE = /\.\d{7}/;

function microsOfText(value: unknown): bigint {
  const utc = typeof value === 'string' && !TOO_FINE.test(value) ? utcTime(value) : null;
  if (utc === null) throw new GraphQLError('DateTime must be an RFC 3339 time with at most six fractional digits');
  return microsOf(utc);
}
