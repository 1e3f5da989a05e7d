/**
 * The embedded database: PGlite, i.e. Postgres as WebAssembly inside this process, in a folder (design section 9).
 *
 * For trying and developing. A killed process loses nothing that was committed: every write has reached the operating
 * system. A power loss may, because nothing is forced to the disk. It takes about 0.5 GB of memory, six seconds to make
 * a new folder, and half a second to open one.
 */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { createPrisma, once } from '../ledger/client';
import type { EmbeddedDatabase } from '../ledger/client';
import { StorageError } from '../ledger/storage-error';
import { lockFolder } from './folder-lock';
import { pgliteAdapterFactory } from './pglite-adapter';

export interface EmbeddedOptions {
  /** Made if it does not exist. The database is its folder `database`; the lock lies beside it. */
  readonly dataDir: string;
}

/** Transactions wait for each other here, so that the wait is part of a transaction's time. */
const TRANSACTION_TIMEOUT_MS = 60_000;

/** What sessions on a server get too, see ledger/postgres-adapter.ts. */
const SETTINGS = "SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO, YMD'; SET search_path TO public";

/**
 * Opens the embedded database, and makes it if it is not there. Call `close()`: a folder that was not closed is
 * recovered at the next opening.
 *
 * @throws StorageError FOLDER_LOCKED if a process (this one too) has it open; FOLDER_UNUSABLE
 */
export async function openEmbeddedDatabase(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const lock = await lockFolder(options.dataDir);
  try {
    const client = await openClient(options.dataDir);
    const adapterFactory = pgliteAdapterFactory(client);
    const prisma = createPrisma(adapterFactory, TRANSACTION_TIMEOUT_MS);
    const close = once(async () => {
      try {
        await prisma.$disconnect();
        await client.close();
      } finally {
        await lock.release();
      }
    });
    return { kind: 'embedded', prisma, adapterFactory, close };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function openClient(dataDir: string): Promise<PGlite> {
  const folder = join(dataDir, 'database');
  try {
    if (!existsSync(folder)) await initialise(dataDir, folder);
    const client = await start(folder);
    await client.exec(SETTINGS);
    return client;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StorageError('FOLDER_UNUSABLE', `cannot open the embedded database in ${folder}: ${reason}`, {
      cause: error,
    });
  }
}

/**
 * Makes the database elsewhere and moves it into its place when it is complete: a process killed in the first seconds
 * would leave a folder that Postgres cannot start on, and takes for its own.
 */
async function initialise(dataDir: string, folder: string): Promise<void> {
  const draft = join(dataDir, 'database.new');
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true });
  const client = await start(draft);
  await client.close();
  await rename(draft, folder);
}

function start(folder: string): Promise<PGlite> {
  // With relaxed durability a query would resolve before its commit has left this process.
  return PGlite.create(folder, { relaxedDurability: false });
}
