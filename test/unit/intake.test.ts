import { Intake } from '../../src/pipeline/intake';
import { delivery } from '../support/pipeline';

const BATCH = { maxDeliveries: 2, maxBytes: 10 };
const ROOMY = { maxDeliveries: 1000, maxBytes: 1000 };

function texts(batch: readonly { payload: Uint8Array }[] | null): string[] | null {
  return batch && batch.map(({ payload }) => Buffer.from(payload).toString());
}

/** Without a topic, so that its size is that of the text. */
const sized = (text: string) => delivery(text, { topic: '' });

function start(limits = ROOMY): { intake: Intake; rooms: () => number; offer: (...texts: string[]) => boolean[] } {
  let rooms = 0;
  const intake = new Intake(limits, () => (rooms += 1));
  return { intake, rooms: () => rooms, offer: (...payloads) => payloads.map((text) => intake.offer(sized(text))) };
}

describe('Intake', () => {
  it('gives batches in receive order, bounded by count', async () => {
    const { intake, offer } = start();
    offer('a', 'b', 'c');
    expect(intake.depth).toBe(3);
    expect(texts(await intake.take(BATCH))).toEqual(['a', 'b']);
    expect(texts(await intake.take(BATCH))).toEqual(['c']);
  });

  it('bounds a batch by bytes, and gives one delivery that is larger than the bound alone', async () => {
    const { intake, offer } = start();
    offer('12345', '12345', '1', 'larger than the bound', '2');
    const limits = { maxDeliveries: 100, maxBytes: 10 };
    expect(texts(await intake.take(limits))).toEqual(['12345', '12345']);
    expect(texts(await intake.take(limits))).toEqual(['1']);
    expect(texts(await intake.take(limits))).toEqual(['larger than the bound']);
    expect(texts(await intake.take(limits))).toEqual(['2']);
  });

  it.each([
    ['topic', { topic: 'x'.repeat(600) }],
    ['user properties', { topic: '', userProperties: { a: 'x'.repeat(300), b: ['y'.repeat(150), 'z'.repeat(147)] } }],
  ])('counts the bytes of the %s, for the queue and for a batch', async (_, heavy) => {
    const { intake, rooms } = start({ maxDeliveries: 1000, maxBytes: 1200 });
    const one = { ...delivery(''), ...heavy };
    expect([intake.offer(one), intake.offer(one)]).toEqual([true, false]);
    expect(await intake.take({ maxDeliveries: 1000, maxBytes: 1199 })).toEqual([one]);
    expect(rooms()).toBe(1);
  });

  it('waits for the first delivery', async () => {
    const { intake, offer } = start();
    const batch = intake.take(BATCH);
    offer('a');
    expect(texts(await batch)).toEqual(['a']);
  });

  it.each([
    ['count', { maxDeliveries: 4, maxBytes: 1000 }],
    ['bytes', { maxDeliveries: 1000, maxBytes: 4 }],
  ])(
    'is full at its bound by %s, takes what comes all the same, and says once that half of it is free',
    async (_, limits) => {
      const { intake, rooms, offer } = start(limits);
      expect(offer('1', '2', '3', '4', '5')).toEqual([true, true, true, false, false]);
      expect(intake.depth).toBe(5);
      await intake.take(BATCH);
      expect(rooms()).toBe(0); // three are more than half
      await intake.take({ ...BATCH, maxDeliveries: 1 });
      expect(rooms()).toBe(1);
      await intake.take(BATCH);
      expect(rooms()).toBe(1);
      expect(offer('6')).toEqual([true]);
    },
  );

  it('stays full until half is free, although it is below its bound again', async () => {
    const { intake, offer } = start({ maxDeliveries: 6, maxBytes: 1000 });
    offer('1', '2', '3', '4', '5', '6');
    await intake.take(BATCH);
    expect(offer('7')).toEqual([false]);
  });

  it('gives what it has once closed, then null, and takes nothing more', async () => {
    const { intake, offer } = start();
    offer('a');
    intake.close(false);
    expect(offer('b')).toEqual([false]);
    expect(texts(await intake.take(BATCH))).toEqual(['a']);
    expect(await intake.take(BATCH)).toBeNull();
  });

  it('ends whoever waits when it is closed, and drops what waits when told so', async () => {
    const { intake, offer } = start();
    const waiting = intake.take(BATCH);
    intake.close(false);
    expect(await waiting).toBeNull();

    const other = start();
    offer('a');
    other.offer('b');
    other.intake.close(true);
    expect(await other.intake.take(BATCH)).toBeNull();
  });
});
