/**
 * Decides again what a ledger recorded, under another policy: the production decision function over recorded entries, to
 * preview a change (design section 8, `policyPreview`). Pure.
 *
 * Lines 1 to 4 of design section 3 do not depend on the policy: what was malformed, a proven duplicate or a conflict is so
 * under any. So only entries of lines 5 to 7 are decided again, and no claims are needed: each was the first of its key.
 * Effects are not computed again; a message whose effect failed is taken to fail wherever it would be applied.
 */
import type { DedupPolicy, EpochOrder, KeyedMessage } from '../contract/types';
import { decide } from './decide';
import type { EpochHead, Outcome, SourceChange } from './state';
import { sourceKey } from './state';

/** An entry whose outcome depends on the policy, or a release, which moves the mark. */
export interface RecordedEntry {
  readonly position: number;
  readonly recordedAtMicros: number;
  readonly outcome: 'APPLIED' | 'STALE_OUT_OF_ORDER' | 'EFFECT_FAILED' | 'RELEASED';
  readonly reason: string;
  readonly keyVersion: number;
  /** Hex. */
  readonly key: string;
  readonly claimDigest: string;
  readonly agency: string;
  readonly sourceId: string;
  readonly epoch: string | null;
  /** Digits; null in `eventId` mode. */
  readonly sequence: string | null;
}

export interface Redecision {
  readonly position: number;
  readonly outcome: Outcome;
  readonly late: boolean;
  readonly reason: string;
}

/** Heads of sources before the first entry: by `sourceKey`, then by epoch ('' without epochs). */
export type Sources = ReadonlyMap<string, ReadonlyMap<string, EpochHead>>;

/** What `decide` alone says `sequence_jump` for; every other failure is of the message's effect. */
const OF_THE_POLICY = 'sequence_jump';

/**
 * @param entries in order of position; releases are not in the answer
 * @param epochOrder of the contract in force
 */
export function redecide(
  start: Sources,
  entries: readonly RecordedEntry[],
  policy: DedupPolicy,
  epochOrder: EpochOrder,
): Redecision[] {
  const sources = new Map([...start].map(([name, epochs]) => [name, new Map(epochs)]));
  const decided: Redecision[] = [];
  for (const run of runsOf(entries)) {
    const released = run[0]?.outcome === 'RELEASED';
    // A person let it through: whatever the policy says, it takes effect and may raise the mark.
    const inForce: DedupPolicy = released ? { ...policy, ordering: 'tolerant', maxSequenceJump: null } : policy;
    const { decisions, sources: changes } = decide(
      {
        feedId: 0,
        size: run[0]?.position ?? 0,
        recordedAtMicros: run[0]?.recordedAtMicros ?? 0,
        policy: { ...inForce, version: 0 },
        epochOrder,
        sources,
        claims: new Map(),
        fields: new Map(),
      },
      run.map(messageOf),
    );
    for (const change of changes) put(sources, change);
    if (released) continue;
    decisions.forEach(({ outcome, late, reason }, index) => {
      const position = run[index]?.position;
      if (position !== undefined) decided.push({ position, outcome, late, reason });
    });
  }
  return decided;
}

/** Neighbours that are decided under the same policy. */
function runsOf(entries: readonly RecordedEntry[]): RecordedEntry[][] {
  const runs: RecordedEntry[][] = [];
  let released: boolean | null = null;
  for (const entry of entries) {
    const isRelease = entry.outcome === 'RELEASED';
    if (isRelease !== released) runs.push([]);
    released = isRelease;
    runs[runs.length - 1]?.push(entry);
  }
  return runs;
}

function put(sources: Map<string, Map<string, EpochHead>>, change: SourceChange): void {
  const name = sourceKey(change.keyVersion, change.agency, change.sourceId);
  const epochs = sources.get(name) ?? new Map<string, EpochHead>();
  sources.set(name, epochs.set(change.epoch, change.head));
}

function messageOf(entry: RecordedEntry): KeyedMessage {
  const { outcome, reason, keyVersion, key, claimDigest, agency, sourceId, epoch, sequence } = entry;
  const failed = outcome === 'EFFECT_FAILED' && reason !== OF_THE_POLICY;
  return {
    kind: 'keyed',
    itemIndex: null,
    keyVersion,
    key,
    identity: { agency, sourceId, epoch, sequence, eventId: null },
    payloadDigest: claimDigest,
    claimDigest,
    incidentId: null,
    occurredAt: null,
    plan: failed ? { ok: false, reason, detail: '' } : { ok: true, effects: [], forward: null },
    former: [],
  };
}

/** Decisions that differ, in order. Reasons count where they are the decision's own, not the effect's. */
export function differencesOf(before: readonly Redecision[], after: readonly Redecision[]) {
  return before.flatMap((was, index) => {
    const becomes = after[index];
    if (becomes === undefined) return [];
    const same = was.outcome === becomes.outcome && was.late === becomes.late && was.reason === becomes.reason;
    return same ? [] : [{ was, becomes }];
  });
}
