import type { PlannedEffect } from '../../src/contract/types';
import { applyEffects, type Applied } from '../../src/effects/apply';
import type { FieldState, Writer } from '../../src/effects/state';

const FIELD = 'x';
const NINES = '9'.repeat(38);

function writer(changes: Partial<Writer> = {}): Writer {
  return { feedId: 1, agency: 'NFD', sourceId: 'e1', epoch: null, rank: '1', sequence: '5', ...changes };
}

/** One effect on a field that holds `value` (null: a set; undefined: nothing yet). */
function apply(
  effects: PlannedEffect | PlannedEffect[],
  value: string | null | undefined,
  options: { last?: Writer; by?: Writer; late?: boolean } = {},
): Applied {
  const { last = writer({ sequence: '1' }), by = writer(), late = false } = options;
  const state: FieldState | undefined = value === undefined ? undefined : { value, writer: last };
  return applyEffects([effects].flat(), () => state, by, late);
}

function values(applied: Applied): (string | null)[] {
  if (!applied.ok) throw new Error(`${applied.reason} on ${applied.field}`);
  return applied.writes.map(({ value }) => value);
}

const increment = (by: string): PlannedEffect => ({ do: 'increment', field: FIELD, by });
const set = (to: string): PlannedEffect => ({ do: 'set', field: FIELD, to });
const append = (value: string): PlannedEffect => ({ do: 'append', field: FIELD, value });
const advance = (to: string): PlannedEffect => ({ do: 'advance', field: FIELD, to });

describe('increment', () => {
  it.each([
    [undefined, '0.1', '0.1'],
    ['0.1', '0.2', '0.3'],
    ['9007199254740993', '1', '9007199254740994'],
    ['1', '-1', '0'],
    ['-7', '5', '-2'],
    ['999999999999999', '999999999999999', '1999999999999998'],
    ['-999999999999999', '-999999999999999', '-1999999999999998'],
    ['9999999999999999', '1', '10000000000000000'],
    ['1.50', '-0.5', '1'],
    [`-${NINES}`, NINES, '0'],
    ['0', `0.${NINES}`, `0.${NINES}`],
  ])('%s + %s = %s, exactly', (held, by, sum) => {
    expect(values(apply(increment(by), held))).toEqual([sum]);
  });

  it.each([
    [NINES, '1'],
    [`-${NINES}`, '-1'],
    [`${NINES}.5`, '0.5'],
  ])('refuses %s + %s: the sum has more than 38 digits before the point', (held, by) => {
    expect(apply(increment(by), held)).toEqual({ ok: false, reason: 'number_out_of_range', field: FIELD });
  });

  it('takes the largest sum that is allowed', () => {
    expect(values(apply(increment('1'), `${NINES.slice(1)}8`))).toEqual([`${NINES}`]);
  });

  it.each(['"3"', 'true', 'null', '[1]', '{}', null])('refuses a field that holds %s', (held) => {
    expect(apply(increment('1'), held)).toEqual({ ok: false, reason: 'not_a_number', field: FIELD });
  });

  it.each(['1e40', '1e-39'])('refuses a field that was set to %s, which no sum can keep', (held) => {
    expect(apply(increment('1'), held)).toEqual({ ok: false, reason: 'number_out_of_range', field: FIELD });
  });
});

describe('append', () => {
  it('makes a set, and adds to it, also late', () => {
    for (const held of [undefined, null]) {
      const applied = apply(append('"E4"'), held, { late: true, last: writer({ sequence: '9' }) });
      expect(applied).toMatchObject({ ok: true, superseded: [], writes: [{ value: null, member: '"E4"' }] });
    }
  });

  it('refuses a field that holds a value, and a set takes no other effect', () => {
    expect(apply(append('1'), '1')).toEqual({ ok: false, reason: 'not_a_set', field: FIELD });
    expect(apply(set('1'), null)).toEqual({ ok: false, reason: 'not_a_value', field: FIELD });
    expect(apply(advance('1'), null)).toEqual({ ok: false, reason: 'not_a_number', field: FIELD });
  });
});

