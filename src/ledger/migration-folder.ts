import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

export interface Migration {
  /** Name of its folder, e.g. `0001_init`; migrations apply in the order of their names. */
  readonly name: string;
  readonly script: string;
}

/** The folder layout of `prisma migrate`: `<name>/migration.sql`. */
export interface MigrationFolder {
  /** Absolute. */
  readonly path: string;
  readonly migrations: readonly Migration[];
}

/** @throws what the file system throws; a folder without `migration.sql` is such an error. */
export async function readMigrationFolder(path: string): Promise<MigrationFolder> {
  const entries = await readdir(path, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  const migrations = names.sort().map(async (name): Promise<Migration> => {
    return { name, script: await readFile(join(path, name, 'migration.sql'), 'utf8') };
  });
  return { path: resolve(path), migrations: await Promise.all(migrations) };
}

/**
 * Whether `_prisma_migrations.checksum` is that of the script: SHA-256 of its bytes. A checkout may have changed the
 * line ends, which the engine accepts too.
 */
export function hasChecksum(migration: Migration, checksum: string): boolean {
  const unix = migration.script.replaceAll('\r\n', '\n');
  return [migration.script, unix, unix.replaceAll('\n', '\r\n')].some((script) => sha256(script) === checksum);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
