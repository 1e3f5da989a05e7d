import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { onCleanup } from './cleanup';
import { freePort } from './free-port';
import { type ServerProgram, serverPrograms } from './packages';
import { watchFolder } from './reaper';
import { ServerProcess } from './server-process';
import { ensureServerFolder, giveToServers, makeServerFolder, runAsServerUser } from './server-user';
import { sleep } from './wait';

export interface PostgresOptions {
  /** An existing data folder (a copy), or where to make one; default a new temporary folder, removed at the end. */
  readonly dataDir?: string;
  readonly port?: number;
  /** Server settings, over the defaults of this module; `fsync: 'on'` for durability tests. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgresServer {
  readonly port: number;
  readonly dataDir: string;
  /** Superuser, database `postgres`. */
  readonly adminUrl: string;
  readonly pid: number;
  readonly running: boolean;
  url(database: string): string;
  /** On the same port and data folder; waits until it takes queries. */
  start(): Promise<void>;
  /** `fast` rolls back and shuts down in order; `immediate` is a crash that recovery has to repair. Default `fast`. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  kill9(): Promise<void>;
  /**
   * A copy of the data folder as of now, that `startPostgres({ dataDir })` starts on. Of a running server it is an
   * online base backup: clients go on, and what committed before the call is in it.
   */
  copyData(to: string): Promise<void>;
  createDatabase(name: string): Promise<string>;
  dropDatabase(name: string): Promise<void>;
  logTail(lines?: number): string;
}

const USER = 'postgres';
/** Names the data folder that new clusters are copied from; `initdb` takes a second, a copy a tenth. */
const TEMPLATE = 'TEST_POSTGRES_TEMPLATE';

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  fsync: 'off',
  jit: 'off',
  timezone: 'GMT',
  log_timezone: 'GMT',
};

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const program = (await serverPrograms()).postgres;
  const server = new RealPostgres(program, options.port ?? (await freePort()), options);
  if (!existsSync(join(server.dataDir, 'PG_VERSION'))) await createCluster(server.dataDir);
  await server.start();
  return server;
}

let template: Promise<string> | null = null;

/** The data folder that clusters are copied from, made at the first call; later processes find it by environment. */
export function postgresTemplate(): Promise<string> {
  const handed = process.env[TEMPLATE];
  if (handed !== undefined) return Promise.resolve(handed);
  template ??= initialise();
  return template;
}

export async function handOnPostgresTemplate(): Promise<void> {
  process.env[TEMPLATE] = await postgresTemplate();
}

async function initialise(): Promise<string> {
  const { path, env } = (await serverPrograms()).postgres;
  const folder = makeServerFolder('postgres-template');
  watchFolder(folder);
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, 'data');
  const args = ['-D', data, '-U', USER, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await runAsServerUser(join(dirname(path), 'initdb'), args, env);
  return data;
}

async function createCluster(dataDir: string): Promise<void> {
  const from = await postgresTemplate();
  ensureServerFolder(dirname(dataDir));
  rmSync(dataDir, { recursive: true, force: true });
  await runAsServerUser('cp', ['-Rp', from, dataDir]);
}

/** Runs `work` on a connection of its own. */
export async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined); // a server that is killed tells idle clients by this event; the query fails too
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

class RealPostgres implements PostgresServer {
  readonly dataDir: string;
  private readonly server: ServerProcess;

  constructor(
    program: ServerProgram,
    readonly port: number,
    options: PostgresOptions,
  ) {
    const settings = Object.entries({ ...SETTINGS, ...options.settings, port: String(port) });
    const flags = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const dataDir = (folder: string): string => options.dataDir ?? join(folder, 'data');
    this.server = new ServerProcess({
      name: 'postgres',
      command: program.path,
      args: (folder) => ['-D', dataDir(folder), ...flags],
      env: program.env,
      probe: () => withClient(this.adminUrl, async (client) => void (await client.query('SELECT 1'))),
      endSignal: 'QUIT', // SIGKILL would leave its shared memory behind
    });
    this.dataDir = dataDir(this.server.folder);
  }

  get adminUrl(): string {
    return this.url('postgres');
  }

  get pid(): number {
    return this.server.pid;
  }

  get running(): boolean {
    return this.server.running;
  }

  url(database: string): string {
    return `postgresql://${USER}@127.0.0.1:${this.port}/${encodeURIComponent(database)}`;
  }

  async start(): Promise<void> {
    const deadline = Date.now() + 10_000;
    for (;;) {
      try {
        return await this.server.start();
      } catch (error) {
        // After kill9 the server's children live on for a moment, and the folder counts as in use until they are gone.
        const inUse = /pre-existing shared memory block|lock file "postmaster\.pid"/.test(this.server.logTail(4));
        if (!inUse || Date.now() > deadline) throw error;
        await sleep(100);
      }
    }
  }

  stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    return this.server.stop(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  kill9(): Promise<void> {
    return this.server.kill9();
  }

  logTail(lines?: number): string {
    return this.server.logTail(lines);
  }

  async copyData(to: string): Promise<void> {
    rmSync(to, { recursive: true, force: true });
    ensureServerFolder(dirname(to));
    if (!this.running) await this.copyFiles(to);
    else await withClient(this.adminUrl, (client) => this.onlineCopy(client, to));
    rmSync(join(to, 'postmaster.pid'), { force: true });
  }

  async createDatabase(name: string): Promise<string> {
    await withClient(this.adminUrl, (client) => client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`));
    return this.url(name);
  }

  async dropDatabase(name: string): Promise<void> {
    const drop = (client: Client) =>
      client.query(`DROP DATABASE IF EXISTS ${client.escapeIdentifier(name)} WITH (FORCE)`);
    await withClient(this.adminUrl, drop);
  }

  /** As "Making a Base Backup Using the Low Level API" of the Postgres manual; the log is copied last. */
  private async onlineCopy(client: Client, to: string): Promise<void> {
    const version = await client.query<{ v: number }>(`SELECT current_setting('server_version_num')::int AS v`);
    const modern = (version.rows[0]?.v ?? 0) >= 150_000;
    await client.query(modern ? `SELECT pg_backup_start('copy', true)` : `SELECT pg_start_backup('copy', true, false)`);
    await this.copyFiles(to);
    const end = modern ? 'pg_backup_stop(false)' : 'pg_stop_backup(false, false)';
    const stopped = await client.query<{ labelfile: string }>(`SELECT labelfile FROM ${end}`);
    rmSync(join(to, 'pg_wal'), { recursive: true, force: true });
    await runAsServerUser('cp', ['-Rp', join(this.dataDir, 'pg_wal'), join(to, 'pg_wal')]);
    const label = join(to, 'backup_label');
    writeFileSync(label, stopped.rows[0]?.labelfile ?? '', { mode: 0o600 });
    giveToServers(label);
  }

  /** A running server removes files while we copy; only that is forgiven. */
  private async copyFiles(to: string): Promise<void> {
    try {
      await runAsServerUser('cp', ['-Rp', this.dataDir, to]);
    } catch (error) {
      const lines = error instanceof Error ? error.message.split('\n').slice(1) : [];
      const vanished = lines.length > 0 && lines.every((line) => line.endsWith('No such file or directory'));
      if (!this.running || !vanished) throw error;
    }
  }
}
