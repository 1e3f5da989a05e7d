/**
 * What putting a contract in force would change, field by field, and what each change does to the protection of the feed
 * (design section 7). Pure.
 *
 * A grade is `safe` only where it can be shown that nothing is lost, counted twice or let through; whatever cannot be
 * shown waits for a person.
 */
import { effectRuleChanges, outsideReadings } from './plan-effects';
import type { DedupPolicy, FeedContract, LoadedContract } from './types';

/** From the mildest. */
export const GRADES = ['safe', 'weakens_protection', 'changes_identity'] as const;
export type Grade = (typeof GRADES)[number];

export interface FieldChange {
  /** Path in the contract, e.g. `dedup.windowSeconds`. */
  readonly field: string;
  /** JSON text; null: it is not there. */
  readonly before: string | null;
  readonly after: string | null;
  readonly grade: Grade;
  /** What it does, for people. */
  readonly effect: string;
}

/** What is in force for a feed. */
export interface InForce {
  readonly contract: FeedContract;
  readonly digest: string;
  /** The file that the contract came from. */
  readonly file: string;
  /** May come from the API, so that the contract says something else. */
  readonly policy: DedupPolicy;
  /** Digests of all contracts that the feed ever had. */
  readonly history: ReadonlySet<string>;
  /** The last policy that came from a file. */
  readonly filePolicy: DedupPolicy;
}

export type FeedStatus = 'new' | 'changed' | 'unchanged' | 'without_file';

export interface FeedPlan {
  readonly feed: string;
  readonly file: string;
  readonly status: FeedStatus;
  /** What `contract apply` changes. Empty for a new feed. */
  readonly changes: readonly FieldChange[];
  /** What was changed through the API and stays: `before` is in force, `after` is in the file. */
  readonly drift: readonly FieldChange[];
  /** The file is an earlier contract of the feed: starting leaves the one in force, `contract apply` goes back. */
  readonly restores: boolean;
  /** Comments, order or spelling differ. Applied too, and no change. */
  readonly textDiffers: boolean;
}

/** @param inForce null where the feed is new */
export function planFeed(inForce: InForce | null, { contract, digest, file }: LoadedContract): FeedPlan {
  const common = { feed: contract.feed, file };
  const nothing = { changes: [], drift: [], restores: false, textDiffers: false };
  if (inForce === null) return { ...common, ...nothing, status: 'new' };
  const applies = takesFilePolicy(inForce, contract);
  const policyChanges = contractChanges({ ...contract, dedup: inForce.policy }, contract);
  const others = contractChanges({ ...inForce.contract, dedup: contract.dedup }, contract);
  const changes = applies ? [...others, ...policyChanges] : others;
  return {
    ...common,
    status: changes.length > 0 ? 'changed' : 'unchanged',
    changes,
    drift: applies ? [] : policyChanges,
    restores: digest !== inForce.digest && inForce.history.has(digest),
    textDiffers: digest !== inForce.digest,
  };
}

export function planWithoutFile(feed: string, file: string): FeedPlan {
  return { feed, file, status: 'without_file', changes: [], drift: [], restores: false, textDiffers: false };
}

/** Whether somebody has something to do: `contract plan` ends with 2 then. */
export function isPending({ status, drift }: FeedPlan): boolean {
  return status === 'new' || status === 'changed' || drift.length > 0;
}

/** The gravest of a plan; a new feed is safe. */
export function gradeOf({ changes }: FeedPlan): Grade {
  return GRADES[Math.max(0, ...changes.map(({ grade }) => GRADES.indexOf(grade)))] ?? 'safe';
}

/**
 * Whether applying a file makes a policy version: its `dedup` differs from the last that came from a file, so that
 * applying it again does not undo a change made through the API; or the file alone manages the policy.
 */
export function takesFilePolicy(
  { policy, filePolicy }: Pick<InForce, 'policy' | 'filePolicy'>,
  contract: FeedContract,
): boolean {
  if (!samePolicy(contract.dedup, filePolicy)) return true;
  return contract.policy.managedBy === 'contract' && !samePolicy(contract.dedup, policy);
}

export function samePolicy(one: DedupPolicy, other: DedupPolicy): boolean {
  return POLICY_FIELDS.every((field) => one[field] === other[field]);
}

export const POLICY_FIELDS = ['windowSeconds', 'maxEntries', 'ordering', 'contiguous', 'maxSequenceJump'] as const;

type Verdict = readonly [Grade, string];

interface Rule {
  readonly field: string;
  readonly read: (contract: FeedContract) => unknown;
  /** Called where the two differ. */
  readonly judge: (before: FeedContract, after: FeedContract) => Verdict;
}

const IDENTITY: Verdict = [
  'changes_identity',
  'the same event gets another key or digest: refused for a feed with entries, unless identity.version is raised',
];

const rule = (field: string, read: Rule['read'], judge: Rule['judge']): Rule => ({ field, read, judge });
const always = (grade: Grade, effect: string) => (): Verdict => [grade, effect];

const identityPart = (part: 'version' | 'mode' | 'agency' | 'source' | 'epoch' | 'sequence' | 'eventId'): Rule =>
  rule(
    `identity.${part}`,
    ({ identity }) => (identity as Readonly<Record<string, unknown>>)[part],
    () => IDENTITY,
  );

