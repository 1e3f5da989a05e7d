/** A binary heap: push and pop in O(log n); in O(1) for pushes in rising order, which is the common case. */
export class MinHeap<T> {
  private readonly ranks: number[] = [];
  private readonly values: T[] = [];

  get length(): number {
    return this.ranks.length;
  }

  push(rank: number, value: T): void {
    let at = this.ranks.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.rank(parent) <= rank) {
        break;
      }
      this.put(at, this.rank(parent), this.value(parent));
      at = parent;
    }
    this.put(at, rank, value);
  }

  /** Takes out what ranks below `limit`, lowest first. */
  *popBelow(limit: number): Generator<T, void, undefined> {
    while (this.ranks.length > 0 && this.rank(0) < limit) {
      yield this.pop();
    }
  }

  /** The lowest; the heap must not be empty. */
  pop(): T {
    const lowest = this.value(0);
    const last = this.ranks.length - 1;
    const rank = this.rank(last);
    const value = this.value(last);
    this.ranks.length = last;
    this.values.length = last;
    if (last > 0) {
      this.sink(rank, value);
    }
    return lowest;
  }

  private sink(rank: number, value: T): void {
    const length = this.ranks.length;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child + 1 < length && this.rank(child + 1) < this.rank(child)) {
        child += 1;
      }
      if (child >= length || this.rank(child) >= rank) {
        break;
      }
      this.put(at, this.rank(child), this.value(child));
      at = child;
    }
    this.put(at, rank, value);
  }

  private put(at: number, rank: number, value: T): void {
    this.ranks[at] = rank;
    this.values[at] = value;
  }

  // Every index is checked against the length before it is read; the casts say so.
  private rank(at: number): number {
    return this.ranks[at] as number;
  }

  private value(at: number): T {
    return this.values[at] as T;
  }
}
