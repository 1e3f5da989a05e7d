import type { FollowedDecision } from '../../src/api/client';
import { jsonLine, textLine } from '../../src/cli/tail';

const APPLIED: FollowedDecision = {
  id: 'cad:1:43',
  feed: { name: 'cad' },
  position: '43',
  outcome: 'APPLIED',
  tier: 'NONE',
  reason: 'applied',
  held: false,
  late: false,
  agency: 'county-fire',
  sourceId: 'engine-7',
  epoch: null,
  sequence: '12345678901234567890123456789012345678',
  eventId: null,
  incidentId: 'I-77',
  originalPosition: null,
  replayLagSeconds: null,
  topic: 'incidents/county-fire/engine-7/events',
  qos: 1,
  dup: false,
  recordedAt: '2026-10-01T12:01:07.123456Z',
};
const SUPPRESSED: FollowedDecision = {
  ...APPLIED,
  outcome: 'DUPLICATE_SUPPRESSED',
  tier: 'WINDOW',
  reason: 'same_key_and_digest',
  sequence: '41',
  originalPosition: '12',
  replayLagSeconds: 34.15,
};

describe('a decision on a terminal', () => {
  it('says when, where, what, who, and about which incident', () => {
    expect(textLine(APPLIED, false)).toBe(
      '12:01:07.123Z  cad #43  APPLIED  county-fire/engine-7 12345678901234567890123456789012345678  I-77',
    );
  });

  it('names the original of a suppressed replay', () => {
    expect(textLine(SUPPRESSED, false)).toBe(
      '12:01:07.123Z  cad #43  DUPLICATE_SUPPRESSED  WINDOW  county-fire/engine-7 41  I-77  repeats #12 after 34.1 s',
    );
  });

  it.each([
    [
      { outcome: 'KEY_CONFLICT', reason: 'same_key_other_digest', originalPosition: '12' },
      'same_key_other_digest, compare #12',
    ],
    [{ outcome: 'STALE_OUT_OF_ORDER', tier: 'HIGH_WATER_MARK', reason: 'below_mark' }, 'I-77  below_mark'],
    [{ late: true }, 'APPLIED  late  county-fire'],
    [{ epoch: 'boot-2', sequence: '1' }, 'county-fire/engine-7 boot-2 1  I-77'],
    [{ sequence: null, eventId: ['alert', '9'] }, 'county-fire/engine-7 alert/9'],
    [{ reason: 'no_effect', incidentId: null }, '38  no_effect'.slice(2)],
    [
      {
        outcome: 'MALFORMED_REJECTED',
        reason: 'invalid_utf8',
        agency: null,
        sourceId: null,
        sequence: null,
        incidentId: null,
      },
      'MALFORMED_REJECTED  on incidents/county-fire/engine-7/events  invalid_utf8',
    ],
  ] as const)('shows of %j: %s', (change, shown) => {
    expect(textLine({ ...APPLIED, ...change }, false)).toContain(shown);
  });

  it('has colour only where it is asked for', () => {
    expect(textLine(SUPPRESSED, false)).not.toContain('\x1b');
    expect(textLine(SUPPRESSED, true)).toBe(`\x1b[36m${textLine(SUPPRESSED, false)}\x1b[0m`);
  });

  it('lets no producer steer the terminal or forge a line', () => {
    const hostile = 'x\x1b]0;owned\x07\r\n12:00 APPLIED\u202e\u2028\u009b2J';
    for (const colour of [false, true]) {
      const line = textLine({ ...APPLIED, sourceId: hostile, incidentId: hostile, reason: hostile }, colour);
      expect(line.replace('\x1b[32m', '').replace('\x1b[0m', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      expect(line).toContain('x\\u{1b}]0;owned\\u{7}\\u{d}\\u{a}12:00 APPLIED\\u{202e}\\u{2028}\\u{9b}2J');
    }
  });
});

it('gives one JSON object a line, with the cursor to go on from and exact numbers', () => {
  const line = jsonLine({ cursor: 'abc', decision: { ...APPLIED, sourceId: 'a\nb' } });
  expect(line).not.toContain('\n');
  expect(JSON.parse(line)).toEqual({ ...APPLIED, sourceId: 'a\nb', feed: 'cad', cursor: 'abc' });
});
