/** What a reader of some agencies can read: by list, cursor, look-up, sum and stream. */
import { readFilter } from '../../src/api/model/filter';
import { readPage } from '../../src/api/model/page';
import { DEFAULT_LIMITS } from '../../src/api/limits';
import { DecisionStream } from '../../src/api/live/stream';
import { Gate } from '../../src/api/live/gate';
import { HeadWatcher } from '../../src/api/live/heads';
import { ContractTexts } from '../../src/api/read/contracts';
import { IncidentRecord } from '../../src/api/read/incident';
import { createLoaders } from '../../src/api/read/loaders';
import { decisionPage, feedsInScope } from '../../src/api/read/walk';
import { sourceExists, sourcePage } from '../../src/api/statements/facts';
import type { Viewer } from '../../src/api/viewer';
import { onCleanup } from '../support/cleanup';
import type { TestPipeline } from '../support/pipeline';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';

const NFD: Viewer = { name: 'north', roles: ['reviewer'], agencies: ['NFD'], mayReadPayloads: true };
const SFD: Viewer = { name: 'south', roles: ['reviewer'], agencies: ['SFD'], mayReadPayloads: true };
const NOBODY: Viewer = { name: 'nobody', roles: ['reviewer'], agencies: [], mayReadPayloads: true };

let north: TestPipeline;
let south: TestPipeline;

beforeAll(async () => {
  north = await startPipeline();
  south = await startPipeline({
    url: north.url,
    contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }),
  });
  await north.deliver(
    b(1),
    b(1, { agency: 'SFD' }),
    'garbage',
    b(2, { incident: 'I-1' }),
    b(1),
    b(1, { agency: 'SFD' }),
  );
  await south.deliver(delivery(b(1, { agency: 'SFD', incident: 'I-2' }), { topic: 'cad/south/e1' }));
});

const read = (viewer: Viewer, filter: object = {}, size: object = { first: 200 }) =>
  decisionPage(north.database.prisma, viewer, readFilter(filter), readPage(size, DEFAULT_LIMITS));
const namesOf = ({ edges }: Awaited<ReturnType<typeof read>>) =>
  edges.map(({ node }) => `${node.feed.name}:${node.position}`);

describe('a reader of some agencies', () => {
  it('lists their entries alone, whatever the filter', async () => {
    expect(namesOf(await read(NFD))).toEqual(['cad-north:0', 'cad-north:3', 'cad-north:4']);
    expect(namesOf(await read(SFD))).toEqual(['cad-north:1', 'cad-north:5', 'cad-south:0']);
    expect(namesOf(await read(NOBODY))).toEqual([]);
    const entries = await north.entries();
    for (const filter of [
      { agency: 'SFD' },
      { key: entries[1]?.key },
      { agency: 'SFD', sourceId: 'e1' },
      { outcome: ['MALFORMED_REJECTED'] },
      { held: true },
      { incidentId: 'I-2' },
    ]) {
      expect([filter, namesOf(await read(NFD, filter))]).toEqual([filter, []]);
    }
    expect(namesOf(await read(NFD, { outcome: ['DUPLICATE_SUPPRESSED'] }))).toEqual(['cad-north:4']);
  });

  it('sees no feed without an entry of theirs, and no place of it in a cursor', async () => {
    const feeds = async (viewer: Viewer, filter = {}) =>
      (await feedsInScope(north.database.prisma, viewer, readFilter(filter))).map(({ feed }) => feed.name);
    expect(await feeds(NFD)).toEqual(['cad-north']);
    expect(await feeds(SFD)).toEqual(['cad-north', 'cad-south']);
    await expect(feeds(NFD, { feed: 'cad-south' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const [edge] = (await read(NFD)).edges;
    const [, , , , places] = JSON.parse(Buffer.from(edge?.cursor ?? '', 'base64url').toString()) as [
      0,
      0,
      0,
      0,
      number[][],
    ];
    expect(places.map(([feedId]) => feedId)).toEqual([north.feed.feedId]);
  });

  it('looks up, counts and lists sources within them', async () => {
    const { prisma } = north.database;
    const loaders = createLoaders(prisma, NFD);
    const [scope] = await feedsInScope(prisma, NFD, readFilter({}));
    if (scope === undefined) throw new Error('no feed');
    const { feed } = scope;
    expect(await loaders.entries.load({ feed, position: 0n })).toMatchObject({ agency: 'NFD' });
    expect(await loaders.entries.load({ feed, position: 1n })).toBeNull();
    expect(await IncidentRecord.find(prisma, NFD, loaders, 'I-2')).toBeNull();
    const incident = await IncidentRecord.find(prisma, NFD, loaders, 'I-77');
    expect(await incident?.groups()).toMatchObject([
      { agency: 'NFD', outcome: 'DUPLICATE_SUPPRESSED', count: 1n },
      { agency: 'NFD', outcome: 'APPLIED', count: 1n },
    ]);
    const page = { feedId: feed.id, viewer: NFD, direction: 'forward', after: null, before: null, limit: 10 } as const;
    expect(await prisma.$queryRaw(sourcePage(page))).toEqual([{ agency: 'NFD', sourceId: 'e1' }]);
    const exists = (agency: string) => prisma.$queryRaw(sourceExists(NFD, { feedId: feed.id, agency, sourceId: 'e1' }));
    expect([await exists('NFD'), await exists('SFD')]).toEqual([[{ known: true }], [{ known: false }]]);
  });

  it('subscribes to their entries alone', async () => {
    const { prisma } = north.database;
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
    const heads = new HeadWatcher(prisma, north.wakeUps, 20, log);
    onCleanup(() => heads.close());
    const services = {
      prisma,
      log,
      heads,
      limits: DEFAULT_LIMITS,
      contracts: new ContractTexts(),
      contractErrorOf: () => null,
      streamReads: new Gate(1),
    };
    const stream = await DecisionStream.open(services, NFD, readFilter({}), null);
    const next = stream.next();
    await south.deliver(delivery(b(2, { agency: 'SFD' }), { topic: 'cad/south/e1' }));
    await north.deliver(b(7, { agency: 'SFD' }), 'garbage', b(7));
    expect((await next).value).toMatchObject({ decision: { agency: 'NFD', sequence: '7' } });
    const waiting = stream.next();
    await stream.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(heads.waiting).toBe(0);
  });
});
