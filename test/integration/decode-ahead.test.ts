import { activateContract } from '../../src/ledger/feeds';
import { createLocalWindow } from '../../src/window/local';
import type { Window } from '../../src/window/window';
import { expectSoundLedger, readIncident } from '../support/ledger';
import { b, caseContract, delivery, parseContract, startPipeline, type TestPipeline } from '../support/pipeline';

const deliveries = (count: number) => Array.from({ length: count }, (_, index) => delivery(b(index + 1)));

/** Counts what is decoded under the contract that the pipeline begins with. */
function countDecoded(path: TestPipeline): { readonly decoded: number } {
  const counter = { decoded: 0 };
  const { active } = path.feed;
  const { contract, decoder } = active;
  const decode: typeof decoder.decode = (one) => {
    counter.decoded += 1;
    return decoder.decode(one);
  };
  path.feed.active = { ...active, decoder: { contract, decode } };
  return counter;
}

describe('decoding ahead', () => {
  it('decodes the next full batch while one is written, and no part of one', async () => {
    const decodedWhenWritten: number[] = [];
    const path: TestPipeline = await startPipeline({
      batchMaxDeliveries: 2,
      onStep: (step) => {
        if (step === 'written') decodedWhenWritten.push(counter.decoded);
      },
    });
    const counter = countDecoded(path);
    const offered = deliveries(5);
    path.offer(...offered);
    await path.stop();
    expect(decodedWhenWritten).toEqual([4, 4, 5]);
    expect(path.acknowledged).toEqual(offered);
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries.map(({ sequence }) => sequence)).toEqual(['1', '2', '3', '4', '5']);
  });

  it('keeps the order of a batch that is decoded in several slices', async () => {
    const path = await startPipeline({ batchMaxDeliveries: 120 });
    const offered = deliveries(260);
    path.offer(...offered);
    await path.stop();
    expect(path.acknowledged).toEqual(offered);
    const entries = await expectSoundLedger(path.url, path.feed.name);
    expect(entries.map(({ sequence, outcome }) => `${sequence} ${outcome}`)).toEqual(
      offered.map((_, index) => `${index + 1} APPLIED`),
    );
  });

  it('decodes again what was decoded under a contract that is no longer in force', async () => {
    const before = parseContract(caseContract());
    const after = parseContract(
      caseContract({ rest: 'effects:\n  - { do: set, field: state, to: { pointer: /status } }' }),
    );
    const local = createLocalWindow();
    let lookups = 0;
    // The second batch is decoded when it is looked up, and its transaction has not begun.
    const window: Window = {
      record: (feed, batch) => local.record(feed, batch),
      close: () => local.close(),
      lookup: async (feed, keys) => {
        lookups += 1;
        if (lookups === 2) await activate();
        return local.lookup(feed, keys);
      },
    };
    const path = await startPipeline({ batchMaxDeliveries: 2, window });
    const activate = () =>
      activateContract(path.database.prisma, after, { actor: 'test', commit: null, parse: () => before.contract });
    path.offer(...deliveries(6));
    await path.stop();
    const entries = await expectSoundLedger(path.url, path.feed.name);
    const { digest: old } = before;
    const { digest: now } = after;
    expect(entries.map(({ contractDigest }) => contractDigest)).toEqual([old, old, now, now, now, now]);
    expect(await readIncident(path.url, 'I-77')).toEqual({ status: 'ENROUTE', state: 'ENROUTE' });
  });

  it('gives up what it decoded ahead when it is abandoned', async () => {
    const path: TestPipeline = await startPipeline({
      batchMaxDeliveries: 2,
      onStep: (step) => {
        if (step === 'written') path.abandon();
      },
    });
    const offered = deliveries(4);
    path.offer(...offered);
    await path.stop();
    expect(path.acknowledged).toEqual(offered.slice(0, 2));
    expect(await expectSoundLedger(path.url, path.feed.name)).toHaveLength(2);
  });
});
