import type { FormerClaim, KeyedMessage } from '../../src/contract/types';
import { decide } from '../../src/dedup/decide';
import type { Claim, EpochHead, LockedState, PolicyInForce } from '../../src/dedup/state';
import { claimKey, sourceKey } from '../../src/dedup/state';

/** States and messages by hand, at the borders of design section 3; the property tests have the rest. */

const NOW = 1_700_000_000_000_000;
const SECOND = 1_000_000;
const KEY = 'aa'.repeat(32);
const DIGEST = 'd1'.repeat(32);
const POLICY: PolicyInForce = {
  version: 1,
  windowSeconds: 10,
  maxEntries: 100,
  ordering: 'strict',
  contiguous: false,
  maxSequenceJump: null,
};

interface Given {
  readonly policy?: Partial<PolicyInForce>;
  readonly claims?: readonly Claim[];
  readonly heads?: Readonly<Record<string, EpochHead>>;
}

function state({ policy = {}, claims = [], heads = {} }: Given): LockedState {
  return {
    feedId: 1,
    size: 1000,
    recordedAtMicros: NOW,
    policy: { ...POLICY, ...policy },
    epochOrder: 'opaque',
    sources: new Map([[sourceKey(1, 'NFD', 'e1'), new Map(Object.entries(heads))]]),
    claims: new Map([[claimKey(1, KEY), claims]]),
    fields: new Map(),
  };
}

function message(sequence: string | null, changes: Partial<KeyedMessage> = {}): KeyedMessage {
  return {
    kind: 'keyed',
    itemIndex: null,
    keyVersion: 1,
    key: KEY,
    identity: { agency: 'NFD', sourceId: 'e1', epoch: null, sequence, eventId: sequence === null ? ['id'] : null },
    payloadDigest: DIGEST,
    claimDigest: DIGEST,
    incidentId: null,
    occurredAt: null,
    plan: { ok: true, effects: [], forward: null },
    former: [],
    ...changes,
  };
}

const head = (mark: bigint | null, highest = mark): EpochHead => ({ rank: mark === null ? null : 1n, mark, highest });

function decideOne(given: Given, one: KeyedMessage = message('5')) {
  const [decision] = decide(state(given), [one]).decisions;
  if (decision === undefined) throw new Error('no decision');
  return decision;
}

describe('line 5: the mark', () => {
  it.each([
    ['4', 'STALE_OUT_OF_ORDER'],
    ['5', 'STALE_OUT_OF_ORDER'],
    ['6', 'APPLIED'],
  ])('with the mark at 5, a sequence of %s that was never decided is %s', (sequence, outcome) => {
    expect(decideOne({ heads: { '': head(5n) } }, message(sequence)).outcome).toBe(outcome);
    const tolerant = decideOne({ heads: { '': head(5n) }, policy: { ordering: 'tolerant' } }, message(sequence));
    expect(tolerant).toMatchObject({ outcome: 'APPLIED', late: outcome !== 'APPLIED', reason: 'no_effect' });
  });

  it('is not what was decided, but what was applied', () => {
    expect(decideOne({ heads: { '': head(null, 9n) } }).outcome).toBe('APPLIED');
    expect(decideOne({ heads: { '': head(4n, 9n) } }).outcome).toBe('APPLIED');
  });

  it('never holds in eventId mode', () => {
    const { outcome, late } = decideOne({ heads: { '': head(5n) } }, message(null));
    expect({ outcome, late }).toEqual({ outcome: 'APPLIED', late: false });
  });
});

