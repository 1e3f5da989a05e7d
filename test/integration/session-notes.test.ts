import { openDatabase } from '../../src/ledger/client';
import { createLogger } from '../../src/ops/logger';
import { SessionNotes } from '../../src/startup/session-notes';
import { onCleanup } from '../support/cleanup';
import { createMigratedDatabase } from '../support/database';
import { query } from '../support/ledger';
import { loseAnswerTo, startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';

async function setUp() {
  const { url } = await createMigratedDatabase();
  const proxy = await startProxy(Number(new URL(url).port));
  const through = new URL(url);
  through.port = String(proxy.port);
  const database = await openDatabase({ url: through.href, poolSize: 2, applicationName: 'test' });
  onCleanup(() => database.close());
  const noted: string[] = [];
  const notes = new SessionNotes({
    database,
    feedId: 1,
    feed: 'cad-north',
    clientId: 'replay-ledger-cad-north-default',
    retry: { minMs: 10, maxMs: 50 },
    log: createLogger('silent'),
    onNoted: (state) => noted.push(state),
  });
  onCleanup(() => notes.stop());
  const losses = () => query(url, "SELECT kind FROM admin_event WHERE kind = 'SESSION_LOST'");
  const allNoted = (count: number) => until(() => noted.length >= count, { what: `${count} notes` });
  return { url, proxy, notes, noted, losses, allNoted };
}

describe('a session that the broker lost', () => {
  it('is noted when the database is back, though the broker knows the session by then', async () => {
    const { url, notes, noted, losses, allNoted } = await setUp();
    notes.connected(false);
    await allNoted(1);
    await query(url, 'ALTER TABLE mqtt_session RENAME TO mqtt_session_away');
    notes.connected(false);
    notes.connected(true);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(noted).toEqual(['first']);
    await query(url, 'ALTER TABLE mqtt_session_away RENAME TO mqtt_session');
    await allNoted(3);
    expect(noted).toEqual(['first', 'lost', 'resumed']);
    expect(await losses()).toHaveLength(1);
  });

  it('is one event, where the answer to the COMMIT of the note is lost', async () => {
    const { proxy, notes, noted, losses, allNoted } = await setUp();
    notes.connected(false);
    await allNoted(1);
    const lost = loseAnswerTo(proxy, 'COMMIT');
    notes.connected(false);
    await lost;
    await allNoted(2);
    expect(noted).toEqual(['first', 'lost']);
    expect(await losses()).toHaveLength(1);
    notes.connected(false);
    await allNoted(3);
    expect(await losses()).toHaveLength(2);
  });

  it('is given up when it stops, after one more try', async () => {
    const { url, notes, noted, losses, allNoted } = await setUp();
    notes.connected(false);
    await allNoted(1);
    await query(url, 'ALTER TABLE mqtt_session RENAME TO mqtt_session_away');
    notes.connected(false);
    await notes.stop();
    expect(noted).toEqual(['first']);
    expect(await losses()).toEqual([]);
  });
});
