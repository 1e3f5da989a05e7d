/**
 * The grammar of a feed contract (design section 7): the one definition that validates files and that the JSON Schema
 * for editors is emitted from. Pure.
 *
 * Only what one field says by itself is here; rules between fields are in `check-rules.ts`. Messages name what a field
 * must be, and `check-shape.ts` adds what was found instead.
 */
import { z } from 'zod';
import { fieldFault, forwardTopicFault } from './check-template';
import {
  ALTERNATIVES,
  keyed,
  list,
  MAX_PART_BYTES,
  oneOf,
  ORIGIN,
  origin,
  origins,
  pointer,
  ruled,
  source,
  text,
  wholeNumber,
} from './schema-values';
import { validateFilter } from './topic-filter';

export const MAX_WINDOW_SECONDS = 31_536_000;
export const MAX_WINDOW_ENTRIES = 10_000_000;
/** Every former version is read by with every message, so there is a bound; nobody comes near it. */
export const MAX_IDENTITY_VERSION = 1000;
/** Of a contract that says nothing about its broker: seconds. */
export const DELIVERY_DEFAULTS = { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 } as const;

const epochOrder = oneOf(['opaque', 'numeric']).describe(
  'opaque: epochs are ranked by their first applied message. numeric: they are whole numbers, ranked by value.',
);

const epoch = z
  .union(
    [
      keyed({ ...origins, value: source.optional(), order: epochOrder.optional() }, ORIGIN).refine(
        ({ order: _, ...rest }) => Object.keys(rest).length === 1,
        { error: 'must have exactly one of const, pointer, envelope, topicLevel, userProperty, value' },
      ),
      list(origin, 1, 8, ALTERNATIVES),
    ],
    { error: `must be ${ORIGIN}, with an optional order, or { value: [alternatives], order: … }` },
  )
  .describe('Boot session or restart counter of a source: its sequence starts again in each. Part of the identity.');

const eventId = z
  .union([origin, list(source, 1, 8, 'a list of 1 to 8 parts')], {
    error: `must be ${ORIGIN}, or a list of 1 to 8 parts`,
  })
  .describe(
    'The business id of an event. A list has the parts of one id, all of them needed, such as an alert id and the ' +
      'time it was sent; a part can itself be a list of alternatives.',
  );

const identity = keyed(
  {
    version: wholeNumber('a whole number', 1, MAX_IDENTITY_VERSION)
      .default(1)
      .describe('Version of the identity. Raise it to change identity, items or digest of a feed that has entries.'),
    mode: oneOf(['sequence', 'eventId'])
      .default('sequence')
      .describe('sequence: producers number their messages. eventId: every event has an id, and there is no order.'),
    agency: source.describe('Who runs the producer.'),
    source: source.describe('Who counts the sequence or gives the ids: an engine, a gateway, a dispatch desk.'),
    epoch: epoch.optional(),
    sequence: source.optional().describe('The number that the source gave: whole, not negative, of up to 38 digits.'),
    eventId: eventId.optional(),
  },
  'the rules of identity: agency, source, and sequence or eventId',
).meta({
  description: 'What makes two messages the same event. Only what the producer writes may be read here.',
  if: { properties: { mode: { const: 'eventId' } }, required: ['mode'] },
  then: { required: ['eventId'], properties: { sequence: false, epoch: false } },
  else: { required: ['sequence'], properties: { eventId: false } },
});

const DIGEST = 'off, or { ignore: [up to 100 pointers] }';

const ignored = list(pointer, 0, 100, 'a list of up to 100 pointers').describe(
  'Members of the message that do not count. None may be equal to, above or below one that the contract reads.',
);

const digest = z
  .union([z.literal('off'), keyed({ ignore: ignored }, DIGEST)], {
    error: `must be ${DIGEST}`,
  })
  .describe(
    'The payload digest tells a replay from a reused number. ignore: members that a resend changes, such as a retry ' +
      'count. off: trust the key alone, for producers that rewrite the payload of a resend.',
  );