describe('lines 3 and 4: what was decided before', () => {
  const claim = (changes: Partial<Claim> = {}): Claim => ({
    position: 900,
    recordedAtMicros: NOW - 10 * SECOND,
    digest: DIGEST,
    ...changes,
  });

  it.each([
    ['both borders are inside', {}, 'WINDOW'],
    ['a microsecond too old', { recordedAtMicros: NOW - 10 * SECOND - 1 }, 'LEDGER'],
    ['an entry too far', { position: 899 }, 'LEDGER'],
    ['young and near', { position: 999, recordedAtMicros: NOW }, 'WINDOW'],
    ['young, and far', { position: 1, recordedAtMicros: NOW }, 'LEDGER'],
  ])('the tier, where %s', (_, changes, tier) => {
    expect(decideOne({ claims: [claim(changes)] })).toMatchObject({
      outcome: 'DUPLICATE_SUPPRESSED',
      tier,
      original: claim(changes).position,
    });
  });

  it('the digest decides between a duplicate and a conflict; the duplicate names its own original', () => {
    const claims = [claim({ position: 950, digest: 'd0' }), claim({ position: 960 })];
    expect(decideOne({ claims })).toMatchObject({ outcome: 'DUPLICATE_SUPPRESSED', original: 960 });
    expect(decideOne({ claims }, message('5', { claimDigest: 'd2' }))).toMatchObject({
      outcome: 'KEY_CONFLICT',
      tier: 'NONE',
      original: 950,
    });
  });

  it('comes before the mark, and before an effect that is impossible', () => {
    const impossible = message('5', { plan: { ok: false, reason: 'not_a_number', detail: 'a word' } });
    const given = { claims: [claim()], heads: { '': head(9n) } };
    expect(decideOne(given, impossible).outcome).toBe('DUPLICATE_SUPPRESSED');
    expect(decideOne({ heads: { '': head(9n) } }, impossible).outcome).toBe('STALE_OUT_OF_ORDER');
    expect(decideOne({}, impossible)).toMatchObject({ outcome: 'EFFECT_FAILED', reason: 'not_a_number' });
  });

  it('of another key version is another key', () => {
    expect(decideOne({ claims: [claim()] }, message('5', { keyVersion: 2 })).outcome).toBe('APPLIED');
  });
});

describe('line 3: what was decided under a former identity version', () => {
  const before = (key: string, sequence = '5', claimDigest = DIGEST) => ({
    keyVersion: 1,
    key,
    claimDigest,
    identity: { agency: 'NFD', sourceId: 'e1', epoch: null, sequence, eventId: null },
  });
  type Readings = readonly (readonly FormerClaim[])[];
  const raised = (readings: Readings, proves = true): KeyedMessage => {
    return message('5', { keyVersion: 2, former: readings.map((claims) => ({ claims, proves })) });
  };
  const decideUnder = (readings: Readings, claims: Record<string, readonly Claim[]>, proves = true) => {
    const given = { ...state({}), claims: new Map(Object.entries(claims)) };
    const batch = decide(given, [raised(readings, proves)]);
    return { decision: batch.decisions[0], sources: batch.sources };
  };
  const at = (position: number, digest = DIGEST): Claim => ({ position, recordedAtMicros: NOW, digest });

  it('is a duplicate of that entry, and leaves no trace under the new version', () => {
    const { decision, sources } = decideUnder([[before(KEY)]], { [claimKey(1, KEY)]: [at(900)] });
    expect(decision).toMatchObject({
      outcome: 'DUPLICATE_SUPPRESSED',
      reason: 'same_former_key_and_digest',
      tier: 'WINDOW',
      original: 900,
    });
    expect(sources).toEqual([]);
  });

  it('a former key with another digest says nothing', () => {
    const { decision, sources } = decideUnder([[before(KEY)]], { [claimKey(1, KEY)]: [at(900, 'd2')] });
    expect(decision).toMatchObject({ outcome: 'APPLIED', original: null });
    expect(sources.map(({ keyVersion }) => keyVersion)).toEqual([2]);
  });

  it('comes before a conflict of the new key, and after a duplicate of it', () => {
    const claims = { [claimKey(1, KEY)]: [at(900)], [claimKey(2, KEY)]: [at(950, 'd2')] };
    expect(decideUnder([[before(KEY)]], claims).decision).toMatchObject({
      outcome: 'DUPLICATE_SUPPRESSED',
      original: 900,
    });
    const own = { ...claims, [claimKey(2, KEY)]: [at(950)] };
    expect(decideUnder([[before(KEY)]], own).decision).toMatchObject({ reason: 'same_key_and_digest', original: 950 });
  });

  it('needs all entries of a reading, and names the first of them; one reading is enough', () => {
    const [one, two] = [before(KEY), before('bb'.repeat(32), '6')] as const;
    const both = { [claimKey(1, KEY)]: [at(900)], [claimKey(1, two.key)]: [at(899)] };
    expect(decideUnder([[one, two]], both).decision).toMatchObject({ outcome: 'DUPLICATE_SUPPRESSED', original: 899 });
    const half = { [claimKey(1, KEY)]: [at(900)] };
    expect(decideUnder([[one, two]], half).decision?.outcome).toBe('APPLIED');
    expect(decideUnder([[one, two], [one]], half).decision).toMatchObject({ original: 900 });
  });

  it('is held where it is likely, and not proven', () => {
    const claims = { [claimKey(1, KEY)]: [at(900)] };
    const { decision, sources } = decideUnder([[before(KEY)]], claims, false);
    expect(decision).toMatchObject({ outcome: 'KEY_CONFLICT', reason: 'former_identity_unclear', original: 900 });
    expect(sources).toMatchObject([{ keyVersion: 2, head: { rank: null, mark: null, highest: 5n } }]);
    expect(decideUnder([[before(KEY), before('bb'.repeat(32))]], claims, false).decision?.outcome).toBe('APPLIED');
    expect(decideUnder([[before(KEY)]], { [claimKey(1, KEY)]: [at(900, 'd2')] }, false).decision?.outcome).toBe(
      'APPLIED',
    );
    const own = { ...claims, [claimKey(2, KEY)]: [at(950, 'd2')] };
    expect(decideUnder([[before(KEY)]], own, false).decision).toMatchObject({
      reason: 'same_key_other_digest',
      original: 950,
    });
  });

  it('starts the new version without a mark', () => {
    expect(decide(state({ heads: { '': head(9n) } }), [raised([[before(KEY)]])]).decisions[0]).toMatchObject({
      outcome: 'APPLIED',
      late: false,
    });
  });
});

