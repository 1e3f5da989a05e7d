/** Contracts that change while feeds run, on real servers: files that are watched, and contracts that are applied. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { appEnvironment, consumes, contractsFolder } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { applied, FEED, faultContract, faultMessages } from '../support/fault-feed';
import { expectSoundLedger, query } from '../support/ledger';
import { startMosquitto } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { startProduct } from '../support/process';
import { until } from '../support/wait';

interface Served {
  readonly url: string;
  readonly mqttUrl: string;
  readonly dir: string;
  /** The contract of the feed that all tests have. */
  readonly file: string;
  graphql(text: string): Promise<Record<string, { readonly contractError: string | null } | null>>;
  get(path: string): Promise<{ readonly status: number; readonly text: string }>;
  apply(): Promise<number | null>;
  consumes(feed: string): Promise<void>;
}

async function serve(mode: 'watch' | 'start'): Promise<Served> {
  const { url } = await createMigratedDatabase();
  const { url: mqttUrl } = await startMosquitto();
  const dir = contractsFolder([faultContract()]);
  const environment = appEnvironment({ databaseUrl: url, mqttUrl, contracts: [] });
  const env = { ...environment, CONTRACTS_DIR: dir, CONTRACTS_MODE: mode };
  const app = startProduct(['serve'], { env });
  const [, api = ''] = await app.waitForLine(/"url":"(http[^"]+\/graphql)".*the API is ready/);
  await consumes(app, FEED);
  return {
    url,
    mqttUrl,
    dir,
    file: join(dir, '0.yaml'),
    graphql: async (text) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(api, { method: 'POST', headers, body: JSON.stringify({ query: text }) });
      return ((await response.json()) as { data: Awaited<ReturnType<Served['graphql']>> }).data;
    },
    get: async (path) => {
      const response = await fetch(api.replace('/graphql', path));
      return { status: response.status, text: await response.text() };
    },
    apply: async () => (await startProduct(['contract', 'apply'], { env }).exit).code,
    consumes: (feed) => consumes(app, feed),
  };
}

const errorOf = async (app: Served): Promise<string | null> => {
  const { feed } = await app.graphql(`{ feed(name: "${FEED}") { contractError } }`);
  return feed?.contractError ?? null;
};

const contractErrors = async (app: Served): Promise<number> => {
  const { text } = await app.get('/metrics');
  const [, value] = new RegExp(`^replay_ledger_contract_errors{feed="${FEED}"} (\\d+)$`, 'm').exec(text) ?? [];
  return Number(value);
};

const versions = (url: string) =>
  query<{ feed: string; version: number }>(
    url,
    'SELECT f.name AS feed, h.contract_version AS version FROM feed f JOIN feed_head h ON h.feed_id = f.id ORDER BY 1',
  );

const inForce = (url: string, feed: string, version: number): Promise<unknown> =>
  until(async () => (await versions(url)).some((row) => row.feed === feed && row.version === version), {
    what: `contract ${version} of ${feed}`,
  });

