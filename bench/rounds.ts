/** One round: every part drains a backlog of its own, one after another, on topics, sessions and databases of this round. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as MigrateModule from '../src/ledger/migrate';
import { onCleanup } from '../test/support/cleanup';
import { type BrokerSession, checkDrained, openSession, publishBacklog } from './broker-session';
import { type Measured, runPart } from './child';
import { checkLedger, checkPeer } from './ledger';
import type { BareJob } from './parts/bare';
import type { PerMessageJob } from './parts/per-message-prisma';
import type { WholePathJob, WholePathResult } from './parts/whole-path';
import { built, REPOSITORY } from './product';
import type { Servers } from './servers';
import { type Workload, workload } from './workload';

export interface RoundOptions {
  readonly round: number;
  readonly messages: number;
  readonly nodeArgs: readonly string[];
  /** Told what is under way, for people who wait. */
  readonly progress: (what: string) => void;
}

export interface RoundResult {
  readonly bare: Measured;
  readonly perMessagePrisma: Measured;
  readonly firstSeen: Measured;
  readonly replayBurst: Measured;
}

/** The slow one needs no more to show its rate. */
const MOST_PER_MESSAGE = 2000;

/** @throws Error where a part loses, repeats or leaves a message */
export async function runRound(servers: Servers, options: RoundOptions): Promise<RoundResult> {
  const { round, progress } = options;
  progress(`round ${round}: bare subscriber`);
  const bare = await drainBare(servers, options);
  progress(`round ${round}: one Prisma transaction a message`);
  const perMessagePrisma = await drainPerMessage(servers, options);
  const path = await preparePath(servers, `bench-path-${round}`);
  progress(`round ${round}: whole path, first seen`);
  const firstSeen = await drainPath(path, { ...options, published: 1 });
  progress(`round ${round}: whole path, replay burst`);
  const replayBurst = await drainPath(path, { ...options, published: 2 });
  return { bare, perMessagePrisma, firstSeen, replayBurst };
}

async function drainBare({ mqttUrl }: Servers, { round, messages, nodeArgs }: RoundOptions): Promise<Measured> {
  const feed = workload(`bench-bare-${round}`);
  const session = await queueBacklog(mqttUrl, feed.feed, feed, messages);
  const job: BareJob = { url: mqttUrl, clientId: session.clientId, messages };
  const measured = await runPart<Measured>('bare', job, nodeArgs);
  await checkDrained(session);
  return measured;
}

async function drainPerMessage(servers: Servers, { round, messages, nodeArgs }: RoundOptions): Promise<Measured> {
  const { mqttUrl, postgres } = servers;
  const feed = workload(`bench-peer-${round}`);
  const databaseUrl = await createDatabase(postgres, feed);
  const count = Math.min(messages, MOST_PER_MESSAGE);
  const session = await queueBacklog(mqttUrl, feed.feed, feed, count);
  const job: PerMessageJob = { url: mqttUrl, clientId: session.clientId, messages: count, databaseUrl };
  const measured = await runPart<Measured>('per-message-prisma', job, nodeArgs);
  await checkDrained(session);
  await checkPeer(databaseUrl, count);
  return measured;
}

/** The whole path with its database, which lasts over both backlogs. */
export interface PreparedPath {
  readonly feed: Workload;
  readonly clientId: string;
  readonly env: { readonly DATABASE_URL: string; readonly MQTT_URL: string } & Readonly<Record<string, string>>;
}

export async function preparePath({ mqttUrl, redisUrl, postgres }: Servers, name: string): Promise<PreparedPath> {
  const feed = workload(name);
  const contracts = mkdtempSync(join(tmpdir(), 'replay-ledger-bench-'));
  onCleanup(() => rmSync(contracts, { recursive: true, force: true }));
  writeFileSync(join(contracts, `${name}.yaml`), feed.contract);
  const env = {
    DATABASE_URL: await createDatabase(postgres, feed),
    REDIS_URL: redisUrl,
    REDIS_PREFIX: name,
    MQTT_URL: mqttUrl,
    MQTT_CLIENT_ID_PREFIX: 'bench',
    CONTRACTS_DIR: contracts,
  };
  return { feed, clientId: `bench-${name}-default`, env };
}

export interface PathDrain extends Pick<RoundOptions, 'messages' | 'nodeArgs'> {
  /** How often these messages have been published, this time included: from the second on they are replays. */
  readonly published: number;
  readonly heapAt?: readonly number[];
}

export async function drainPath(path: PreparedPath, drain: PathDrain): Promise<WholePathResult> {
  const { feed, clientId, env } = path;
  const { messages, nodeArgs, published, heapAt = [] } = drain;
  const session = await queueBacklog(env.MQTT_URL, clientId, feed, messages);
  const job: WholePathJob = { env, feed: feed.feed, messages, heapAt };
  const measured = await runPart<WholePathResult>('whole-path', job, nodeArgs);
  await checkDrained(session);
  await checkLedger(env.DATABASE_URL, feed.feed, messages, published - 1);
  return measured;
}

async function queueBacklog(url: string, clientId: string, feed: Workload, messages: number): Promise<BrokerSession> {
  const session = { url, clientId, topicFilter: feed.topicFilter };
  await openSession(session);
  await publishBacklog(url, feed.messages(messages));
  return session;
}

/** Of its own, with the product's tables. */
async function createDatabase(postgres: Servers['postgres'], { feed }: Workload): Promise<string> {
  const { migrate } = built<typeof MigrateModule>('ledger/migrate');
  const url = await postgres.createDatabase(feed.replaceAll('-', '_'));
  await migrate(url, { migrationsDir: join(REPOSITORY, 'prisma/migrations') });
  return url;
}
