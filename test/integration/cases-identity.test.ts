import { query, readIncident } from '../support/ledger';
import { caseTitle, countDecisions, decisionsOf, land, range } from '../support/case-run';
import { b, caseContract, startPipeline } from '../support/pipeline';

const EVENT_ID =
  '{ mode: eventId, agency: { pointer: /agency }, source: { pointer: /src }, eventId: { pointer: /seq } }';
const EPOCHS = (order: 'opaque' | 'numeric'): string =>
  `{ agency: { pointer: /agency }, source: { pointer: /src }, epoch: { pointer: /boot, order: ${order} }, sequence: { pointer: /seq } }`;
const TOLERANT = '{ windowSeconds: 600, maxEntries: 1000, ordering: tolerant }';

describe('keys', () => {
  it(caseTitle('C031'), async () => {
    const pipeline = await startPipeline();
    const entries = await land(
      pipeline,
      b(1041, { src: 'E|1' }),
      b(1041, { agency: 'NFD|E', src: '1' }),
      b(1041, { src: 'E\\|1' }),
      b(1041, { agency: 'NFD\\', src: '|E1' }),
    );
    expect(countDecisions(entries)).toEqual({ APPLIED: 4 });
    expect(new Set(entries.map(({ key }) => key)).size).toBe(4);
  });

  it('C032: with an epoch and without one, the same text gives different keys', async () => {
    const without = await startPipeline();
    const [one] = await land(without, b(3, { src: 'x|2' }));
    const withEpoch = await startPipeline({ contract: caseContract({ identity: EPOCHS('opaque') }) });
    const [other] = await land(withEpoch, b(3, { src: 'x', boot: 2 }));
    expect([one?.outcome, other?.outcome]).toEqual(['APPLIED', 'APPLIED']);
    expect(one?.key).not.toBe(other?.key);
  });

  it(caseTitle('C034'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: 'effects: off' }) });
    const edited = [
      '{"agency":"A","src":"s","seq":9,"v":1,"sent":"10:00"}',
      '{"agency":"A","src":"s","seq":9,"v":2,"sent":"10:01"}',
    ];
    expect(decisionsOf(await land(pipeline, ...edited))).toEqual(['APPLIED', 'KEY_CONFLICT']);
    const identity =
      '{ mode: eventId, agency: { pointer: /agency }, source: { pointer: /src }, eventId: [{ pointer: /seq }, { pointer: /sent }] }';
    const wider = await startPipeline({ contract: caseContract({ identity, rest: 'effects: off' }) });
    expect(decisionsOf(await land(wider, ...edited))).toEqual(['APPLIED', 'APPLIED']);
  });

  it('C034: a conflict in eventId mode is a conflict too, and digest off trusts the key alone', async () => {
    const edited = [b(9, { status: 'X' }), b(9, { status: 'Y' })];
    const pipeline = await startPipeline({ contract: caseContract({ identity: EVENT_ID }) });
    expect(decisionsOf(await land(pipeline, ...edited))).toEqual(['APPLIED', 'KEY_CONFLICT']);
    const rest = 'digest: off\neffects: off';
    const trusting = await startPipeline({ contract: caseContract({ identity: EVENT_ID, rest }) });
    expect(decisionsOf(await land(trusting, ...edited))).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW']);
  });

  it('C034: what the producer rewrites in a resend can be left out of the digest', async () => {
    const contract = caseContract({ rest: 'digest: { ignore: [/resend_count] }\neffects: off' });
    const pipeline = await startPipeline({ contract });
    const entries = await land(pipeline, b(9), b(9, { resend_count: 1 }), b(9, { resend_count: 1, v: 2 }));
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW', 'KEY_CONFLICT']);
  });

  it(caseTitle('C038'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ rest: 'effects: off' }) });
    const entries = await land(
      pipeline,
      '{"agency":"\\u00c5rhus","src":"s","seq":1}',
      '{"agency":"A\\u030arhus","src":"s","seq":1}',
      '{"agency":"\\ud800","src":"s","seq":1}',
      '{"agency":"\\ud801","src":"s","seq":1}',
    );
    // Bytes are kept: no Unicode normalisation.
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'APPLIED', 'MALFORMED_REJECTED', 'MALFORMED_REJECTED']);
    expect(entries.map(({ agency }) => agency)).toEqual(['Århus', 'A\u030arhus', null, null]);
    expect(entries.slice(2).map(({ key, reason }) => [key, reason])).toEqual(Array(2).fill([null, 'lone_surrogate']));
  });

  it(caseTitle('C039'), async () => {
    const pipeline = await startPipeline();
    const entries = await land(
      pipeline,
      '{"agency":"NFD","src":"e1","seq":1,"seq":2}',
      '{"agency":"NFD","src":"e1","seq":1,"v":{"a":1,"a":1}}',
    );
    expect(entries.map(({ outcome, reason }) => [outcome, reason])).toEqual(
      Array(2).fill(['MALFORMED_REJECTED', 'duplicate_member']),
    );
  });
});