const JUMP = { error: 'must be a whole number above 0 of up to 38 digits' };

/** What a contract says under `dedup`; a policy that is set through the API has the same bounds. */
export const dedup = keyed(
  {
    windowSeconds: wholeNumber('a whole number of seconds', 1, MAX_WINDOW_SECONDS).describe(
      'How long decided keys are kept at hand. Must exceed sessionExpirySeconds + maxReplayDelaySeconds.',
    ),
    maxEntries: wholeNumber('a whole number of entries', 1, MAX_WINDOW_ENTRIES).describe(
      'How many decided keys are kept at hand.',
    ),
    ordering: oneOf(['strict', 'tolerant'])
      .optional()
      .describe(
        'strict (default): what comes below the high-water mark for the first time is held for a person. tolerant: it ' +
          'is applied and marked late. Feeds in eventId mode have no order and are always tolerant.',
      ),
    contiguous: z
      .boolean({ error: 'must be true or false' })
      .refine((value) => !value, { error: 'gaps (contiguous: true) are not supported yet' })
      .default(false)
      .describe('Whether producers leave no number out, so that a missing one is a gap.'),
    maxSequenceJump: z
      .union([z.int(JUMP).min(1, JUMP), z.string().regex(/^[1-9][0-9]{0,37}$/, JUMP)], JUMP)
      .optional()
      .describe('A sequence that jumps further than this is held, so that one absurd number cannot block a source.'),
  },
  'the dedup policy: windowSeconds and maxEntries',
).describe(
  'The dedup policy. An administrator can change it at run time; every entry names the version it was made under.',
);

const policy = keyed(
  {
    managedBy: oneOf(['contract', 'api'])
      .default('api')
      .describe(
        'api (default): an administrator can change the policy at run time, and a file that is applied again does not ' +
          'undo that. contract: the policy is changed in this file alone.',
      ),
  },
  'a mapping with managedBy',
)
  .prefault({})
  .describe('Where the dedup policy is changed.');

const delivery = keyed(
  {
    sessionExpirySeconds: wholeNumber('a whole number of seconds', 1, MAX_WINDOW_SECONDS)
      .default(DELIVERY_DEFAULTS.sessionExpirySeconds)
      .describe('How long the broker keeps our session, and with it unacknowledged messages, while we are away.'),
    maxReplayDelaySeconds: wholeNumber('a whole number of seconds', 0, MAX_WINDOW_SECONDS)
      .default(DELIVERY_DEFAULTS.maxReplayDelaySeconds)
      .describe('How late a failover, a bridge or a producer may bring a message again.'),
  },
  'a mapping of sessionExpirySeconds and maxReplayDelaySeconds',
)
  .prefault({})
  .describe('What the broker and the producers can do to us.');

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()], {
  error: 'must be a text, a number, true, false or null',
});

const when = z
  .record(pointer, scalar, { error: 'must be a mapping of JSON pointers to values, such as { /type: casualty }' })
  .default({})
  .describe('JSON pointers and the values that must be there, all of them; none: every message matches.');

const field = ruled(text('a field of the incident, such as casualties', MAX_PART_BYTES), fieldFault).describe(
  'The field of the incident. A template: {/pointer}, {topic}, {topic[n]}, {agency}, {source}, {incident}.',
);

const effectRule = z.discriminatedUnion(
  'do',
  [
    keyed(
      { do: z.literal('increment'), when, field, by: source.describe('The decimal number to add.') },
      'an effect',
    ).describe('Adds an exact decimal to a field. Commutes: late messages add up the same.'),
    keyed({ do: z.literal('set'), when, field, to: source.describe('The value to write.') }, 'an effect').describe(
      'Writes a field.',
    ),
    keyed({ do: z.literal('append'), when, field, value: source.describe('The value to add.') }, 'an effect').describe(
      'Adds a value to a set.',
    ),
    keyed(
      { do: z.literal('advance'), when, field, to: source.describe('The number to advance to.') },
      'an effect',
    ).describe('Keeps the larger number.'),
  ],
  {
    error: (issue) =>
      issue.code === 'invalid_union'
        ? 'must be one of increment, set, append, advance'
        : 'must be an effect, such as { do: set, field: status, to: { pointer: /status } }',
  },
);

