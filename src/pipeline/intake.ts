/**
 * The queue between the subscriber and the worker: deliveries in receive order, bounded by count and bytes.
 *
 * While it is open it never refuses a delivery (the bytes are in memory already); at the bound it answers that no more
 * should be read.
 * States: open (takes and gives) → closed (takes nothing new, gives what it has) → drained.
 */
import { deliverySize } from '../contract/delivery-size';
import type { DeliverySink, ReceivedDelivery } from '../mqtt/port';

/** How much a batch or the queue may hold. */
export interface BatchLimits {
  readonly maxDeliveries: number;
  /** Of their sizes: payload, topic and user properties (`deliverySize`). */
  readonly maxBytes: number;
}

/** A delivery that waits. Its size is kept, for it is asked for at every look at the queue. */
interface Waiting {
  readonly delivery: ReceivedDelivery;
  readonly sizeBytes: number;
}

export class Intake implements DeliverySink {
  private queue: Waiting[] = [];
  private bytes = 0;
  private full = false;
  private closed = false;
  private waiting: (() => void) | null = null;

  /** @param onRoom called when the queue was full and half of it has been taken */
  constructor(
    private readonly limits: BatchLimits,
    private readonly onRoom: () => void,
  ) {}

  offer(delivery: ReceivedDelivery): boolean {
    // Unacknowledged, so the broker delivers it again.
    if (this.closed) return false;
    const sizeBytes = deliverySize(delivery);
    this.queue.push({ delivery, sizeBytes });
    this.bytes += sizeBytes;
    this.wake();
    if (this.queue.length >= this.limits.maxDeliveries || this.bytes >= this.limits.maxBytes) this.full = true;
    return !this.full;
  }

  /** Deliveries that wait. */
  get depth(): number {
    return this.queue.length;
  }

  /** The next deliveries, at least one, in receive order; null once the intake is closed and empty. */
  async take(limits: BatchLimits): Promise<readonly ReceivedDelivery[] | null> {
    while (this.queue.length === 0) {
      if (this.closed) return null;
      await new Promise<void>((resolve) => (this.waiting = resolve));
    }
    return this.remove(this.countWithin(limits));
  }

  /** As `take`, but only a batch that waiting would not make any larger; null while there is none. */
  takeFull(limits: BatchLimits): readonly ReceivedDelivery[] | null {
    const count = this.countWithin(limits);
    return count < this.queue.length || count >= limits.maxDeliveries ? this.remove(count) : null;
  }

  /** Takes no more; `discard` also drops what waits, which the broker then delivers again. */
  close(discard: boolean): void {
    this.closed = true;
    if (discard) {
      this.queue = [];
      this.bytes = 0;
    }
    this.wake();
  }

  /** How many of the next deliveries make a batch: at least one, if there is any. */
  private countWithin(limits: BatchLimits): number {
    let count = 0;
    let bytes = 0;
    for (const { sizeBytes } of this.queue) {
      bytes += sizeBytes;
      if (count > 0 && (count >= limits.maxDeliveries || bytes > limits.maxBytes)) break;
      count += 1;
    }
    return count;
  }

  private remove(count: number): readonly ReceivedDelivery[] {
    const batch = this.queue.splice(0, count);
    for (const { sizeBytes } of batch) this.bytes -= sizeBytes;
    this.signalRoom();
    return batch.map(({ delivery }) => delivery);
  }

  private signalRoom(): void {
    const roomy = this.queue.length <= this.limits.maxDeliveries / 2 && this.bytes <= this.limits.maxBytes / 2;
    if (!this.full || !roomy) return;
    this.full = false;
    this.onRoom();
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = null;
    waiting?.();
  }
}