describe('maxSequenceJump', () => {
  it.each([
    ['105', 'APPLIED'],
    ['106', 'EFFECT_FAILED'],
    ['9'.repeat(38), 'EFFECT_FAILED'],
  ])('of 100, with the mark at 5: %s is %s', (sequence, outcome) => {
    const given = { policy: { maxSequenceJump: '100' }, heads: { '': head(5n) } };
    const batch = decide(state(given), [message(sequence)]);
    const decision = batch.decisions[0];
    expect(decision?.outcome).toBe(outcome);
    if (outcome === 'EFFECT_FAILED') expect(decision?.reason).toBe('sequence_jump');
    // The highest follows what was decided, the mark only what was applied.
    const mark = outcome === 'APPLIED' ? BigInt(sequence) : 5n;
    expect(batch.sources.map((change) => change.head)).toEqual([{ rank: 1n, mark, highest: BigInt(sequence) }]);
  });

  it('does not bind the first message of a source, nor of an epoch', () => {
    const policy = { maxSequenceJump: '1' };
    expect(decideOne({ policy }, message('9'.repeat(38))).outcome).toBe('APPLIED');
    const epoch = { agency: 'NFD', sourceId: 'e1', epoch: 'b', sequence: '900', eventId: null };
    expect(decideOne({ policy, heads: { a: head(5n) } }, message('900', { identity: epoch })).outcome).toBe('APPLIED');
  });
});

describe('what an applied message sends downstream', () => {
  it('is sent for it alone, at its position', () => {
    const forward = { topic: 'cop/I-77', payload: Buffer.from('{}') };
    const plan = { ok: true, effects: [], forward } as const;
    const batch = decide(state({}), [
      message('5', { plan }),
      message('5', { plan }),
      message('4', { plan, key: 'bb' }),
    ]);
    expect(batch.decisions.map(({ outcome }) => outcome)).toEqual([
      'APPLIED',
      'DUPLICATE_SUPPRESSED',
      'STALE_OUT_OF_ORDER',
    ]);
    expect(batch.outbox).toEqual([{ position: 1000, key: KEY, ...forward }]);
  });
});
