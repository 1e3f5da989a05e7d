import { cleanup } from './cleanup';

/** Ends what the global setup started, in the same process. */
export default async function globalTeardown(): Promise<void> {
  await cleanup();
}