/** A number of which more protects better. */
const moreIsSafer = (
  field: string,
  read: (contract: FeedContract) => number,
  effects: { readonly more: string; readonly less: string },
): Rule =>
  rule(field, read, (before, after) =>
    read(after) > read(before) ? ['safe', effects.more] : ['weakens_protection', effects.less],
  );

const RULES: readonly Rule[] = [
  rule('description', (c) => c.description, always('safe', 'for people')),
  rule('owner', (c) => c.owner, always('safe', 'for people')),
  rule('topics', (c) => c.topics, judgeTopics),
  rule('brokers', (c) => c.brokers, always('weakens_protection', 'messages are consumed from other brokers')),
  rule(
    'decode',
    (c) => c.decode,
    () => IDENTITY,
  ),
  rule(
    'items',
    (c) => c.items,
    () => IDENTITY,
  ),
  ...(['version', 'mode', 'agency', 'source', 'epoch', 'sequence', 'eventId'] as const).map(identityPart),
  rule(
    'digest',
    (c) => c.digest,
    () => IDENTITY,
  ),
  rule(
    'incident',
    (c) => c.incident,
    (before, after) => judgeReading(before, after, 'messages count for other incidents than before'),
  ),
  rule(
    'occurredAt',
    (c) => c.occurredAt,
    always('safe', 'the time that the producer gives is shown, and decides nothing'),
  ),
  rule('consume', (c) => c.consume, always('weakens_protection', 'messages may come in another order')),
  moreIsSafer('dedup.windowSeconds', (c) => c.dedup.windowSeconds, {
    more: 'keys are kept at hand for longer',
    less: 'keys leave the window earlier; the ledger still finds them',
  }),
  moreIsSafer('dedup.maxEntries', (c) => c.dedup.maxEntries, {
    more: 'more keys are kept at hand',
    less: 'fewer keys are kept at hand; the ledger still finds them',
  }),
  rule(
    'dedup.ordering',
    (c) => c.dedup.ordering,
    (_, { dedup }) =>
      dedup.ordering === 'strict'
        ? ['safe', 'what is below the mark is held instead of applied late']
        : ['weakens_protection', 'what is below the mark is applied late instead of held'],
  ),
  rule(
    'dedup.contiguous',
    (c) => c.dedup.contiguous,
    (_, { dedup }) =>
      dedup.contiguous
        ? ['safe', 'missing numbers are reported']
        : ['weakens_protection', 'missing numbers are not reported'],
  ),
  rule('dedup.maxSequenceJump', (c) => c.dedup.maxSequenceJump, judgeJump),
  moreIsSafer('delivery.sessionExpirySeconds', (c) => c.delivery.sessionExpirySeconds, {
    more: 'the broker keeps messages for longer while we are away',
    less: 'the broker forgets messages earlier while we are away',
  }),
  moreIsSafer('delivery.maxReplayDelaySeconds', (c) => c.delivery.maxReplayDelaySeconds, {
    more: 'the window must cover later replays',
    less: 'the window need not cover replays that it had to cover before',
  }),
  rule(
    'forward',
    (c) => c.forward,
    (before, after) =>
      before.forward === null
        ? judgeReading(before, after, 'applied messages are published', false)
        : judgeReading(before, after, 'consumers of the topic of before get nothing more'),
  ),
  rule(
    'policy.managedBy',
    (c) => c.policy.managedBy,
    (_, { policy }) =>
      policy.managedBy === 'contract'
        ? ['safe', 'the API can no longer change the policy']
        : ['weakens_protection', 'the API can change the policy'],
  ),
];

/** Differences in the order of the format; empty where both mean the same. */
export function contractChanges(before: FeedContract, after: FeedContract): FieldChange[] {
  const fields = RULES.flatMap(({ field, read, judge }): FieldChange[] => {
    const [one, other] = [jsonOf(read(before)), jsonOf(read(after))];
    if (one === other) return [];
    const [grade, effect] = judge(before, after);
    return [{ field, before: one, after: other, grade, effect }];
  });
  const effects = effectRuleChanges(before.effects, after.effects).map(
    ({ before: one, after: other, weakens, effect }): FieldChange => {
      const [grade, why] = judgeReading(before, after, effect, weakens);
      return { field: 'effects', before: one, after: other, grade, effect: why };
    },
  );
  return [...fields, ...effects];
}

function jsonOf(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

function judgeTopics(before: FeedContract, after: FeedContract): Verdict {
  const lost = before.topics.filter((filter) => !after.topics.includes(filter));
  if (lost.length > 0) return ['weakens_protection', `no longer consumed: ${lost.join(', ')}`];
  return ['safe', 'consumes at least the topics of before'];
}

function judgeJump({ dedup: before }: FeedContract, { dedup: after }: FeedContract): Verdict {
  const tighter =
    after.maxSequenceJump !== null &&
    (before.maxSequenceJump === null || BigInt(after.maxSequenceJump) < BigInt(before.maxSequenceJump));
  return tighter ? ['safe', 'more jumps are held'] : ['weakens_protection', 'jumps are applied that were held before'];
}

/**
 * The payload digest covers what incident and effects read outside the message (design section 4), so that reading
 * other values there makes a replay from before the change a conflict.
 */
function judgeReading(before: FeedContract, after: FeedContract, effect: string, weakens = true): Verdict {
  if (after.digest !== 'off' && outsideReadings(before) !== outsideReadings(after)) {
    return ['changes_identity', `${effect}; digests cover other values, so replays from before are held as conflicts`];
  }
  return [weakens ? 'weakens_protection' : 'safe', effect];
}
