import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { onCleanup } from '../support/cleanup';
import { startScript } from '../support/process';
import type { TestProcess } from '../support/process';

/** The product's own migrations. */
export const MIGRATIONS = resolve(__dirname, '../../prisma/migrations');

export interface Outcome {
  readonly applied?: readonly string[];
  readonly error?: { readonly name: string; readonly code: string; readonly message: string };
}

/** Migrates in a process of its own: the schema engine is an ES module, which Jest's module system does not import. */
export function startMigration(url: string, migrationsDir: string, lockTimeoutMs?: number): TestProcess {
  return startScript(`
    const { migrate } = require('./src/ledger/migrate');
    migrate(${JSON.stringify(url)}, ${JSON.stringify({ migrationsDir, lockTimeoutMs })}).then(
      ({ applied }) => console.log('OUTCOME ' + JSON.stringify({ applied })),
      ({ name, code, message }) => console.log('OUTCOME ' + JSON.stringify({ error: { name, code, message } })),
    );`);
}

export async function outcomeOf(process: TestProcess): Promise<Outcome> {
  const exit = await process.exit;
  const [, json] = await process.waitForLine(/^OUTCOME (.*)$/);
  if (exit.code !== 0) throw new Error(`it left with ${exit.code}: ${process.stderr}`);
  return JSON.parse(json ?? '') as Outcome;
}

export function migrateAlone(url: string, migrationsDir: string, lockTimeoutMs?: number): Promise<Outcome> {
  return outcomeOf(startMigration(url, migrationsDir, lockTimeoutMs));
}

/** A folder of migrations, as `{ '0001_first': 'CREATE TABLE …' }`. */
export function migrationsOf(scripts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, script] of Object.entries(scripts)) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'migration.sql'), script);
  }
  return folder;
}
