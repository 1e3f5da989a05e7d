import { contractsFolder } from '../support/app';
import { createMigratedDatabase, type TestDatabase } from '../support/database';
import { applied, faultContract, faultMessages, type FaultMessage } from '../support/fault-feed';
import { freePort } from '../support/free-port';
import { readEntries } from '../support/ledger';
import { startMosquitto, type MosquittoServer } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { startProduct, type TestProcess } from '../support/process';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

interface Line {
  readonly feed: string;
  readonly position: string;
  readonly sourceId: string;
  readonly sequence: string;
  readonly outcome: string;
  readonly cursor: string;
}

interface Service {
  readonly database: TestDatabase;
  readonly broker: MosquittoServer;
  readonly port: number;
  readonly url: string;
  start(): Promise<TestProcess>;
}

async function setUp(feeds: readonly string[] = ['county-fire']): Promise<Service> {
  const [database, broker, port] = [await createMigratedDatabase(), await startMosquitto(), await freePort()];
  const env = {
    DATABASE_URL: database.url,
    MQTT_URL: broker.url,
    CONTRACTS_DIR: contractsFolder(feeds.map((feed) => faultContract({ feed }))),
    PORT: String(port),
    LEASE_TTL_SECONDS: '2',
    LOG_LEVEL: 'debug',
  };
  return {
    database,
    broker,
    port,
    url: `http://127.0.0.1:${port}/graphql`,
    start: async () => {
      const app = startProduct(['serve'], { env });
      for (const feed of feeds) await app.waitForLine(new RegExp(`"feed":"${feed}".*"msg":"subscribed"`));
      return app;
    },
  };
}

function lines(tail: TestProcess): Line[] {
  const whole = tail.stdout.slice(0, tail.stdout.lastIndexOf('\n') + 1);
  return whole.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
}

async function shown(tail: TestProcess, count: number): Promise<Line[]> {
  await until(() => lines(tail).length >= count, { what: `${count} lines; stderr: ${tail.stderr}` });
  return lines(tail);
}

/** Of the first entry of all ledgers. */
async function firstCursor(url: string): Promise<string> {
  const body = JSON.stringify({ query: '{ decisions(first: 1) { edges { cursor } } }' });
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { data } = (await response.json()) as { data: { decisions: { edges: { cursor: string }[] } } };
  return data.decisions.edges[0]?.cursor ?? '';
}

const positions = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => String(from + at));
const numbered = (messages: readonly FaultMessage[]): string[] =>
  messages.map(({ source, sequence }) => `${source} ${sequence}`);

it('shows each decision once and in order, through a restart of the service, and ends by Ctrl-C', async () => {
  const service = await setUp();
  let app = await service.start();
  const messages = faultMessages(2, 1, 30);
  await publishAll(service.broker.url, messages.slice(0, 20));
  await applied(service.database.url, 20);

  const tail = startProduct(['tail', '--url', service.url, '--json']);
  // It tells of nothing that was there before; the first line shows that it follows.
  await until(
    async () => {
      await publishAll(service.broker.url, messages.slice(0, 1));
      return lines(tail).length > 0;
    },
    { what: 'the first line', everyMs: 100 },
  );
  const first = Number(lines(tail)[0]?.position);
  expect(first).toBeGreaterThanOrEqual(20);

  await app.kill9();
  app = await service.start();
  await publishAll(service.broker.url, messages.slice(20, 40));
  await applied(service.database.url, 40);
  await app.stop();
  await publishAll(service.broker.url, messages.slice(40));
  app = await service.start();
  await applied(service.database.url, messages.length);

  await until(() => lines(tail).filter(({ outcome }) => outcome === 'APPLIED').length >= 40, {
    what: 'every applied message',
  });
  const all = lines(tail);
  expect(all.map(({ position }) => position)).toEqual(positions(first, first + all.length));
  const appliedOnes = all.filter(({ outcome }) => outcome === 'APPLIED');
  expect(appliedOnes.map(({ sourceId, sequence }) => `${sourceId} ${sequence}`)).toEqual(numbered(messages.slice(20)));
  expect(tail.stderr).toMatch(/^not connected, trying again: /m);

  tail.signal('SIGINT');
  expect(await tail.exit).toEqual({ code: 0, signal: null });

  // And by hand: on after a cursor.
  const again = startProduct(['tail', '--url', service.url, '--json', '--after', all[4]?.cursor ?? '']);
  expect((await shown(again, all.length - 5)).map(({ position }) => position)).toEqual(
    positions(first + 5, first + all.length),
  );
  expect((await again.stop()).code).toBe(0);
  await app.stop();
});

