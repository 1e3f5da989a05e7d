import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contractsFolder } from '../support/app';
import { onCleanup } from '../support/cleanup';
import { FEED, faultContract, faultMessages, groundTruth } from '../support/fault-feed';
import { freePort } from '../support/free-port';
import { publishAll, startObserver, type Observer } from '../support/mqtt-client';
import { startProduct, startScript, type TestProcess } from '../support/process';
import { until } from '../support/wait';

interface World {
  readonly dataDir: string;
  readonly mqttUrl: string;
  serve(): TestProcess;
}

async function startWorld(): Promise<World> {
  const dataDir = mkdtempSync(join(tmpdir(), 'replay-ledger-embedded-'));
  onCleanup(() => rmSync(dataDir, { recursive: true, force: true }));
  const port = await freePort();
  const env = {
    DATA_DIR: join(dataDir, 'data'),
    MQTT_PORT: String(port),
    PORT: '0',
    CONTRACTS_DIR: contractsFolder([faultContract({ forward: 'cop/{incident}' })]),
    LEASE_TTL_SECONDS: '2',
    LOG_LEVEL: 'debug',
  };
  return {
    dataDir: env.DATA_DIR,
    mqttUrl: `mqtt://127.0.0.1:${port}`,
    serve: () => startProduct(['serve'], { env }),
  };
}

async function consuming(product: TestProcess): Promise<void> {
  await product.waitForLine(/"msg":"running"/, 60_000);
  await product.waitForLine(new RegExp(`"feed":"${FEED}".*"msg":"subscribed"`));
}

/** Sees what is forwarded: a message that comes here was committed. */
async function startCop(mqttUrl: string, clientId: string): Promise<Observer> {
  const cop = startObserver({ urls: [mqttUrl], clientId, filters: ['cop/#'] });
  await cop.subscribed();
  return cop;
}

interface Stored {
  readonly outcomes: Record<string, number>;
  readonly incidents: Record<string, Record<string, unknown>>;
}

/** Opens the folder as the product does, in a process of its own, and reads what it holds. */
async function readFolder(dataDir: string): Promise<Stored> {
  const reader = startScript(
    `const { openEmbeddedDatabase } = require('./src/embedded/database.ts');
    (async () => {
      const database = await openEmbeddedDatabase({ dataDir: process.env.FOLDER });
      const query = (sql) => database.prisma.$queryRawUnsafe(sql);
      const counts = await query('SELECT outcome::text, count(*)::int AS n FROM ledger_entry GROUP BY 1');
      const fields = await query(\`SELECT incident_id AS i, field, value,
        (SELECT json_agg(m.value ORDER BY m.value COLLATE "C") FROM incident_member m
         WHERE m.incident_id = f.incident_id AND m.field = f.field)::text AS members FROM incident_field f\`);
      const incidents = {};
      for (const { i, field, value, members } of fields) {
        (incidents[i] ??= {})[field] = value === null ? JSON.parse(members).map((m) => JSON.parse(m)) : JSON.parse(value);
      }
      await database.close();
      const outcomes = Object.fromEntries(counts.map(({ outcome, n }) => [outcome, n]));
      console.log('stored ' + JSON.stringify({ outcomes, incidents }));
      process.exit(0);
    })().catch((error) => { console.error(error); process.exit(1); });`,
    { env: { FOLDER: dataDir } },
  );
  const [, text = ''] = await reader.waitForLine(/^stored (.*)$/, 60_000);
  await reader.exit;
  return JSON.parse(text) as Stored;
}

describe('embedded, and killed', () => {
  it('what was applied is there when it starts again on the folder, and replays of it are suppressed', async () => {
    const world = await startWorld();
    const first = world.serve();
    await consuming(first);
    expect(first.stderr).toMatch(/embedded database.*a power loss may/);
    expect(first.stderr).toMatch(/its queue is in memory/);
    const before = await startCop(world.mqttUrl, 'before');
    const messages = faultMessages(1, 1, 60);
    await publishAll(world.mqttUrl, messages.slice(0, 40));
    await until(() => before.deliveries.length >= 25, { what: 'some of them to be applied' });
    await first.kill9();
    const committed = before.deliveries.length;
    await before.subscriber.close();

    const second = world.serve();
    await consuming(second);
    const after = await startCop(world.mqttUrl, 'after');
    // The queue of the broker is gone, so that the producer sends everything again.
    await publishAll(world.mqttUrl, messages);
    const last = messages[messages.length - 1]?.payload ?? '';
    await until(() => after.texts().some((text) => text.includes(last)), { what: 'the last one to be applied' });
    expect(await second.stop()).toEqual({ code: 0, signal: null });

    const { outcomes, incidents } = await readFolder(world.dataDir);
    expect(outcomes.APPLIED).toBe(messages.length);
    expect(outcomes.DUPLICATE_SUPPRESSED).toBeGreaterThanOrEqual(committed);
    expect(Object.keys(outcomes).sort()).toEqual(['APPLIED', 'DUPLICATE_SUPPRESSED']);
    expect(incidents).toEqual(groundTruth(messages));
  }, 120_000);

  it('a second process on the folder is refused with a clear message, and does no harm to the first', async () => {
    const world = await startWorld();
    const first = world.serve();
    await consuming(first);
    const second = world.serve();
    expect(await second.exit).toEqual({ code: 1, signal: null });
    const message = second.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
    expect(message).toEqual([
      `replay-ledger: the data folder ${world.dataDir} is in use by another process (pid ${first.pid})`,
    ]);

    const cop = await startCop(world.mqttUrl, 'cop');
    const messages = faultMessages(1, 1, 3);
    await publishAll(world.mqttUrl, messages);
    await cop.received(3);
    await cop.subscriber.close();
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect((await readFolder(world.dataDir)).incidents).toEqual(groundTruth(messages));
  }, 120_000);
});
