import { readConfig } from '../../src/config';
import { openDatabase } from '../../src/ledger/client';
import { createLogger } from '../../src/ops/logger';
import { activateContracts } from '../../src/startup/contracts';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { query } from '../support/ledger';
import { caseContract, parseContract } from '../support/pipeline';

const CONFIG = readConfig({}, () => {
  throw new Error('no secret files here');
});

/** A database, and starting instances on it with files as they say. */
async function setUp() {
  const { url } = await createMigratedDatabase();
  const instance = async () => {
    const database = await openDatabase({ url, poolSize: 2, applicationName: 'test' });
    onCleanup(() => database.close());
    return (files: Readonly<Record<string, string>>) =>
      activateContracts(
        database,
        Object.entries(files).map(([feed, filter]) =>
          parseContract(caseContract({ feed, topics: `["${filter}"]` }), `${feed}.yaml`),
        ),
        CONFIG,
        createLogger('silent'),
      );
  };
  const inForce = () =>
    query<{ feed: string; file: string; version: number }>(
      url,
      `SELECT f.name AS feed, h.contract_version AS version FROM feed f JOIN feed_head h ON h.feed_id = f.id
       ORDER BY f.name`,
    );
  return { url, instance, inForce };
}

describe('what is checked among contracts at start is what will be in force', () => {
  it('a file of earlier does not hide that the contract in force overlaps a new one: both are named', async () => {
    const { instance, inForce } = await setUp();
    const start = await instance();
    await start({ a: 'x/one' });
    await start({ a: 'x/#' });
    const refused = start({ a: 'x/one', b: 'x/two' });
    await expect(refused).rejects.toThrow(/b\.yaml:\d+:\d+: .*"x\/two" overlaps "x\/#" of feed a \(a\.yaml:\d+\)/);
    expect(await inForce()).toEqual([{ feed: 'a', version: 2 }]);
  });

  it('a file of earlier that would overlap is no reason to refuse: it is not in force', async () => {
    const { instance, inForce } = await setUp();
    const start = await instance();
    await start({ a: 'x/#' });
    await start({ a: 'x/one' });
    const feeds = await start({ a: 'x/#', b: 'x/two' });
    expect(feeds.map(({ name, active }) => [name, active.contract.topics])).toEqual([
      ['a', ['x/one']],
      ['b', ['x/two']],
    ]);
    expect(await inForce()).toHaveLength(2);
  });

  it('puts all files in force, or none where one is refused', async () => {
    const { url, instance, inForce } = await setUp();
    const start = await instance();
    await start({ b: 'b/#' });
    await query(url, 'UPDATE feed_head SET size = 5');
    const changed = caseContract({ feed: 'b', topics: '["b/#"]' }).replace('pointer: /src', 'pointer: /unit');
    const database = await openDatabase({ url, poolSize: 2, applicationName: 'test' });
    onCleanup(() => database.close());
    const files = [parseContract(caseContract({ feed: 'a', topics: '["a/#"]' })), parseContract(changed)];
    const refused = activateContracts(database, files, CONFIG, createLogger('silent'));
    await expect(refused).rejects.toThrow(/identity\.version/);
    expect(await inForce()).toEqual([{ feed: 'b', version: 1 }]);
  });

  it('two instances that start at once with contracts that overlap: one of them is refused', async () => {
    const { instance, inForce } = await setUp();
    const [one, two] = [await instance(), await instance()];
    for (let round = 0; round < 10; round += 1) {
      const results = await Promise.allSettled([
        one({ [`a${round}`]: `${round}/#` }),
        two({ [`b${round}`]: `${round}/two` }),
      ]);
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    }
    expect(await inForce()).toHaveLength(10);
  });
});