it('misses nothing of a ledger that was empty, nor through connections that are cut at any moment', async () => {
  const service = await setUp();
  const app = await service.start();
  const proxy = await startProxy(service.port);
  let asked = false;
  proxy.onServerData((chunk) => {
    asked ||= chunk.includes('"edges":[]');
  });
  const tail = startProduct(['tail', '--url', `http://127.0.0.1:${proxy.port}/graphql`, '--json']);
  // From here on everything is news to it.
  await until(() => asked, { what: 'its question about the ledger, which is empty' });
  const messages = faultMessages(2, 1, 60);
  for (let at = 0; at < messages.length; at += 10) {
    await publishAll(service.broker.url, messages.slice(at, at + 10));
    proxy.cut();
  }
  const all = await shown(tail, messages.length);
  expect(all.map(({ position }) => position)).toEqual(positions(0, messages.length));
  expect(all.map(({ sourceId, sequence }) => `${sourceId} ${sequence}`)).toEqual(numbered(messages));
  await tail.stop();
  await app.stop();
});

it('filters by feed, source, incident, outcome and held', async () => {
  const service = await setUp(['county-fire', 'city-fire']);
  const app = await service.start();
  const sent = [
    ...faultMessages(1, 1, 1),
    ...faultMessages(2, 5, 5),
    ...faultMessages(2, 5, 5),
    ...faultMessages(1, 4, 4),
  ];
  await publishAll(service.broker.url, sent);
  await until(async () => (await readEntries(service.database.url, 'county-fire')).length === sent.length, {
    what: 'entries',
  });
  await publishAll(service.broker.url, faultMessages(1, 6, 6, 'city-fire'));
  await applied(service.database.url, 1, 'city-fire');
  const after = await firstCursor(service.url);

  const shownBy = async (count: number, ...flags: string[]): Promise<string[]> => {
    const tail = startProduct(['tail', '--url', service.url, '--json', '--after', after, ...flags]);
    const all = await shown(tail, count);
    await tail.stop();
    return all.map(({ feed, position, outcome }) => `${feed} ${position} ${outcome}`);
  };
  const county = ['1 APPLIED', '2 APPLIED', '3 DUPLICATE_SUPPRESSED', '4 DUPLICATE_SUPPRESSED', '5 STALE_OUT_OF_ORDER'];
  const [one, two, three, four, five] = county.map((line) => `county-fire ${line}`);
  const city = 'city-fire 0 APPLIED';
  expect(await shownBy(6)).toEqual([one, two, three, four, five, city]);
  expect(await shownBy(1, '--feed', 'city-fire')).toEqual([city]);
  expect(await shownBy(2, '--agency', 'county', '--source', 'engine-2')).toEqual([two, four]);
  expect(await shownBy(1, '--incident', 'I-1')).toEqual([five]);
  expect(await shownBy(3, '--outcome', 'STALE_OUT_OF_ORDER', 'DUPLICATE_SUPPRESSED')).toEqual([three, four, five]);
  expect(await shownBy(1, '--held')).toEqual([five]);
  await app.stop();
});

it('is text without colour where it is no terminal, and ends quietly when its reader goes away', async () => {
  const service = await setUp();
  const app = await service.start();
  const tail = startProduct(['tail', '--url', service.url]);
  const messages = faultMessages(1, 1, 3);
  await publishAll(service.broker.url, messages);
  await until(
    async () => {
      await publishAll(service.broker.url, messages);
      return tail.stdout.includes('DUPLICATE_SUPPRESSED');
    },
    { what: 'a replay', everyMs: 100 },
  );
  expect(tail.stdout).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3}Z {2}county-fire #\d+ {2}DUPLICATE_SUPPRESSED {2}WINDOW {2}county\/engine-1 \d {2}I-\d {2}repeats #\d after \d+\.\d s$/m,
  );
  expect(tail.stdout).not.toContain('\x1b');
  await tail.stop();
  await app.stop();
});

it.each([
  [['--feed', 'nobody'], /^replay-ledger: .*\(NOT_FOUND\)$/m],
  [['--after', 'nonsense'], /^replay-ledger: .*\(BAD_USER_INPUT\)$/m],
  [['--outcome', 'LOST'], /Allowed choices are/],
  [['--url', 'ftp://x'], /it begins with http/],
])('ends with exit code 1 and one message where it is asked for what is not: %j', async (flags, message) => {
  const service = await setUp();
  const app = await service.start();
  const tail = startProduct(['tail', '--url', service.url, ...flags]);
  expect((await tail.exit).code).toBe(1);
  expect(tail.stderr).toMatch(message);
  expect(tail.stderr).not.toMatch(/\n\s+at /);
  await app.stop();
});

it('waits for a service that is not there yet', async () => {
  const service = await setUp();
  const tail = startProduct(['tail', '--url', service.url, '--json']);
  await tail.waitForLine(/^not connected, trying again: .*ECONNREFUSED/);
  const app = await service.start();
  await until(
    async () => {
      await publishAll(service.broker.url, faultMessages(1, 1, 1));
      return lines(tail).length > 0;
    },
    { what: 'a line', everyMs: 100 },
  );
  tail.signal('SIGTERM');
  expect((await tail.exit).code).toBe(0);
  await app.stop();
});
