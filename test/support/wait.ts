export interface UntilOptions {
  /** What is waited for, for the message of a timeout. */
  readonly what: string;
  /** Default 30 000. */
  readonly timeoutMs?: number;
  /** Pause between two checks; default 25. */
  readonly everyMs?: number;
}

type Falsy = false | 0 | '' | null | undefined;

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Repeats `check` until it gives something truthy, and resolves to that. A check that throws counts as "not yet"; its
 * last error is the cause of the timeout's error.
 */
export async function until<T>(check: () => T | Promise<T>, options: UntilOptions): Promise<Exclude<T, Falsy>> {
  const { what, timeoutMs = 30_000, everyMs = 25 } = options;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    let failure: unknown = null;
    let value: T | undefined;
    try {
      value = await check();
      if (value) return value as Exclude<T, Falsy>;
    } catch (error) {
      failure = error;
    }
    if (Date.now() >= deadline) throw timeoutError(what, timeoutMs, value, failure);
    await sleep(everyMs);
  }
}

function timeoutError(what: string, timeoutMs: number, value: unknown, failure: unknown): Error {
  const last = failure === null ? `the last check gave ${String(value)}` : `the last check threw: ${String(failure)}`;
  return new Error(`waited ${timeoutMs} ms for ${what}; ${last}`, failure === null ? {} : { cause: failure });
}