describe('sequences as numbers', () => {
  it(`${caseTitle('C040')}; C081: the digits are kept as they came`, async () => {
    const pipeline = await startPipeline();
    const wire = ['9007199254740992', '9007199254740993', '18446744073709551615', '9'.repeat(38)];
    const entries = await land(pipeline, ...wire.map((seq) => b(seq)));
    expect(countDecisions(entries)).toEqual({ APPLIED: 4 });
    expect(entries.map(({ sequence }) => sequence)).toEqual(wire);
    expect(await query(pipeline.url, 'SELECT mark::text FROM source_head')).toEqual([{ mark: '9'.repeat(38) }]);
    // A neighbour that a double cannot tell apart is below the mark, not a replay.
    expect(decisionsOf(await land(pipeline, b('9007199254740994')))).toEqual(['STALE_OUT_OF_ORDER HIGH_WATER_MARK']);
  });

  it(caseTitle('C042'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ dedup: TOLERANT }) });
    const entries = await land(pipeline, b('"9"'), b('"10"'), b('"100"'), b('"99"'));
    expect(decisionsOf(entries)).toEqual(['APPLIED', 'APPLIED', 'APPLIED', 'APPLIED late']);
    expect(await query(pipeline.url, 'SELECT mark::text FROM source_head')).toEqual([{ mark: '100' }]);
  });

  it(caseTitle('C044'), async () => {
    const spellings = [b('"0007"'), b('"7"'), b(7), b('7.0'), b('70e-1'), b('"007"')];
    const pipeline = await startPipeline();
    const entries = await land(pipeline, ...spellings);
    expect(countDecisions(entries)).toEqual({ APPLIED: 1, 'DUPLICATE_SUPPRESSED WINDOW': 5 });
    // What differs beside the spelling is still another payload.
    expect(decisionsOf(await land(pipeline, b('"7"', { status: 'CLEARED' })))).toEqual(['KEY_CONFLICT']);
    const texts = await startPipeline({
      contract: caseContract({ identity: EVENT_ID, rest: 'digest: off\neffects: off' }),
    });
    expect(decisionsOf(await land(texts, b('"0007"'), b('"7"'), b('"0007"')))).toEqual([
      'APPLIED',
      'APPLIED',
      'DUPLICATE_SUPPRESSED WINDOW',
    ]);
  });

  it(caseTitle('C045'), async () => {
    const pipeline = await startPipeline();
    const wrong = [
      'null',
      'true',
      '[]',
      '{}',
      '""',
      '" 7"',
      '"7 "',
      '"+7"',
      '-1',
      '"-0"',
      '"٧"',
      '1e400',
      '1.5',
      '"1e3"',
      '"0x10"',
    ];
    const entries = await land(
      pipeline,
      ...wrong.map((seq) => b(seq)),
      b('0').replace('"seq":0,', ''),
      b(`1${'0'.repeat(38)}`),
    );
    expect(countDecisions(entries)).toEqual({ MALFORMED_REJECTED: wrong.length + 2 });
    expect(entries.every(({ key, held, reason }) => key === null && held && reason.startsWith('sequence_'))).toBe(true);
    expect(decisionsOf(await land(pipeline, b('-0'), b(0)))).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED WINDOW']);
    expect(await query(pipeline.url, 'SELECT bytes FROM payload')).toHaveLength(wrong.length + 4);
  });
});

