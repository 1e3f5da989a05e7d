import { openDatabase, type Database } from '../../src/ledger/client';
import { createLeases } from '../../src/ledger/leases';
import type { Leases } from '../../src/ledger/port';
import { createLogger } from '../../src/ops/logger';
import { LeaseKeeper } from '../../src/pipeline/lease-keeper';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { query } from '../support/ledger';
import { until } from '../support/wait';

/** Long enough for a turn on a busy machine, short enough to wait for. */
const TTL_MS = 1500;
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `feed/${name}/default`);

let database: Database;
let url: string;

beforeAll(async () => {
  url = (await createMigratedDatabase()).url;
  database = await openDatabase({ url, poolSize: 4, applicationName: 'test' });
  onCleanup(() => database.close());
});

const keepers: LeaseKeeper[] = [];
/** Who consumes what, over all instances. */
const consumers = new Map<string, string>();
/** Names that were begun while another instance consumed under them. */
const overlaps: string[] = [];

afterEach(async () => {
  await Promise.all(keepers.splice(0).map((keeper) => keeper.stop()));
  await query(url, 'DELETE FROM lease');
  consumers.clear();
  overlaps.length = 0;
});

interface Instance {
  readonly keeper: LeaseKeeper;
  readonly consuming: ReadonlySet<string>;
  readonly events: string[];
  /** From now on nothing is renewed, as of a process that was killed. */
  die(): void;
}

function start(
  instanceId: string,
  options: { names?: readonly string[]; onAcquired?: (name: string) => void } = {},
): Instance {
  const alive = { now: true };
  const table = createLeases(database.prisma, instanceId, TTL_MS);
  const dead = (): never => {
    throw new Error('dead');
  };
  const leases: Leases = {
    acquire: async (name) => (alive.now ? table.acquire(name) : dead()),
    renew: async (name) => (alive.now ? table.renew(name) : dead()),
    release: async (name) => (alive.now ? table.release(name) : dead()),
    held: async () => (alive.now ? table.held() : dead()),
  };
  const consuming = new Set<string>();
  const events: string[] = [];
  const keeper = new LeaseKeeper({
    group: 'consumer',
    instanceId,
    names: () => Promise.resolve(options.names ?? NAMES),
    leases,
    ttlMs: TTL_MS,
    log: createLogger('silent'),
    onAcquired: async (name) => {
      options.onAcquired?.(name);
      if (consumers.has(name)) overlaps.push(name);
      consumers.set(name, instanceId);
      consuming.add(name);
      events.push(`+${name}`);
      return Promise.resolve();
    },
    onLost: async (name) => {
      consuming.delete(name);
      if (consumers.get(name) === instanceId) consumers.delete(name);
      events.push(`-${name}`);
      return Promise.resolve();
    },
  });
  keeper.start();
  keepers.push(keeper);
  return { keeper, consuming, events, die: () => (alive.now = false) };
}

/** All names are consumed, by one instance each, and nobody has more than `share`. */
async function shared(instances: readonly Instance[], share: number): Promise<void> {
  await until(
    () => {
      const all = instances.flatMap(({ consuming }) => [...consuming]).sort();
      return all.join() === NAMES.join() && instances.every(({ consuming }) => consuming.size <= share);
    },
    {
      what: `${NAMES.length} names, at most ${share} each: ${instances.map((i) => [...i.consuming].join(' ')).join(' | ')}`,
    },
  );
}

