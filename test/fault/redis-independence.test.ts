import { randomInt } from 'node:crypto';
import {
  absentRedis,
  flushedRedis,
  fullRedis,
  localWindow,
  presentRedis,
  restartedRedis,
  staleRedis,
  wrongRedis,
  type WindowInTrouble,
} from '../support/fault-windows';
import { expectSoundLedger, query } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';

const FEED = 'cad-north';
const CONTRACT = caseContract({
  identity:
    '{ agency: { pointer: /agency }, source: { pointer: /src }, epoch: { pointer: /boot, order: opaque }, sequence: { pointer: /seq } }',
  dedup: '{ windowSeconds: 600, maxEntries: 40 }',
  rest: `effects:
  - { do: increment, field: count, by: { const: "1" } }
  - { do: set, field: "units/{source}", to: { pointer: /status } }
forward: { topic: "cop/{incident}" }`,
});
const BATCHES = 45;
/** Before this batch an hour passes: all that is older has left the window by time. */
const HOUR_PASSES = 30;

/** Park–Miller: the same script for everyone, another one in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

/** Batches of payloads: new ones, replays of late and of long ago, conflicts, what is stale, epochs, and garbage. */
function script(seed: number): string[][] {
  const next = random(seed);
  const sent: string[] = [];
  const sources = ['e1', 'e2', 'e3'].map((src) => ({ src, boot: 1, seq: 0 }));
  const pick = (): string => sent[next(sent.length)] ?? b(1, { boot: 1 });
  const one = (): string => {
    const source = sources[next(sources.length)];
    if (source === undefined) throw new Error('a source out of range');
    const kind = next(20);
    if (kind < 4) return pick(); // a replay of any age
    if (kind < 8) return sent[Math.max(0, sent.length - 1 - next(8))] ?? pick(); // a recent one
    if (kind === 8) return pick().replace(/"status":"[^"]*"/, '"status":"CHANGED"'); // a conflict, or its replay
    if (kind === 9) return b(1_000_000 + next(4), { src: 'e4', boot: 1, status: `S${next(2)}` }); // a source that jumps
    if (kind === 10) return '{"agency":';
    if (kind === 11) return '';
    if (kind === 12 && next(4) === 0) Object.assign(source, { boot: source.boot + 1, seq: 0 });
    // A step of more than one leaves numbers that a later message takes from below the mark.
    source.seq += 1 + (next(6) === 0 ? 1 : 0);
    const seq = next(9) === 0 ? Math.max(0, source.seq - 1 - next(3)) : source.seq;
    const boot = next(15) === 0 ? Math.max(1, source.boot - 1) : source.boot;
    return b(seq, { src: source.src, boot, incident: `I-${next(3)}`, status: `S${seq}` });
  };
  return Array.from({ length: BATCHES }, () =>
    Array.from({ length: 1 + next(9) }, () => {
      const payload = one();
      sent.push(payload);
      return payload;
    }),
  );
}

/** All that is decided and stored, but for times and what is made of them. */
async function decided(url: string) {
  const entries = await expectSoundLedger(url, FEED);
  const timeless = entries.map(({ recordedAt: _, batchId: __, leafHash: ___, ...rest }) => rest);
  const tables = await Promise.all(
    ['incident_field', 'incident_member', 'source_head', 'applied_key', 'outbox', 'admin_event'].map((table) =>
      query<{ row: string }>(
        url,
        `SELECT (to_jsonb(t) - 'recorded_at' - 'sent_at')::text AS row FROM ${table} t ORDER BY 1`,
      ),
    ),
  );
  return { entries: timeless, tables: tables.map((rows) => rows.map(({ row }) => row)) };
}

async function run(batches: readonly string[][], trouble: WindowInTrouble) {
  const path = await startPipeline({ contract: CONTRACT, window: trouble.window });
  for (const [number, payloads] of batches.entries()) {
    await trouble.beforeBatch(number);
    // The time of the ledger never goes back, so from here on it stands still.
    if (number === HOUR_PASSES)
      await query(path.url, "UPDATE feed_head SET recorded_at = recorded_at + interval '1 hour'");
    path.offer(...payloads.map((payload) => delivery(payload)));
    const due = batches.slice(0, number + 1).flat().length;
    await until(() => path.acknowledged.length === due, { what: 'the batch', everyMs: 3 });
  }
  await path.stop();
  return decided(path.url);
}

describe('one script of deliveries', () => {
  // A script of its own for every long run; one in a hundred or so lacks a kind of decision.
  const seed = process.env.LONG === '1' ? randomInt(1, 2_147_483_646) : 20_261_129;
  const batches = script(seed);
  let expected: Awaited<ReturnType<typeof decided>>;

  beforeAll(async () => {
    const noWindow = {
      lookup: () => Promise.resolve(null),
      record: () => Promise.resolve(false),
      close: () => Promise.resolve(),
    };
    expected = await run(batches, {
      window: noWindow,
      beforeBatch: () => Promise.resolve(),
      expectTrouble: () => undefined,
    });
  });

  it(`has every kind of decision in it (seed ${seed})`, () => {
    const kinds = new Set(expected.entries.map(({ outcome, tier, reason }) => `${outcome} ${tier} ${reason}`));
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        'IGNORED NONE empty_payload',
        'DUPLICATE_SUPPRESSED WINDOW same_key_and_digest',
        'DUPLICATE_SUPPRESSED LEDGER same_key_and_digest',
        'KEY_CONFLICT NONE same_key_other_digest',
        'STALE_OUT_OF_ORDER HIGH_WATER_MARK below_high_water_mark',
        'APPLIED NONE applied',
      ]),
    );
  });

  it.each([
    ['in the process, without Redis', localWindow],
    ['with Redis', presentRedis],
    ['without the Redis that is configured', absentRedis],
    ['with Redis flushed now and then', flushedRedis],
    ['with Redis killed and started empty', restartedRedis],
    ['with Redis behind', staleRedis],
    ['with Redis full of wrong positions', wrongRedis],
    ['C066: with Redis full', fullRedis],
  ] as const)(`gives the same ledger %s (seed ${seed})`, async (_, open) => {
    const trouble = await open();
    expect(await run(batches, trouble)).toEqual(expected);
    trouble.expectTrouble();
  });
});
