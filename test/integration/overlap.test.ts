/** A batch is committed while the window is told of the one before, and the next one is decoded. */
import { createLocalWindow } from '../../src/window/local';
import type { Window } from '../../src/window/window';
import { expectSoundLedger, query } from '../support/ledger';
import { b, delivery, startPipeline, type TestPipeline } from '../support/pipeline';
import { until } from '../support/wait';

const STEPS = ['looked-up', 'read', 'decided', 'written', 'committed', 'recorded', 'acknowledged', 'woken'] as const;

const deliveries = (count: number) => Array.from({ length: count }, (_, index) => delivery(b(index + 1)));

async function expectAllApplied(path: TestPipeline, count: number): Promise<void> {
  const entries = await expectSoundLedger(path.url, path.feed.name);
  const each = Array.from({ length: count }, (_, index) => `${index + 1} APPLIED`);
  expect(entries.map(({ sequence, outcome }) => `${sequence} ${outcome}`)).toEqual(each);
}

/** A window that answers `record` when it is let. */
function slowToRecord() {
  const local = createLocalWindow();
  const waiting: (() => void)[] = [];
  let held = true;
  const window: Window = {
    lookup: (feed, keys) => local.lookup(feed, keys),
    close: () => local.close(),
    record: async (feed, update) => {
      if (held) await new Promise<void>((resolve) => waiting.push(resolve));
      return local.record(feed, update);
    },
  };
  const release = () => {
    held = false;
    for (const go of waiting.splice(0)) go();
  };
  return { window, release };
}

it('the next batch is committed before the window has answered; nothing is acknowledged before, and then in order', async () => {
  const { window, release } = slowToRecord();
  const path = await startPipeline({ batchMaxDeliveries: 10, window });
  const offered = deliveries(40);
  path.offer(...offered);
  await until(async () => (await path.entries()).length === 20, { what: 'two batches' });
  expect(path.acknowledged).toEqual([]);
  release();
  await path.stop();
  expect(path.acknowledged).toEqual(offered);
  await expectAllApplied(path, offered.length);
});

it('what is taken while the steps of the batch before are still being reached is landed, and in its order', async () => {
  const { window, release } = slowToRecord();
  const path = await startPipeline({ batchMaxDeliveries: 120, window });
  const { contract, decoder } = path.feed.active;
  const offered = deliveries(200);
  let decoded = 0;
  // In the second slice of a batch that was not full a whole one comes in, and the window answers.
  const decode: typeof decoder.decode = (one) => {
    decoded += 1;
    if (decoded === 60) {
      path.offer(...offered.slice(70, 190));
      release();
    }
    return decoder.decode(one);
  };
  path.feed.active = { ...path.feed.active, decoder: { contract, decode } };
  path.offer(...offered.slice(0, 10));
  await until(async () => (await path.entries()).length === 10, { what: 'the first batch' });
  path.offer(...offered.slice(10, 70));
  await until(() => decoded >= 60, { what: 'the second slice' });
  path.offer(...offered.slice(190));
  await path.stop();
  expect(path.acknowledged).toEqual(offered);
  await expectAllApplied(path, offered.length);
});

it.each(STEPS)('a database that hangs up at the step %s loses and repeats nothing', async (at) => {
  let reached = 0;
  const path: TestPipeline = await startPipeline({
    batchMaxDeliveries: 20,
    onStep: (step) => {
      if (step !== at) return;
      reached += 1;
      if (reached % 2 === 1 && reached < 8) void hangUp(path.url);
    },
  });
  const offered = deliveries(100);
  path.offer(...offered);
  await until(() => path.acknowledged.length >= offered.length, { what: 'every acknowledgement' });
  await path.stop();
  expect(path.acknowledged).toEqual(offered);
  await expectAllApplied(path, offered.length);
});

it.each(STEPS.flatMap((step) => [[step, 'stop'] as const, [step, 'abandon'] as const]))(
  'at the step %s, %s acknowledges nothing that is not committed, and nothing later',
  async (at, how) => {
    let reached = 0;
    let ended = Promise.resolve();
    const path: TestPipeline = await startPipeline({
      batchMaxDeliveries: 20,
      onStep: (step) => {
        if (step !== at) return;
        reached += 1;
        if (reached !== 2) return;
        if (how === 'abandon') path.abandon();
        ended = path.stop();
      },
    });
    const offered = deliveries(95);
    path.offer(...offered);
    await until(() => reached >= 2, { what: 'the second batch' });
    await ended;
    const acknowledged = path.acknowledged.length;
    expect(path.acknowledged).toEqual(offered.slice(0, acknowledged));
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
    if (how === 'stop') expect(acknowledged).toBe(offered.length);
  },
);

it('bytes that the database refuses are isolated, and their message is held when it takes them', async () => {
  const path = await startPipeline({ batchMaxDeliveries: 50 });
  const refused = delivery(b(7, { status: 'refused for now' }));
  await query(
    path.url,
    `CREATE FUNCTION refuse_some() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.size_bytes = ${refused.payload.byteLength} THEN
         RAISE EXCEPTION 'refused' USING ERRCODE = 'numeric_value_out_of_range';
       END IF;
       RETURN NEW; END $$`,
  );
  await query(
    path.url,
    'CREATE TRIGGER refuse_some BEFORE INSERT ON payload FOR EACH ROW EXECUTE FUNCTION refuse_some()',
  );
  const offered = deliveries(120).with(6, refused);
  path.offer(...offered);
  await until(async () => (await path.entries()).length === 6, { what: 'those before it' });
  expect(path.acknowledged).toEqual([]);
  await query(path.url, 'DROP TRIGGER refuse_some ON payload');
  await path.stop();
  expect(path.acknowledged).toEqual(offered);
  const entries = await expectSoundLedger(path.url, path.feed.name);
  expect(entries.map(({ outcome }) => outcome)).toEqual(
    offered.map((one) => (one === refused ? 'EFFECT_FAILED' : 'APPLIED')),
  );
});

async function hangUp(url: string): Promise<void> {
  await query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = 'test' AND datname = current_database() AND pid <> pg_backend_pid()`,
  );
}
