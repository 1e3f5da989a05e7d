/** Does the whole path grow with what it has seen? Its heap after garbage collection, while it drains one long backlog. */
import type { HeapSample } from './parts/whole-path';
import { drainPath, preparePath } from './rounds';
import type { Servers } from './servers';

export interface HeapReport {
  readonly samples: readonly HeapSample[];
  /** All samples lie within ±10 % of the first. */
  readonly flat: boolean;
}

const SAMPLES = [200_000, 400_000, 600_000, 800_000, 1_000_000];
const LAST_SAMPLE = 1_000_000;
/** Beyond the last sample, so that the queue is as full there as at the others. */
const MARGIN = 30_000;
const TOLERANCE = 0.1;

export async function measureHeap(
  servers: Servers,
  messages: number,
  nodeArgs: readonly string[],
  progress: (what: string) => void,
): Promise<HeapReport> {
  const count = Math.max(messages, LAST_SAMPLE + MARGIN);
  progress(`whole path, ${count} messages`);
  const path = await preparePath(servers, 'bench-heap');
  const { heap } = await drainPath(path, {
    messages: count,
    nodeArgs: ['--expose-gc', ...nodeArgs],
    published: 1,
    heapAt: SAMPLES,
  });
  const first = heap[0]?.heapUsedBytes ?? NaN;
  const flat =
    heap.length === SAMPLES.length && heap.every((at) => Math.abs(at.heapUsedBytes / first - 1) <= TOLERANCE);
  return { samples: heap, flat };
}

export function heapTable({ samples, flat }: HeapReport): string {
  const lines = samples.map(
    ({ messages, heapUsedBytes }) =>
      `${String(messages).padStart(9)} messages ${(heapUsedBytes / 1e6).toFixed(1).padStart(8)} MB`,
  );
  return [...lines, `heap after garbage collection: ${flat ? 'flat' : 'NOT flat'} (±${TOLERANCE * 100} %)`].join('\n');
}
