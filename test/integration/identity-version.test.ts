import { activateContract, ActivationRefused, type Activation } from '../../src/ledger/feeds';
import type { Window } from '../../src/window/window';
import { flushedRedis, localWindow, wrongRedis } from '../support/fault-windows';
import { expectSoundLedger, query, readIncident, type StoredEntry } from '../support/ledger';
import {
  activate,
  b,
  caseContract,
  delivery,
  parseContract,
  startPipeline,
  type TestPipeline,
} from '../support/pipeline';
import { until } from '../support/wait';

/** `identity.version` (design section 7): the identity of a feed changes while it has entries. */

const FEED = 'cad-north';
const EFFECTS = `effects:
  - { do: increment, field: count, by: { const: "1" } }`;

interface Changes {
  readonly epoch?: boolean;
  readonly agency?: string;
  readonly rest?: string;
}

function contract(
  version: number,
  { epoch = false, agency = '{ pointer: /agency }', rest = '' }: Changes = {},
): string {
  const boot = epoch ? ', epoch: { pointer: /boot }' : '';
  return caseContract({
    identity: `{ version: ${version}, agency: ${agency}, source: { pointer: /src }, sequence: { pointer: /seq }${boot} }`,
    rest: `${rest}${EFFECTS}`,
  });
}

const outcomes = (entries: readonly StoredEntry[]) => entries.map(({ outcome }) => outcome);
const repeat = (outcome: string, times: number) => Array.from({ length: times }, () => outcome);

/** Messages of one boot of a source, numbered from 1. */
function messages(boot: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => b(index + 1, { boot, status: `S${index}` }));
}

async function raise(path: TestPipeline, yaml: string): Promise<Activation> {
  return activate(path.database, parseContract(yaml));
}

async function appliedCount(path: TestPipeline): Promise<unknown> {
  return ((await readIncident(path.url, 'I-77')) as { count?: unknown }).count;
}