describe('a source that starts again', () => {
  const body = (n: number, boot: number | string): string => b(n, { boot, sent: `${boot}-${n}` });

  it('C049: numbers that are used again with new bodies are conflicts, held, and not swallowed', async () => {
    const pipeline = await startPipeline();
    await land(pipeline, ...range(1, 50).map((n) => b(n)));
    const again = await land(pipeline, ...range(1, 20).map((n) => b(n, { status: 'NEW' })));
    expect(countDecisions(again)).toEqual({ KEY_CONFLICT: 20 });
    expect(again.map(({ original }) => original)).toEqual(range(0, 19));
    expect(await readIncident(pipeline.url, 'I-77')).toEqual({ status: 'ENROUTE' });
  });

  it.each(['opaque', 'numeric'] as const)(
    'C049: with an epoch (%s) that changes, all of them are applied',
    async (order) => {
      const pipeline = await startPipeline({ contract: caseContract({ identity: EPOCHS(order) }) });
      await land(pipeline, ...range(1, 50).map((n) => body(n, 1)));
      expect(countDecisions(await land(pipeline, ...range(1, 20).map((n) => body(n, 2))))).toEqual({ APPLIED: 20 });
      // What comes from before the restart is a replay, or stale, however high its number is.
      const before = await land(pipeline, body(50, 1), body(51, 1));
      expect(decisionsOf(before)).toEqual(['DUPLICATE_SUPPRESSED WINDOW', 'STALE_OUT_OF_ORDER HIGH_WATER_MARK']);
      expect(before[1]?.reason).toBe('epoch_left');
    },
  );

  it(caseTitle('C050'), async () => {
    const pipeline = await startPipeline({ contract: caseContract({ identity: EPOCHS('opaque') }) });
    await land(pipeline, ...range(0, 9).map((n) => body(n, 0)));
    const again = await land(pipeline, ...range(0, 9).map((n) => b(n, { boot: 0, sent: `later-${n}` })));
    expect(countDecisions(again)).toEqual({ KEY_CONFLICT: 10 });
    // Opaque: another epoch is a change, never a comparison, so 0 after 255 is as good as 255 after 0.
    expect(decisionsOf(await land(pipeline, body(0, 255), body(10, 0)))).toEqual([
      'APPLIED',
      'STALE_OUT_OF_ORDER HIGH_WATER_MARK',
    ]);
    const born = EPOCHS('opaque').replace('/boot', '/birth');
    const discriminated = await startPipeline({ contract: caseContract({ identity: born }) });
    const births = ['10:00', '11:00'].flatMap((birth) => range(0, 9).map((n) => b(n, { birth })));
    expect(countDecisions(await land(discriminated, ...births))).toEqual({ APPLIED: 20 });
  });

  it.each(['opaque', 'numeric'] as const)(
    'C050: an epoch (%s) that was left stays left, batch after batch',
    async (order) => {
      const pipeline = await startPipeline({ contract: caseContract({ identity: EPOCHS(order) }) });
      for (const boot of [1, 2, 3]) expect(decisionsOf(await land(pipeline, body(1, boot)))).toEqual(['APPLIED']);
      for (const boot of [2, 1]) {
        const [stale] = await land(pipeline, body(2, boot));
        expect(stale).toMatchObject({ outcome: 'STALE_OUT_OF_ORDER', reason: 'epoch_left' });
      }
      expect(decisionsOf(await land(pipeline, body(2, 3)))).toEqual(['APPLIED']);
      const ranks = await query(pipeline.url, 'SELECT epoch, rank::int, mark::int FROM source_head ORDER BY rank');
      expect(ranks).toEqual([1, 2, 3].map((boot) => ({ epoch: String(boot), rank: boot, mark: boot === 3 ? 2 : 1 })));
    },
  );

  it('C050: a numeric epoch is compared as a number, and a lower one never takes over', async () => {
    const contract = caseContract({ identity: EPOCHS('numeric'), dedup: TOLERANT });
    const pipeline = await startPipeline({ contract });
    const entries = await land(
      pipeline,
      body(5, 9),
      body(1, '10'),
      body(6, 9),
      body(7, '0009'),
      body(2, 10),
      body(1, 2),
    );
    expect(decisionsOf(entries)).toEqual([
      'APPLIED',
      'APPLIED',
      'APPLIED late',
      'APPLIED late',
      'APPLIED',
      'APPLIED late',
    ]);
    expect(entries.map(({ epoch }) => epoch)).toEqual(['9', '10', '9', '9', '10', '2']);
  });

  it('C050: an epoch counts from its first applied message, not from one that is held', async () => {
    const rest = 'effects:\n  - { do: increment, field: n, by: { pointer: /by } }';
    const pipeline = await startPipeline({ contract: caseContract({ identity: EPOCHS('opaque'), rest }) });
    const by = (n: number, boot: number, value: unknown): string => b(n, { boot, by: value });
    const entries = await land(pipeline, by(1, 1, 1), by(1, 2, 'many'), by(2, 1, 1), by(2, 2, 1), by(3, 1, 1));
    expect(decisionsOf(entries)).toEqual([
      'APPLIED',
      'EFFECT_FAILED',
      'APPLIED',
      'APPLIED',
      'STALE_OUT_OF_ORDER HIGH_WATER_MARK',
    ]);
  });
});
