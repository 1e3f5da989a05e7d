/** Enums of the schema. Values are the words of design sections 3 and 7. */
import { registerEnumType } from 'type-graphql';

export const Outcome = {
  IGNORED: 'IGNORED',
  MALFORMED_REJECTED: 'MALFORMED_REJECTED',
  DUPLICATE_SUPPRESSED: 'DUPLICATE_SUPPRESSED',
  KEY_CONFLICT: 'KEY_CONFLICT',
  STALE_OUT_OF_ORDER: 'STALE_OUT_OF_ORDER',
  EFFECT_FAILED: 'EFFECT_FAILED',
  APPLIED: 'APPLIED',
  RELEASED: 'RELEASED',
  DISMISSED: 'DISMISSED',
} as const;

export const Tier = { WINDOW: 'WINDOW', LEDGER: 'LEDGER', HIGH_WATER_MARK: 'HIGH_WATER_MARK', NONE: 'NONE' } as const;

export const Ordering = { STRICT: 'strict', TOLERANT: 'tolerant' } as const;

export const PolicyOrigin = { CONTRACT: 'CONTRACT', API: 'API' } as const;

/** Before a schema is built: enums have no decorator that would do it. */
export function registerEnums(): void {
  registerEnumType(Outcome, {
    name: 'Outcome',
    description: 'What was decided about a message, or about a held entry by a person.',
    valuesConfig: {
      IGNORED: { description: 'There was nothing to apply: an empty payload or an empty batch. Not held.' },
      MALFORMED_REJECTED: { description: 'It cannot be decoded or keyed exactly. Held, with the bytes as they came.' },
      DUPLICATE_SUPPRESSED: {
        description: 'Proven duplicate: this key and this payload were decided before, by the entry in `original`.',
      },
      KEY_CONFLICT: { description: 'The key was decided before with another payload. Held.' },
      STALE_OUT_OF_ORDER: {
        description: 'At or below the high-water mark of its source, or of an epoch that was left. Held.',
      },
      EFFECT_FAILED: { description: 'Its effect is impossible, by its data. Held.' },
      APPLIED: { description: 'It took its key, and its effects happened, in the same transaction.' },
      RELEASED: { description: 'A person let the held entry in `resolves` take effect.' },
      DISMISSED: { description: 'A person decided that the held entry in `resolves` must not take effect.' },
    },
  });
  registerEnumType(Tier, {
    name: 'Tier',
    description: 'Which line of defence a duplicate needed; computed from ledger and policy, never from a cache.',
    valuesConfig: {
      WINDOW: { description: 'The original lies within the seconds and the entries of the policy.' },
      LEDGER: {
        description: 'Older than the window: only the ledger remembered. Many of these: the window is too small.',
      },
      HIGH_WATER_MARK: { description: 'At or below the highest applied sequence of its source.' },
      NONE: { description: 'It was no duplicate.' },
    },
  });
  registerEnumType(Ordering, {
    name: 'Ordering',
    description: 'What happens to a new message below the high-water mark.',
    valuesConfig: {
      STRICT: { description: 'It is held as STALE_OUT_OF_ORDER.' },
      TOLERANT: { description: 'It is applied, with `late: true`.' },
    },
  });
  registerEnumType(PolicyOrigin, {
    name: 'PolicyOrigin',
    description: 'Where a version of the policy came from.',
    valuesConfig: {
      CONTRACT: { description: 'The contract file.' },
      API: { description: 'An administrator, through the API.' },
    },
  });
}
