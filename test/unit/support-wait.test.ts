import { createServer } from 'node:net';
import { caseById } from '../support/cases';
import { cleanup, onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { until } from '../support/wait';

describe('until', () => {
  test('gives the first truthy value', async () => {
    let calls = 0;
    const next = (): string | null => {
      calls += 1;
      return calls === 3 ? 'third' : null;
    };
    await expect(until(next, { what: 'a third call', everyMs: 1 })).resolves.toBe('third');
  });

  test('says what it waited for, what the last check gave, and why it threw', async () => {
    const options = { what: 'rain', timeoutMs: 20, everyMs: 5 };
    await expect(until(() => 0, options)).rejects.toThrow('waited 20 ms for rain; the last check gave 0');
    const dry = new Error('dry');
    const failing = until(() => Promise.reject(dry), options);
    await expect(failing).rejects.toMatchObject({ message: expect.stringContaining('Error: dry'), cause: dry });
  });
});

describe('cleanup', () => {
  test('releases last in, first out, all of them, and reports each failure', async () => {
    const order: number[] = [];
    onCleanup(() => void order.push(1));
    onCleanup(() => Promise.reject(new Error('second')));
    onCleanup(() => void order.push(3));
    await expect(cleanup()).rejects.toThrow('second');
    expect(order).toEqual([3, 1]);
    await cleanup();
    expect(order).toEqual([3, 1]);
  });
});

describe('freePort', () => {
  test('is free, and below the range of outgoing connections', async () => {
    const port = await freePort();
    expect(port).toBeLessThan(32_768);
    await new Promise<void>((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
    });
  });
});

describe('cases', () => {
  test('are found by id, and an unknown id is an error', () => {
    expect(caseById('C001').area).toBe('mqtt-redelivery');
    expect(() => caseById('C999')).toThrow('no case C999');
  });
});