describe('C116: a contract file is broken while its feed runs', () => {
  it('the contract of before decides; API, metrics and /readyz say what is wrong; the good file comes into force', async () => {
    const app = await serve('watch');
    const good = faultContract({ windowSeconds: 900 });
    const breakages: [string, () => void, RegExp][] = [
      ['cut in the middle', () => writeFileSync(app.file, good.slice(0, 60)), /^0\.yaml:\d+:\d+: /],
      ['empty', () => writeFileSync(app.file, ''), /^0\.yaml:1:1: the file is empty/],
      ['a folder', () => mkdirSync(app.file), /^0\.yaml:1:1: is a folder/],
      ['a link out', () => symlinkSync('/etc/passwd', app.file), /^0\.yaml:1:1: is a link to a place outside/],
      [
        'another identity',
        () => writeFileSync(app.file, good.replace('pointer: /seq', 'pointer: /n')),
        /^0\.yaml: identity, items or digest .* higher identity\.version/,
      ],
      [
        'another name on the same topics',
        () => writeFileSync(app.file, good.replace(`feed: ${FEED}`, 'feed: renamed')),
        /overlaps/,
      ],
    ];
    let published = 0;
    for (const [what, breakIt, message] of breakages) {
      rmSync(app.file, { recursive: true });
      breakIt();
      if (what === 'another name on the same topics') {
        await until(async () => (await app.get('/readyz')).text.includes('overlaps'), { what });
      } else {
        const error = await until(
          async () => {
            const now = await errorOf(app);
            return now !== null && message.test(now) ? now : null;
          },
          { what },
        );
        expect(error).not.toContain(app.dir);
        expect(await contractErrors(app)).toBe(error.split('\n').length);
        expect(JSON.parse((await app.get('/readyz')).text)).toMatchObject({
          ready: true,
          contracts: { errors: error.split('\n').map((text) => ({ feed: FEED, message: text })) },
        });
      }
      const messages = faultMessages(2, published + 1, published + 5);
      published += 5;
      await publishAll(app.mqttUrl, messages);
      await applied(app.url, 2 * published);
    }
    expect(await versions(app.url)).toEqual([{ feed: FEED, version: 1 }]);

    rmSync(app.file);
    writeFileSync(app.file, good);
    await inForce(app.url, FEED, 2);
    await until(async () => (await errorOf(app)) === null, { what: 'no error' });
    await until(async () => !(await app.get('/readyz')).text.includes('contracts'), { what: 'nothing to say' });
    expect(await contractErrors(app)).toBe(0);
    await publishAll(app.mqttUrl, faultMessages(2, 1, published));
    await publishAll(app.mqttUrl, faultMessages(2, published + 1, published + 1));
    await applied(app.url, 2 * published + 2);
    await expectSoundLedger(app.url, FEED);
  });

  it('what weakens protection waits for contract apply; safe changes and new feeds do not', async () => {
    const app = await serve('watch');
    writeFileSync(app.file, faultContract({ ordering: 'tolerant' }));
    await until(async () => (await app.get('/readyz')).text.includes('it is graded weakens_protection'), {
      what: 'the change to wait',
    });
    writeFileSync(join(app.dir, 'south.yaml'), faultContract({ feed: 'south' }));
    await inForce(app.url, 'south', 1);
    await app.consumes('south');
    await publishAll(app.mqttUrl, faultMessages(1, 1, 3, 'south'));
    await applied(app.url, 3, 'south');
    expect((await versions(app.url)).find(({ feed }) => feed === FEED)).toMatchObject({ version: 1 });
    expect(await app.apply()).toBe(0);
    await inForce(app.url, FEED, 2);
    await until(async () => !(await app.get('/readyz')).text.includes('contracts'), { what: 'nothing to wait' });
  });
});

describe('CONTRACTS_MODE=start', () => {
  it('files are left alone; what is applied from elsewhere is consumed without a restart', async () => {
    const app = await serve('start');
    const [first = ''] = faultContract().match(/topics: .*/) ?? [];
    writeFileSync(app.file, faultContract().replace(first, `topics: ["${FEED}/+/events", "extra/+/events"]`));
    writeFileSync(join(app.dir, 'south.yaml'), faultContract({ feed: 'south' }));
    await publishAll(app.mqttUrl, faultMessages(2, 1, 20));
    await applied(app.url, 40);
    expect(await versions(app.url)).toEqual([{ feed: FEED, version: 1 }]);

    expect(await app.apply()).toBe(0);
    await app.consumes('south');
    await publishAll(app.mqttUrl, faultMessages(1, 1, 3, 'south'));
    await applied(app.url, 3, 'south');
    // Until the feed is connected again, the broker has no subscription to the other topic.
    const [message] = faultMessages(1, 21, 21).map((one) => ({ ...one, topic: 'extra/engine-1/events' }));
    if (message === undefined) throw new Error('one message was asked for');
    await until(
      async () => {
        await publishAll(app.mqttUrl, [message]);
        const [row] = await query<{ n: number }>(
          app.url,
          "SELECT count(*)::int AS n FROM ledger_entry WHERE topic LIKE 'extra/%' AND outcome = 'APPLIED'",
        );
        return row?.n === 1;
      },
      { what: 'the other topic' },
    );
    for (const feed of [FEED, 'south']) await expectSoundLedger(app.url, feed);
  });
});