describe('an identity that is changed with a higher version', () => {
  it.each([
    ['in the process', localWindow],
    ['with Redis flushed now and then', flushedRedis],
    ['with Redis full of wrong positions', wrongRedis],
  ] as const)('doubles nothing of before and loses nothing new, replays in between, window %s', async (_, open) => {
    const trouble = await open();
    const path = await startPipeline({ contract: contract(1), window: trouble.window });
    const old = messages('b1', 30);
    await path.deliver(...old);
    expect(await raise(path, contract(2, { epoch: true }))).toMatchObject({ result: 'activated', version: 2 });

    // The source restarted: its numbers begin again. Under version 1 they would be conflicts.
    const fresh = messages('b2', 30);
    const handed = old.flatMap((replay, index) => [replay, fresh[index] ?? replay, replay]);
    for (let at = 0; at < handed.length; at += 7) {
      await trouble.beforeBatch(at / 7 + 5);
      const batch = handed.slice(at, at + 7).map((payload) => delivery(payload));
      await path.deliver(...batch);
    }
    await path.stop();
    const entries = await expectSoundLedger(path.url, FEED);
    const later = entries.slice(old.length);
    expect(outcomes(later)).toEqual(
      handed.map((_payload, index) => (index % 3 === 1 ? 'APPLIED' : 'DUPLICATE_SUPPRESSED')),
    );
    expect(await appliedCount(path)).toBe(old.length + fresh.length);
    trouble.expectTrouble();
    for (const [index, entry] of later.entries()) {
      expect(entry.keyVersion).toBe(2);
      if (index % 3 === 1) continue;
      expect(entry).toMatchObject({
        original: Math.floor(index / 3),
        reason: 'same_former_key_and_digest',
        tier: 'WINDOW',
      });
    }
  });

  it('takes a whole batch of old and new at once, as the worker learns of the contract', async () => {
    const path = await startPipeline({ contract: contract(1) });
    const old = messages('b1', 20);
    path.offer(...old.map((payload) => delivery(payload)));
    await path.deliver(b(21, { boot: 'b1' }));
    await raise(path, contract(2, { epoch: true }));
    const fresh = messages('b2', 20);
    path.offer(...[...old, ...fresh, ...old, ...fresh].map((payload) => delivery(payload)));
    await path.stop();
    const entries = await expectSoundLedger(path.url, FEED);
    expect(outcomes(entries)).toEqual([
      ...repeat('APPLIED', 21),
      ...repeat('DUPLICATE_SUPPRESSED', 20),
      ...repeat('APPLIED', 20),
      ...repeat('DUPLICATE_SUPPRESSED', 40),
    ]);
    expect(await appliedCount(path)).toBe(41);
  });

  it('changes under two instances that both get everything: none decides under the identity that was left', async () => {
    const one = await startPipeline({ contract: contract(1), batchMaxDeliveries: 20 });
    const two = await startPipeline({ contract: contract(1), batchMaxDeliveries: 20, url: one.url });
    const old = messages('b1', 200);
    for (const path of [one, two]) path.offer(...old.map((payload) => delivery(payload)));
    await until(async () => (await one.entries()).length >= 100, { what: 'some entries' });
    await raise(one, contract(2, { epoch: true }));
    const fresh = messages('b2', 200);
    for (const path of [one, two]) path.offer(...[...old, ...fresh].map((payload) => delivery(payload)));
    await Promise.all([one.stop(), two.stop()]);
    const entries = await expectSoundLedger(one.url, FEED);
    const versions = entries.map(({ keyVersion }) => keyVersion);
    expect(versions).toEqual([...versions].sort());
    expect(new Set(entries.map(({ keyVersion, contractDigest }) => `${keyVersion} ${contractDigest}`)).size).toBe(2);
    expect(entries).toHaveLength(2 * (200 + 400));
    expect(entries.filter(({ outcome }) => outcome === 'APPLIED')).toHaveLength(400);
    expect(entries.filter(({ held }) => held)).toEqual([]);
    expect(await appliedCount(one)).toBe(400);
  });

  it('knows held messages of before: their replays are held once', async () => {
    const path = await startPipeline({ contract: contract(1) });
    const conflict = b(3, { boot: 'b1', status: 'OTHER' });
    const stale = b(1, { boot: 'b1' });
    await path.deliver(b(3, { boot: 'b1' }), conflict, stale);
    await raise(path, contract(2, { epoch: true }));
    const again = await path.deliver(conflict, stale, conflict);
    expect(again.map(({ outcome, original }) => [outcome, original])).toEqual([
      ['DUPLICATE_SUPPRESSED', 1],
      ['DUPLICATE_SUPPRESSED', 2],
      ['DUPLICATE_SUPPRESSED', 1],
    ]);
    await expectSoundLedger(path.url, FEED);
  });

  it('takes a former key with another digest for what it is now, and starts without a mark', async () => {
    const path = await startPipeline({ contract: contract(1) });
    await path.deliver(b(5, { boot: 'b1' }));
    await raise(path, contract(2, { epoch: true }));
    const entries = await path.deliver(
      b(5, { boot: 'b1', status: 'OTHER' }), // applied: the key of before is no conflict by itself
      b(5, { boot: 'b1', status: 'THIRD' }), // but that of today is
      b(4, { boot: 'b1' }),
    );
    expect(outcomes(entries)).toEqual(['APPLIED', 'KEY_CONFLICT', 'STALE_OUT_OF_ORDER']);
    await expectSoundLedger(path.url, FEED);
  });

  it('remembers through several versions, and through a restart', async () => {
    const first = await startPipeline({ contract: contract(1) });
    const [one, two, three] = messages('b1', 3) as [string, string, string];
    await first.deliver(one);
    await raise(first, contract(4, { epoch: true }));
    await first.deliver(one, two);
    await raise(first, contract(9, { agency: '{ const: state }' }));
    await first.stop();
    const second = await startPipeline({ url: first.url, contract: contract(9, { agency: '{ const: state }' }) });
    const entries = await second.deliver(one, two, three, one, two, three);
    expect(entries.map(({ outcome, original, keyVersion }) => [outcome, original, keyVersion])).toEqual([
      ['DUPLICATE_SUPPRESSED', 0, 9],
      ['DUPLICATE_SUPPRESSED', 2, 9],
      ['APPLIED', null, 9],
      ['DUPLICATE_SUPPRESSED', 0, 9],
      ['DUPLICATE_SUPPRESSED', 2, 9],
      ['DUPLICATE_SUPPRESSED', 5, 9],
    ]);
    await expectSoundLedger(second.url, FEED);
    expect(await appliedCount(second)).toBe(3);
  });

  it('knows what earlier contracts of the former version decided, whose effects read the topic', async () => {
    const withTopic = contract(1).replace('field: count', 'field: "{topic[1]}"');
    const path = await startPipeline({ contract: withTopic });
    const [one, two] = messages('b1', 2) as [string, string];
    await path.deliver(one);
    await raise(path, contract(1));
    await path.deliver(two);
    await raise(path, contract(2, { epoch: true }));
    expect(outcomes(await path.deliver(one, two))).toEqual(['DUPLICATE_SUPPRESSED', 'DUPLICATE_SUPPRESSED']);
    await expectSoundLedger(path.url, FEED);
  });

  it('fans out what came whole before, and the replay of the whole is one of each item', async () => {
    const path = await startPipeline({ contract: contract(1) });
    const whole = (boot: string, from: number): string =>
      b(from, {
        boot,
        events: [from, from + 1].map((seq) => ({ agency: 'NFD', src: 'e1', seq, boot, incident: 'I-77' })),
      });
    await path.deliver(whole('b1', 1));
    await raise(path, contract(2, { rest: 'items: /events\n' }));
    const entries = await path.deliver(whole('b1', 1), whole('b1', 3), whole('b1', 3));
    expect(entries.map(({ outcome, original, itemIndex }) => [outcome, original, itemIndex])).toEqual([
      ['DUPLICATE_SUPPRESSED', 0, 0],
      ['DUPLICATE_SUPPRESSED', 0, 1],
      ['APPLIED', null, 0],
      ['APPLIED', null, 1],
      ['DUPLICATE_SUPPRESSED', 3, 0],
      ['DUPLICATE_SUPPRESSED', 4, 1],
    ]);
    await expectSoundLedger(path.url, FEED);
  });

  it('holds what may be a replay of several items of before, now that they are one message', async () => {
    const path = await startPipeline({ contract: contract(1, { rest: 'items: /events\n' }) });
    const whole = (from: number, status: string): string =>
      b(from, {
        boot: 'b1',
        status,
        events: [from, from + 1].map((seq) => ({ agency: 'NFD', src: 'e1', seq, incident: 'I-77' })),
      });
    await path.deliver(whole(1, 'A'));
    await raise(path, contract(2));
    const entries = await path.deliver(whole(1, 'A'), whole(1, 'A'), whole(3, 'A'));
    expect(entries.map(({ outcome, reason, original }) => [outcome, reason, original])).toEqual([
      ['KEY_CONFLICT', 'former_identity_unclear', 0],
      ['DUPLICATE_SUPPRESSED', 'same_key_and_digest', 2],
      ['APPLIED', 'applied', null],
    ]);
    await expectSoundLedger(path.url, FEED);
  });

  it('does not look under a contract that was replaced before anything came', async () => {
    const wrong = contract(1, { rest: 'digest: off\n' }).replace('/seq', '/other');
    const path = await startPipeline({ contract: wrong });
    await raise(path, contract(1, { rest: 'digest: off\n' }));
    await path.deliver(b(7, { other: 1 }));
    await raise(path, contract(2, { epoch: true }));
    // Under the mistaken contract its key would be that of 7.
    expect(outcomes(await path.deliver(b(8, { other: 7, boot: 'b1' })))).toEqual(['APPLIED']);
  });

  it('asks the window for the keys of before, and tells it where they are', async () => {
    const asked: string[][] = [];
    const told: string[][] = [];
    const { window } = await localWindow();
    const watched: Window = {
      lookup: (feed, keys) => (asked.push([...keys]), window.lookup(feed, keys)),
      record: (feed, update) => (told.push([...update.positions.keys()]), window.record(feed, update)),
      close: () => window.close(),
    };
    const path = await startPipeline({ contract: contract(1), window: watched });
    await path.deliver(b(1, { boot: 'b1' }));
    await raise(path, contract(2, { epoch: true }));
    await path.deliver(b(1, { boot: 'b1' }));
    const former = asked[0]?.[0];
    expect(asked[0]).toEqual([expect.stringMatching(/^1:/)]);
    expect(asked.at(-1)).toEqual([expect.stringMatching(/^2:/), former]);
    expect(told).toEqual([[former], [former]]);
  });
});

