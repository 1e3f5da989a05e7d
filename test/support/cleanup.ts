type Release = () => void | Promise<void>;

const releases: Release[] = [];

/**
 * Registers what has to be given back at the end of the test file; last in, first out. Every `start…` of this folder
 * registers itself, so a release must do no harm when the test has called it already.
 *
 * Jest runs `afterAll` hooks in the order of their definition, and this one is defined at import: a test file that
 * closes its clients in an `afterAll` of its own would do so after the servers are gone. Use `onCleanup` for them.
 */
export function onCleanup(release: Release): void {
  releases.push(release);
}

/** Releases everything. Outside Jest (a benchmark, the global teardown) it is called by hand. */
export async function cleanup(): Promise<void> {
  const errors: unknown[] = [];
  for (let release = releases.pop(); release !== undefined; release = releases.pop()) {
    try {
      await release();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} releases failed: ${errors.join('; ')}`);
}

// Absent in the global setup and in benchmarks.
if (typeof afterAll === 'function') afterAll(cleanup, 60_000);
