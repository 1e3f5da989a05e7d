/** Waiting, with an end: of patience, or by a signal. */

/** The signal that ended the demo before its story did. */
export class DemoStopped extends Error {
  constructor(readonly signal: string) {
    super(`stopped by ${signal}`);
    this.name = 'DemoStopped';
  }
}

/** Something that always happens did not. The message is for people. */
export class DemoFailed extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DemoFailed';
  }
}

const EVERY_MS = 25;
const PATIENCE_MS = 30_000;

export class Patience {
  private signal: string | null = null;
  private failure: Error | null = null;

  /** @param stop resolves to the name of the signal that asks us to end */
  constructor(stop: Promise<string>) {
    void stop.then((signal) => {
      this.signal = signal;
    });
  }

  /** Something in the background broke: the next check throws. */
  fail(error: Error): void {
    this.failure ??= error;
  }

  /** @throws DemoStopped, DemoFailed */
  check(): void {
    if (this.signal !== null) throw new DemoStopped(this.signal);
    if (this.failure !== null) throw new DemoFailed(`the demo broke: ${this.failure.message}`, { cause: this.failure });
  }

  /** Asks until the answer is yes. @throws DemoStopped, DemoFailed after 30 s, and what `ask` throws */
  async until(what: string, ask: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      this.check();
      if (await ask()) return;
      if (performance.now() > deadline) throw new DemoFailed(`waited ${PATIENCE_MS / 1000} s in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }
}
