import type { OutboxRow } from '../../src/ledger/port';
import type { OutboundMessage } from '../../src/mqtt/port';
import { createLogger } from '../../src/ops/logger';
import { Relay, type RelayOptions } from '../../src/pipeline/relay';
import { onCleanup } from '../support/cleanup';
import { until } from '../support/wait';

type Answer = 'taken' | 'refused';

/**
 * A relay over rows in memory. `answer` decides what becomes of a publish (by default all are taken); `sent` are the
 * positions in the order in which they were published, `asked` how many rows were asked for each time.
 */
function startRelay(count: number, answer: (position: number) => Answer, options: Partial<RelayOptions> = {}) {
  const rows = Array.from({ length: count }, (_, position): OutboxRow => {
    return { position, term: 1, topic: 'cop/I-1', key: String(position), payload: Buffer.from('{}') };
  });
  const sent: number[] = [];
  const asked: number[] = [];
  const marks: number[] = [];
  const relay = new Relay({
    feed: 'cad',
    feedId: 1,
    outbox: {
      unsent: (_feedId, limit) => {
        asked.push(limit);
        return Promise.resolve(rows.filter(({ position }) => position > (marks.at(-1) ?? -1)).slice(0, limit));
      },
      markSent: (_feedId, position) => {
        marks.push(position);
        return Promise.resolve();
      },
    },
    publisher: {
      publish: ({ properties }: OutboundMessage) => {
        const position = Number(properties['ledger-position']);
        sent.push(position);
        return answer(position) === 'taken' ? Promise.resolve() : Promise.reject(new Error('refused'));
      },
      close: () => Promise.resolve(),
    },
    log: createLogger('silent'),
    chunk: 4,
    pollMs: 5,
    retry: { minMs: 1, maxMs: 2 },
    ...options,
  });
  onCleanup(() => relay.stop());
  relay.start();
  return { relay, sent, asked, marks };
}

describe('Relay', () => {
  it('sends a refused row alone until it is taken, and only then what follows', async () => {
    let refusals = 3;
    const { sent, asked, marks } = startRelay(7, (position) =>
      position === 2 && refusals-- > 0 ? 'refused' : 'taken',
    );
    await until(() => marks.at(-1) === 6, { what: 'all rows to be sent' });
    // 3 was on its way beside 2; it comes again after it, and nothing else has passed it by.
    expect(sent).toEqual([0, 1, 2, 3, 2, 2, 2, 3, 4, 5, 6]);
    expect(asked.slice(0, 5)).toEqual([4, 1, 1, 1, 4]);
    expect(marks).toEqual([1, 2, 6]);
  });

  it('waits by the back-off after a failure, whoever wakes it, and stops at once', async () => {
    const { relay, sent } = startRelay(3, () => 'refused', { retry: { minMs: 600_000_000, maxMs: 600_000_000 } });
    await until(() => sent.length === 3, { what: 'the first chunk' });
    for (let turn = 0; turn < 20; turn += 1) {
      relay.wake();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(sent).toEqual([0, 1, 2]);
    await relay.stop();
    expect(sent).toEqual([0, 1, 2]);
  });

  it('backs off from an outbox that cannot be read, and goes on when it can', async () => {
    let failures = 2;
    const marks: number[] = [];
    const { sent } = startRelay(0, () => 'taken', {
      outbox: {
        unsent: () => {
          if (failures-- > 0) return Promise.reject(new Error('no database'));
          const row = { position: 9, term: 1, topic: 'cop/I-1', key: 'k', payload: Buffer.from('{}') };
          return Promise.resolve(marks.length === 0 ? [row] : []);
        },
        markSent: (_feedId, position) => {
          marks.push(position);
          return Promise.resolve();
        },
      },
    });
    await until(() => marks.length === 1, { what: 'the row to be sent' });
    expect(sent).toEqual([9]);
  });
});
