/**
 * From the bytes of a file to a feed contract, or to everything that is wrong with it (design section 7). Pure.
 */
import { createHash } from 'node:crypto';
import {
  compareContractErrors,
  formatContractError,
  locate,
  type ContractError,
  type ContractFault,
} from './check-error';
import { checkRules } from './check-rules';
import { readShape } from './check-shape';
import type { ContractInput } from './schema';
import type { OriginInput, SourceInput } from './schema-values';
import type { EffectRule, FeedContract, IdentityRule, LoadedContract, ValueOrigin, ValueSource, When } from './types';
import { readYaml } from './yaml-document';
import { readSource, type SourceText } from './yaml-source';

export type ContractLoad =
  | { readonly ok: true; readonly loaded: LoadedContract }
  /** Sorted by position; one at least. */
  | { readonly ok: false; readonly errors: readonly ContractError[] };

/** A file that is wrong everywhere helps nobody with its five hundredth error. */
const MAX_ERRORS = 100;

/**
 * Loads one contract. Never throws, whatever the bytes.
 *
 * What the grammar leaves open is filled in: `description` and `owner` are empty, `brokers` is `[default]`, `decode`
 * is `json`, `identity.mode` is `sequence`, `digest` ignores nothing, `consume` is `owned`, `delivery` is 300 s and
 * 120 s, `policy.managedBy` is `api`, `ordering` is `strict` in sequence mode; in eventId mode it is always `tolerant`.
 * Absent `effects` are no rules.
 *
 * @param file name of the file, for messages alone
 */
export function loadContract(file: string, bytes: Uint8Array): ContractLoad {
  const reading = readSource(bytes);
  if (!reading.ok) return { ok: false, errors: [{ file, path: '', ...reading.error }] };
  const { source } = reading;

  const { root, faults: yamlFaults } = readYaml(source);
  const faults: ContractFault[] = yamlFaults.map((fault) => ({ ...fault, path: [] }));
  if (root === null) return refuse(file, source, faults);

  const shape = readShape(root);
  const rules = checkRules(root);
  faults.push(...shape.faults, ...rules.faults);
  if (shape.input === null || faults.length > 0) return refuse(file, source, faults);

  return {
    ok: true,
    loaded: {
      contract: toContract(shape.input),
      digest: createHash('sha256').update(bytes).digest('hex'),
      sourceText: source.text,
      file,
      warnings: located(file, source, rules.warnings).map(formatContractError),
    },
  };
}

function refuse(file: string, source: SourceText, faults: readonly ContractFault[]): ContractLoad {
  return { ok: false, errors: located(file, source, faults).slice(0, MAX_ERRORS) };
}

/** Sorted, and one about each value: the first that was found is the cause of the others. */
function located(file: string, source: SourceText, faults: readonly ContractFault[]): ContractError[] {
  const places = new Map<string, ContractFault>();
  for (const fault of faults) {
    const place = `${fault.offset} ${fault.path.join('\0')}`;
    if (!places.has(place)) places.set(place, fault);
  }
  return Array.from(places.values(), (fault) => locate(file, source, fault)).sort(compareContractErrors);
}

function toContract(input: ContractInput): FeedContract {
  const identity = toIdentity(input.identity);
  return {
    apiVersion: input.apiVersion,
    feed: input.feed,
    description: input.description,
    owner: input.owner,
    topics: input.topics,
    brokers: input.brokers,
    decode: input.decode,
    items: input.items ?? null,
    identity,
    incident: input.incident === undefined ? null : toSource(input.incident),
    occurredAt: input.occurredAt === undefined ? null : toSource(input.occurredAt),
    digest: input.digest ?? { ignore: [] },
    consume: 'owned',
    dedup: {
      windowSeconds: input.dedup.windowSeconds,
      maxEntries: input.dedup.maxEntries,
      // Line 5 of the decision never applies to a feed without order; one value, so that policies compare equal.
      ordering: identity.mode === 'eventId' ? 'tolerant' : (input.dedup.ordering ?? 'strict'),
      contiguous: input.dedup.contiguous,
      maxSequenceJump: input.dedup.maxSequenceJump === undefined ? null : String(input.dedup.maxSequenceJump),
    },
    policy: input.policy,
    delivery: input.delivery,
    effects: input.effects === 'off' ? 'off' : input.effects.map(toEffect),
    forward: input.forward ?? null,
  };
}

function toIdentity(input: ContractInput['identity']): IdentityRule {
  const shared = { version: input.version, agency: toSource(input.agency), source: toSource(input.source) };
  if (input.mode === 'eventId') {
    const parts = input.eventId === undefined ? [] : Array.isArray(input.eventId) ? input.eventId : [input.eventId];
    return { ...shared, mode: 'eventId', eventId: parts.map(toSource) };
  }
  return {
    ...shared,
    mode: 'sequence',
    epoch: input.epoch === undefined ? null : toEpoch(input.epoch),
    sequence: input.sequence === undefined ? [] : toSource(input.sequence),
  };
}

type Epoch = Extract<IdentityRule, { readonly mode: 'sequence' }>['epoch'];

function toEpoch(input: NonNullable<ContractInput['identity']['epoch']>): Epoch {
  if (Array.isArray(input)) return { value: toSource(input), order: 'opaque' };
  const { order = 'opaque', value, ...origin } = input;
  return { value: toSource(value ?? origin), order };
}

function toSource(input: SourceInput): ValueSource {
  return (Array.isArray(input) ? input : [input]).map(toOrigin);
}

/** The grammar lets exactly one of the keys through. */
function toOrigin(input: OriginInput): ValueOrigin {
  if (input.const !== undefined) return { const: input.const };
  if (input.pointer !== undefined) return { pointer: input.pointer };
  if (input.envelope !== undefined) return { envelope: input.envelope };
  if (input.topicLevel !== undefined) return { topicLevel: input.topicLevel };
  return { userProperty: input.userProperty ?? '' };
}

type EffectInput = Exclude<ContractInput['effects'], 'off'>[number];

function toEffect(input: EffectInput): EffectRule {
  const when: When = Object.entries(input.when).map(([pointer, equals]) => ({ pointer, equals }));
  const { field } = input;
  switch (input.do) {
    case 'increment':
      return { do: input.do, when, field, by: toSource(input.by) };
    case 'append':
      return { do: input.do, when, field, value: toSource(input.value) };
    case 'set':
    case 'advance':
      return { do: input.do, when, field, to: toSource(input.to) };
  }
}