describe('LeaseKeeper, on Postgres', () => {
  it('shares seven names out among three, and among two when one of them dies', async () => {
    const one = start('one');
    await shared([one], 7);
    const two = start('two');
    await shared([one, two], 4);
    const three = start('three');
    await shared([one, two, three], 3);

    const before = new Set(two.consuming);
    two.die();
    await until(() => one.consuming.size + three.consuming.size === NAMES.length, { what: 'the names of the dead' });
    for (const name of before) expect(one.consuming.has(name) !== three.consuming.has(name)).toBe(true);
    expect(Math.max(one.consuming.size, three.consuming.size)).toBeLessThanOrEqual(4);
    expect([...one.keeper.held].sort()).toEqual([...one.consuming].sort());
  });

  it('lets nobody begin what another consumes, when three start at once and two stop again', async () => {
    const instances = ['one', 'two', 'three'].map((id) => start(id));
    await shared(instances, 3);
    await instances[0]?.keeper.stop();
    await shared(instances, 4);
    await instances[1]?.keeper.stop();
    await shared(instances, 7);
    expect(overlaps).toEqual([]);
  });

  it('gives everything back when it stops, so that the next need not wait for the expiry', async () => {
    const one = start('one');
    await shared([one], 7);
    await one.keeper.stop();
    expect(one.consuming.size).toBe(0);
    expect(await query(url, 'SELECT name FROM lease')).toEqual([]);
    const two = start('two');
    await shared([two], 7);
  });

  it('stops consuming what another took after it expired, and leaves that lease alone', async () => {
    const one = start('one', { names: ['feed/a/default'] });
    await until(() => one.consuming.size === 1, { what: 'the lease' });
    await query(url, "UPDATE lease SET owner = 'thief' WHERE name LIKE 'feed/%'");
    await until(() => one.consuming.size === 0, { what: 'the loss to be noticed' });
    expect(one.keeper.held).toEqual([]);
    expect(await query(url, "SELECT owner FROM lease WHERE name LIKE 'feed/%'")).toEqual([{ owner: 'thief' }]);
    // The thief never renews.
    await until(() => one.consuming.size === 1, { what: 'the lease again' });
  });

  it('keeps what it has while the database is away', async () => {
    const one = start('one', { names: ['feed/a/default'] });
    await until(() => one.consuming.size === 1, { what: 'the lease' });
    await query(url, 'ALTER TABLE lease RENAME TO lease_away');
    const before = [...one.events];
    await new Promise((resolve) => setTimeout(resolve, TTL_MS));
    await query(url, 'ALTER TABLE lease_away RENAME TO lease');
    expect(one.events).toEqual(before);
    await until(
      async () =>
        (await query(url, "SELECT 1 FROM lease WHERE expires_at > now() AND name LIKE 'feed/%'")).length === 1,
      {
        what: 'the renewal',
      },
    );
    expect(one.events).toEqual(before);
  });

  it('gives a name back under which nothing could be started, and tries it again', async () => {
    let failures = 0;
    const one = start('one', {
      names: ['feed/a/default'],
      onAcquired: () => {
        failures += 1;
        if (failures === 1) throw new Error('nothing can be started');
      },
    });
    await until(() => one.consuming.size === 1, { what: 'the second try' });
    expect(failures).toBe(2);
  });

  it('counts the instances of its own group alone', async () => {
    await createLeases(database.prisma, 'relay-1', 60_000).acquire('instance/relay/relay-1');
    await createLeases(database.prisma, 'gone', 1).acquire('instance/consumer/gone');
    await shared([start('one')], 7);
  });

  it('is told of names that come, and gives back those that go', async () => {
    const names = ['feed/a/default', 'feed/b/default'];
    const one = start('one', { names });
    await until(() => one.consuming.size === 2, { what: 'the first two' });
    names.splice(0, 1, 'feed/c/default');
    await until(() => [...one.consuming].sort().join() === 'feed/b/default,feed/c/default', { what: 'the others' });
    expect(await query(url, "SELECT name FROM lease WHERE name = 'feed/a/default'")).toEqual([]);
  });
});

describe('a lease', () => {
  it('is renewed by its owner alone, and never taken by that', async () => {
    const [mine, theirs] = ['mine', 'theirs'].map((owner) => createLeases(database.prisma, owner, 60_000));
    if (mine === undefined || theirs === undefined) throw new Error('two owners were made');
    expect(await mine.renew('x')).toBe(false);
    expect(await mine.held()).toEqual([]);
    await mine.acquire('x');
    expect([await mine.renew('x'), await theirs.renew('x')]).toEqual([true, false]);
    await mine.release('x');
    expect(await mine.renew('x')).toBe(false);
    expect(await theirs.acquire('x')).toBe(true);
  });
});