describe('advance', () => {
  it.each([
    [undefined, '3', ['3']],
    ['3', '4', ['4']],
    ['4', '4', []],
    ['4', '3', []],
    ['9', '10', ['10']],
    ['-1', '-2', []],
    ['9007199254740992', '9007199254740993', ['9007199254740993']],
    ['1e50', NINES, []],
  ])('%s to %s writes %j', (held, to, expected) => {
    expect(values(apply(advance(to), held))).toEqual(expected);
  });

  it('refuses a field that holds no number', () => {
    expect(apply(advance('1'), '"3"')).toEqual({ ok: false, reason: 'not_a_number', field: FIELD });
  });
});

describe('a late set or advance', () => {
  const late = true;

  it.each([
    ['the field is empty', undefined, writer()],
    ['its source wrote it at a lower sequence', '1', writer({ sequence: '4' })],
    ['its source wrote it in an epoch of a lower rank', '1', writer({ rank: '0', sequence: '900' })],
    ['the lower sequence has fewer digits', '1', writer({ sequence: '4' })],
  ])('writes where %s', (_, held, last) => {
    expect(apply(set('9'), held, { last, late })).toMatchObject({ superseded: [], writes: [{ value: '9' }] });
    expect(apply(advance('9'), held, { last, late })).toMatchObject({ superseded: [], writes: [{ value: '9' }] });
  });

  it.each([
    ['the same message of its source', writer()],
    ['a later one of its source', writer({ sequence: '10' })],
    ['its source in an epoch of a higher rank', writer({ rank: '2', sequence: '1' })],
    ['another source', writer({ sourceId: 'e2', sequence: '1' })],
    ['the same source id of another agency', writer({ agency: 'N', sequence: '1' })],
    ['the same source of another feed', writer({ feedId: 2, sequence: '1' })],
    ['a message without a sequence', writer({ sequence: null, rank: null })],
  ])('is superseded where it was written by %s', (_, last) => {
    expect(apply(set('9'), '1', { last, late })).toEqual({ ok: true, writes: [], superseded: [FIELD] });
    expect(apply(advance('9'), '1', { last, late })).toEqual({ ok: true, writes: [], superseded: [FIELD] });
    // In order, all of them write.
    expect(apply(set('9'), '1', { last })).toMatchObject({ superseded: [], writes: [{ value: '9' }] });
  });

  it('compares sequences beyond 2^53 and ranks of several digits as numbers', () => {
    const by = writer({ sequence: '9007199254740993', rank: '10' });
    for (const last of [writer({ sequence: '9007199254740992', rank: '10' }), writer({ sequence: '1', rank: '9' })]) {
      expect(apply(set('9'), '1', { last, by, late })).toMatchObject({ superseded: [], writes: [{ value: '9' }] });
    }
  });

  it('does not write over a newer value because the same message incremented it before', () => {
    const last = writer({ sourceId: 'e2' });
    expect(apply([increment('1'), set('9')], '100', { last, late })).toMatchObject({
      writes: [{ value: '101' }],
      superseded: [FIELD],
    });
  });

  it('writes twice where it may write at all', () => {
    expect(values(apply([set('1'), set('2'), increment('3')], undefined, { late }))).toEqual(['1', '2', '5']);
  });
});

describe('the last writer', () => {
  it('is the message, or the newer one of its source where the message is late', () => {
    const newer = writer({ sequence: '9' });
    expect(apply(increment('1'), '1')).toMatchObject({ writes: [{ writer: writer() }] });
    expect(apply(increment('1'), '1', { last: newer, late: true })).toMatchObject({ writes: [{ writer: newer }] });
    const other = writer({ sequence: '9', sourceId: 'e2' });
    expect(apply(increment('1'), '1', { last: other, late: true })).toMatchObject({ writes: [{ writer: writer() }] });
  });
});

describe('several effects of one message', () => {
  it('see each other, and happen all or not at all', () => {
    expect(values(apply([increment('1'), increment('2')], '1'))).toEqual(['2', '4']);
    expect(apply([increment('1'), append('1')], '1')).toEqual({ ok: false, reason: 'not_a_set', field: FIELD });
  });
});
