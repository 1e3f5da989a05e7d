import { contractChanges, gradeOf, isPending, planFeed } from '../../src/contract/plan';
import type { InForce } from '../../src/contract/plan';
import type { DedupPolicy } from '../../src/contract/types';
import { writePolicy } from '../../src/contract/write-policy';
import { CAD, cadWith, load } from './loader-fixture';

/** The grades of the differences between the contract of the tests and the same with changes. */
function changesOf(...changes: ReadonlyArray<readonly [string, string]>): string[] {
  const found = contractChanges(load(CAD).contract, load(cadWith(...changes)).contract);
  return found.map(({ field, before, after, grade }) => `${grade} ${field} ${before ?? '-'} ${after ?? '-'}`);
}

describe('differences between two contracts, field by field', () => {
  test.each<[string, ReadonlyArray<readonly [string, string]>, string[]]>([
    ['a comment', [['dedup:', '# sized in March\ndedup:']], []],
    ['a default written out', [['incident:', 'decode: json\nincident:']], []],
    ['an owner', [['topics:', 'owner: north\ntopics:']], ['safe owner "" "north"']],
    [
      'another topic',
      [['["cad/+/+/incident"]', '["cad/+/+/incident", "cad/x"]']],
      ['safe topics ["cad/+/+/incident"] ["cad/+/+/incident","cad/x"]'],
    ],
    [
      'a narrower topic',
      [['cad/+/+/incident', 'cad/north/+/incident']],
      ['weakens_protection topics ["cad/+/+/incident"] ["cad/north/+/incident"]'],
    ],
    ['a longer window', [['600', '900']], ['safe dedup.windowSeconds 600 900']],
    ['a shorter window', [['600', '500']], ['weakens_protection dedup.windowSeconds 600 500']],
    ['more entries', [['1000', '2000']], ['safe dedup.maxEntries 1000 2000']],
    ['fewer entries', [['1000', '10']], ['weakens_protection dedup.maxEntries 1000 10']],
    [
      'tolerance',
      [['  maxEntries', '  ordering: tolerant\n  maxEntries']],
      ['weakens_protection dedup.ordering "strict" "tolerant"'],
    ],
    [
      'a bound of jumps',
      [['  maxEntries', '  maxSequenceJump: 9\n  maxEntries']],
      ['safe dedup.maxSequenceJump - "9"'],
    ],
    [
      'an earlier end of the session',
      [['effects:', 'delivery: { sessionExpirySeconds: 60 }\neffects:']],
      ['weakens_protection delivery.sessionExpirySeconds 300 60'],
    ],
    [
      'the file as manager',
      [['effects:', 'policy: { managedBy: contract }\neffects:']],
      ['safe policy.managedBy "api" "contract"'],
    ],
    ['another source', [['/src', '/unit']], [expect.stringMatching(/^changes_identity identity\.source /)]],
    ['another digest', [['incident:', 'digest: off\nincident:']], [expect.stringMatching(/^changes_identity digest /)]],
    [
      'no effects',
      [['effects:\n  - { do: set, field: status, to: { pointer: /status } }', 'effects: off']],
      [expect.stringMatching(/^weakens_protection effects .* "off"$/)],
    ],
    [
      'a rule more',
      [['effects:', 'effects:\n  - { do: increment, field: n, by: { const: "1" } }']],
      [expect.stringMatching(/^safe effects - \{"do":"increment"/)],
    ],
    [
      'a rule that reads the topic, which the digest covers',
      [['effects:', 'effects:\n  - { do: set, field: "{topic[1]}", to: { const: "1" } }']],
      [expect.stringMatching(/^changes_identity effects - /)],
    ],
    ['forwarding', [['effects:', 'forward: { topic: cop/all }\neffects:']], ['safe forward - {"topic":"cop/all"}']],
  ])('%s', (_, changes, expected) => expect(changesOf(...changes)).toEqual(expected));

  test('taking a bound away weakens, and so does widening it', () => {
    const jump = (value: string) =>
      load(cadWith(['  maxEntries', `  maxSequenceJump: ${value}\n  maxEntries`])).contract;
    const grade = (a: string, b: string) => contractChanges(jump(a), jump(b)).map((change) => change.grade);
    expect(grade('99999999999999999999999999999999999998', '99999999999999999999999999999999999999')).toEqual([
      'weakens_protection',
    ]);
    expect(grade('99999999999999999999999999999999999999', '99999999999999999999999999999999999998')).toEqual(['safe']);
    expect(contractChanges(jump('5'), load(CAD).contract).map((change) => change.grade)).toEqual([
      'weakens_protection',
    ]);
  });

  test('what identity reads of the topic anyway changes no digest', () => {
    const before = cadWith(['{ pointer: /src }', '{ topicLevel: 1 }']);
    const after = before.replace('field: status', 'field: "{topic[1]}/status"');
    const grades = contractChanges(load(before).contract, load(after).contract).map(({ grade }) => grade);
    expect(grades).toEqual(['weakens_protection', 'safe']);
  });
});

describe('the plan of a feed', () => {
  const base = load(CAD);
  const inForce = (changes: Partial<InForce> = {}): InForce => ({
    contract: base.contract,
    digest: base.digest,
    file: base.file,
    policy: base.contract.dedup,
    filePolicy: base.contract.dedup,
    history: new Set([base.digest]),
    ...changes,
  });
  const longer: DedupPolicy = { ...base.contract.dedup, windowSeconds: 900 };

  test('a new feed waits, and is safe', () => {
    const plan = planFeed(null, base);
    expect([plan.status, isPending(plan), gradeOf(plan)]).toEqual(['new', true, 'safe']);
  });

  test('the file that is in force is no change', () => {
    expect(planFeed(inForce(), base)).toMatchObject({
      status: 'unchanged',
      changes: [],
      drift: [],
      textDiffers: false,
    });
  });

  test('a comment is none either', () => {
    const plan = planFeed(inForce(), load(`# a comment\n${CAD}`));
    expect([plan.status, plan.textDiffers, isPending(plan)]).toEqual(['unchanged', true, false]);
  });

  test('a policy of the API that the file does not know is drift, and applying leaves it', () => {
    const plan = planFeed(inForce({ policy: longer }), base);
    expect([plan.status, plan.changes, isPending(plan)]).toEqual(['unchanged', [], true]);
    expect(plan.drift).toMatchObject([{ field: 'dedup.windowSeconds', before: '900', after: '600' }]);
  });

  test('a dedup that was changed in the file replaces that of the API, and says what it replaces', () => {
    const plan = planFeed(inForce({ policy: longer }), load(cadWith(['600', '700'])));
    expect(plan.changes).toMatchObject([
      { field: 'dedup.windowSeconds', before: '900', after: '700', grade: 'weakens_protection' },
    ]);
    expect(plan.drift).toEqual([]);
  });

  test('a file that manages the policy replaces that of the API', () => {
    const plan = planFeed(
      inForce({ policy: longer }),
      load(cadWith(['effects:', 'policy: { managedBy: contract }\neffects:'])),
    );
    expect(plan.changes.map(({ field }) => field)).toEqual(['policy.managedBy', 'dedup.windowSeconds']);
  });

  test('an earlier contract is gone back to', () => {
    const later = load(cadWith(['1000', '2000']));
    const history = new Set([base.digest, later.digest]);
    const plan = planFeed(
      inForce({ ...later, policy: later.contract.dedup, filePolicy: later.contract.dedup, history }),
      base,
    );
    expect(plan).toMatchObject({ status: 'changed', restores: true });
    expect(gradeOf(plan)).toBe('weakens_protection');
  });
});

describe('writing a policy into a file', () => {
  const policy = (changes: Partial<DedupPolicy>): DedupPolicy => ({ ...load(CAD).contract.dedup, ...changes });

  test('changes nothing but the values', () => {
    const text = cadWith(['windowSeconds: 600', 'windowSeconds:   600   # sized in March']);
    const written = writePolicy(load(text), policy({ windowSeconds: 86_400, maxEntries: 5 }));
    expect(written).toBe(text.replace('  600 ', '  86400 ').replace('1000', '5'));
  });

  test('the same in a mapping on one line, with CRLF, and quoted', () => {
    const text = CAD.replace(
      'dedup:\n  windowSeconds: 600\n  maxEntries: 1000',
      'dedup: { windowSeconds: 600, maxEntries: 1000, maxSequenceJump: "7" } # a',
    ).replace(/\n/g, '\r\n');
    const written = writePolicy(load(text), policy({ windowSeconds: 700, maxSequenceJump: '12345678901234567890' }));
    expect(written).toBe(text.replace('600', '700').replace('"7"', '12345678901234567890'));
  });

  test('keys come and go, and comments and order stay', () => {
    const text = `# head\n${cadWith(['  maxEntries: 1000', '  # why\n  maxSequenceJump: 9 # bound\n  maxEntries: 1000 # many'])}# tail\n`;
    const written = writePolicy(load(text), policy({ ordering: 'tolerant', maxSequenceJump: null }));
    expect(load(written).contract.dedup).toEqual(policy({ ordering: 'tolerant' }));
    for (const kept of ['# head\n', '  maxEntries: 1000 # many\n', '  ordering: tolerant\n', '# tail\n']) {
      expect(written).toContain(kept);
    }
    expect(written.indexOf('identity:')).toBeLessThan(written.indexOf('dedup:'));
    const again = writePolicy(load(written), policy({ maxSequenceJump: '99999999999999999999999999999999999999' }));
    expect(load(again).contract.dedup.maxSequenceJump).toBe('99999999999999999999999999999999999999');
  });

  test('a file that says so already stays byte for byte', () => {
    expect(writePolicy(load(CAD), policy({}))).toBe(CAD);
  });

  test('what the loader would refuse is not written', () => {
    expect(() => writePolicy(load(CAD), policy({ windowSeconds: 100 }))).toThrow(
      'cannot be written into this contract',
    );
  });
});
