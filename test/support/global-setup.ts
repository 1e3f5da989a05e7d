import { cleanup } from './cleanup';
import { buildIfStale } from './build';
import { createMigratedTemplate } from './database';
import { startSharedServers } from './shared-servers';

/** Jest's global setup: an up-to-date build for tests that spawn the product, and the servers that test files share. */
export default async function globalSetup(): Promise<void> {
  try {
    buildIfStale();
    await startSharedServers();
    await createMigratedTemplate();
  } catch (error) {
    await cleanup(); // Jest calls no teardown after a failed setup
    throw error;
  }
}