describe('a contract that changes the identity', () => {
  it('is refused with the same or a lower version once there are entries', async () => {
    const path = await startPipeline({ contract: contract(3) });
    await path.deliver(b(1, { boot: 'b1' }));
    for (const yaml of [contract(3, { epoch: true }), contract(2), contract(2, { epoch: true })]) {
      await expect(raise(path, yaml)).rejects.toThrow(ActivationRefused);
    }
    await expect(raise(path, contract(2))).rejects.toThrow(
      /identity\.version of feed cad-north is 2, and 3 is in force/,
    );
    expect(await raise(path, contract(4, { epoch: true }))).toMatchObject({ result: 'activated' });
    const back = activateContract(path.database.prisma, parseContract(contract(3)), {
      actor: 'test',
      commit: null,
      parse: (stored) => parseContract(stored.sourceText).contract,
      restore: true,
    });
    await expect(back).rejects.toThrow(ActivationRefused);
  });

  it('may have any version while there are none', async () => {
    const path = await startPipeline({ contract: contract(3) });
    expect(await raise(path, contract(2, { epoch: true }))).toMatchObject({ result: 'activated' });
    const [entry] = await path.deliver(b(1, { boot: 'b1' }));
    expect(entry).toMatchObject({ outcome: 'APPLIED', keyVersion: 2 });
    const heads = await query(path.url, 'SELECT key_version, epoch FROM source_head');
    expect(heads).toEqual([{ key_version: 2, epoch: 'b1' }]);
  });
});
