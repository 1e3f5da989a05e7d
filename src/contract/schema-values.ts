/**
 * The pieces that the grammar of a contract is made of: fields that know what they must be, and where values are read
 * (design section 7, "Values"). Pure.
 */
import { z } from 'zod';
import { parsePointer } from './pointer';

/** Identity parts, and the field paths of an incident, in UTF-8 (design section 4). */
export const MAX_PART_BYTES = 512;

/** An object that knows its keys. For unknown ones the message is the list of the known, which the mapper suggests from. */
export function keyed<S extends z.ZodRawShape>(shape: S, expected: string) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : `must be ${expected}`),
  });
}

/** A text of 1 to `maxLength` UTF-16 units. `expected` completes “must be …”, here and below. */
export function text(expected: string, maxLength: number) {
  const error = `must be ${expected}`;
  return z.string({ error }).min(1, { error }).max(maxLength, { error });
}

/** An integer within both bounds. How it is written (no exponent, no fraction) is for `check-shape.ts`. */
export function wholeNumber(what: string, min: number, max: number) {
  const error = `must be ${what} from ${min} to ${max}, written in digits`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function list<T extends z.ZodType>(item: T, min: number, max: number, expected: string) {
  const error = `must be ${expected}`;
  return z.array(item, { error }).min(min, { error }).max(max, { error });
}

export function oneOf<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, { error: `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}` });
}

/** A string with a rule of its own: `fault` answers what is wrong, or null. */
export function ruled(schema: z.ZodString, fault: (value: string) => string | null) {
  return schema.superRefine((value, context) => {
    const message = fault(value);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });
}

export const pointer = ruled(z.string({ error: 'must be a JSON pointer, such as /payload/unit' }), (value) =>
  parsePointer(value) === null
    ? 'is no JSON pointer (RFC 6901): it is empty or starts with "/", and "~" is written ~0, "/" in a name ~1'
    : null,
).meta({ id: 'Pointer', format: 'json-pointer', examples: ['/payload/unit'] });

/** The keys of an origin; exactly one of them is there. */
export const origins = {
  const: z
    .string({ error: 'must be a text' })
    .optional()
    .describe('This very text. Quote what YAML would read as a number, true, false or null.'),
  pointer: pointer.optional().describe('A JSON pointer (RFC 6901) into the message; with `items`, into one item.'),
  envelope: pointer.optional().describe('A JSON pointer into the whole payload of a delivery with `items`.'),
  topicLevel: wholeNumber('a level of the topic', 0, 127)
    .optional()
    .describe("A level of the message's topic, counted from 0: of a/b/c, level 2 is c."),
  userProperty: text('the name of an MQTT 5 user property', 256)
    .optional()
    .describe('An MQTT 5 user property of the delivery, by name.'),
};

export const ORIGIN = 'a value, such as { pointer: /id }, { topicLevel: 2 } or { const: "text" }';

export const ALTERNATIVES = 'a list of 1 to 8 alternatives';

export const origin = keyed(origins, ORIGIN)
  .refine((value) => Object.keys(value).length === 1, {
    error: 'must have exactly one of const, pointer, envelope, topicLevel, userProperty',
  })
  .meta({ id: 'Origin', description: 'Where one value is read.', minProperties: 1, maxProperties: 1 });

export const source = z
  .union([origin, list(origin, 1, 8, ALTERNATIVES)], { error: `must be ${ORIGIN}, or ${ALTERNATIVES}` })
  .meta({
    id: 'Source',
    description: 'Where a value is read, or alternatives in order: the first that is present counts.',
  });

export type OriginInput = z.output<typeof origin>;
export type SourceInput = z.output<typeof source>;
