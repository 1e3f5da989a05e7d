/** Lets so many in at a time; the others wait in order. */
export class Gate {
  private inside = 0;
  private readonly queue: (() => void)[] = [];

  constructor(private readonly size: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.inside >= this.size) await new Promise<void>((resolve) => this.queue.push(resolve));
    else this.inside++;
    try {
      return await work();
    } finally {
      const next = this.queue.shift();
      // The place is handed on, not given back: nobody can slip in between.
      if (next === undefined) this.inside--;
      else next();
    }
  }
}