const effects = z
  .union([z.literal('off'), list(effectRule, 0, 200, 'a list of up to 200 effects')], {
    error: 'must be off, or a list of effects',
  })
  .default([])
  .describe(
    'What an applied message changes in its incident: all rules that match, in order. off: decide and record only, to ' +
      'try a feed out. Absent: no rules.',
  );

const filter = ruled(z.string({ error: 'must be a topic filter, as a text' }), validateFilter);

export const contractSchema = keyed(
  {
    apiVersion: z
      .literal('replay-ledger/v1', { error: 'must be replay-ledger/v1, the only version that this program reads' })
      .describe('Version of this format.'),
    feed: z
      .string({ error: 'must be 1 to 64 characters of a-z, 0-9 and -' })
      .regex(/^[a-z0-9-]{1,64}$/, { error: 'must be 1 to 64 characters of a-z, 0-9 and -' })
      .describe('Name of the feed, unique among all contracts. Its ledger goes by this name.'),
    description: text('a text of up to 2000 characters', 2000).default('').describe('What the feed is, for people.'),
    owner: text('a text of up to 200 characters', 200).default('').describe('Who answers for the feed.'),
    topics: list(filter, 1, 64, 'a list of 1 to 64 MQTT topic filters').describe(
      'MQTT topic filters of the feed. No message may match two contracts.',
    ),
    brokers: z
      .array(text('the name of a broker', 64), { error: 'must be a list of names of brokers' })
      .refine((names) => names.length === 1 && names[0] === 'default', {
        error: 'brokers other than the one called default are not supported yet: leave it out, or write [default]',
      })
      .default(['default'])
      .describe('Names of the brokers that carry the feed.'),
    decode: oneOf(['json']).default('json').describe('How a payload is read.'),
    items: pointer.optional().describe('Where a delivery carries an array of messages: the JSON pointer of the array.'),
    identity,
    incident: source.optional().describe('The id of the incident that a message is about.'),
    occurredAt: source.optional().describe('When it happened according to the producer: an RFC 3339 time.'),
    digest: digest.optional(),
    consume: oneOf(['owned', 'shared'])
      .refine((value) => value === 'owned', { error: 'shared subscriptions (consume: shared) are not supported yet' })
      .default('owned')
      .describe('owned: one instance at a time consumes the feed, in order.'),
    dedup,
    policy,
    delivery,
    effects,
    forward: keyed(
      {
        topic: ruled(text('a topic, such as cop/incidents/{incident}', MAX_PART_BYTES), forwardTopicFault).describe(
          'Where applied messages are published. A template, as in field.',
        ),
      },
      'a mapping with a topic',
    )
      .optional()
      .describe('Publishes the deduplicated feed. No contract may consume it.'),
  },
  'a feed contract: a mapping that starts with apiVersion: replay-ledger/v1',
).meta({ title: 'Replay Ledger feed contract', description: 'What a feed is and how its messages are deduplicated.' });

/** A contract as written in a file, valid field by field. */
export type ContractInput = z.output<typeof contractSchema>;

/** The JSON Schema (draft 2020-12) of a contract, as the text of `schema/feed-contract.schema.json`. */
export function contractJsonSchema(): string {
  const schema = z.toJSONSchema(contractSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      // Zod's bounds of an integer without bounds of its own; `maxSequenceJump` goes beyond them.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return `${JSON.stringify(schema, null, 2)}\n`;
}
