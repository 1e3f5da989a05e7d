/**
 * Prisma's schema engine as WebAssembly: the one that `prisma migrate` runs, without the binary that the Prisma
 * command line downloads. It keeps `_prisma_migrations` as `prisma migrate` does.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type * as bindingsModule from '@prisma/schema-engine-wasm/schema_engine_bg' with { 'resolution-mode': 'import' };
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { SqlMigrationAwareDriverAdapterFactory } from '@prisma/driver-adapter-utils';
import type { EmbeddedDatabase } from './client';
import type { MigrationFolder } from './migration-folder';

type Bindings = typeof bindingsModule;
type SchemaEngine = Bindings['SchemaEngine']['prototype'];
type MigrationList = Parameters<SchemaEngine['applyMigrations']>[0]['migrationsList'];

/** The part used here: the compiler's library has WebAssembly only among the types of browsers. */
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: Readonly<Record<string, object>>,
  ): Promise<{ readonly instance: { readonly exports: { __wbindgen_start(): void } } }>;
};

const NO_FILTER = { externalTables: [], externalEnums: [] };

let bindings: Promise<Bindings> | null = null;

/**
 * The package expects a bundler to load its `.wasm`; under Node that is done by hand. Done once a process, 40 ms.
 * The package is an ES module, hence the dynamic import.
 */
function loadBindings(): Promise<Bindings> {
  return (bindings ??= instantiate());
}

async function instantiate(): Promise<Bindings> {
  const name = '@prisma/schema-engine-wasm/schema_engine_bg';
  const loaded = await import('@prisma/schema-engine-wasm/schema_engine_bg');
  const bytes = await readFile(join(dirname(require.resolve(name)), 'schema_engine_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(bytes, { './schema_engine_bg.js': withIdleTimers(loaded) });
  loaded.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
  return loaded;
}

/**
 * The engine sets a timer of ten seconds for its lock and never clears it, which would keep a process that has migrated
 * and is otherwise done alive for as long.
 */
function withIdleTimers(imports: object): object {
  const idleTimer = (callback: () => void, ms: number): unknown => setTimeout(callback, ms).unref();
  const names = Object.keys(imports).filter((name) => name.startsWith('__wbg_setTimeout_'));
  return { ...imports, ...Object.fromEntries(names.map((name) => [name, idleTimer])) };
}

async function startEngine(factory: SqlMigrationAwareDriverAdapterFactory): Promise<SchemaEngine> {
  const { SchemaEngine } = await loadBindings();
  return SchemaEngine.new({ datamodels: undefined }, ignoreLog, bindMigrationAwareSqlAdapterFactory(factory));
}

/** Applies what is pending, in order; each script is one call of the adapter's `executeScript`. */
export async function applyMigrations(
  factory: SqlMigrationAwareDriverAdapterFactory,
  folder: MigrationFolder,
): Promise<readonly string[]> {
  const engine = await startEngine(factory);
  try {
    const output = await engine.applyMigrations({ migrationsList: migrationList(folder), filters: NO_FILTER });
    return output.appliedMigrationNames;
  } finally {
    engine.free();
  }
}

/**
 * What would have to change in a database to make it what the Prisma schema says.
 *
 * @param database to which every migration was applied. Only PGlite's adapter reads the type "char" of the catalogue,
 * which describing a database takes; that of pg does not.
 * @param schema text of schema.prisma.
 * @returns an SQL script, or null where they agree. What Prisma schemas cannot say (functions, triggers, checks,
 * partial indexes) is not compared.
 */
export async function schemaDrift(database: EmbeddedDatabase, schema: string): Promise<string | null> {
  const engine = await startEngine(database.adapterFactory);
  const files = [{ path: 'schema.prisma', content: schema }];
  try {
    const result = await engine.diff({
      from: { tag: 'schemaDatasource', configDir: '.', files },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: true,
      filters: NO_FILTER,
    });
    return result.exitCode === 0 ? null : (result.stdout ?? '');
  } finally {
    engine.free();
  }
}

function ignoreLog(): void {
  // The engine reports what it does, step by step; errors come by rejection.
}

function migrationList(folder: MigrationFolder): MigrationList {
  return {
    baseDir: folder.path,
    lockfile: { path: 'migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: folder.migrations.map(({ name, script }) => ({
      path: name,
      migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: script } },
    })),
  };
}
