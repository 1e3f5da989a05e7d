import { query } from '../support/ledger';
import { b, caseContract, delivery, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';
import { startBoth, startTestApi } from './api-fixture';
import type { Reading } from './api-subscription-fixture';
import { latest, listen, settled } from './api-subscription-fixture';

describe('subscriptions', () => {
  it('C096: after a cursor nothing is missed or repeated between query and subscription; without it, from now on', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(4), b(5), b(6), b(7), b(4));
    const cursor = await latest(app, { feed: 'cad-north' });
    await path.deliver(b(5), b(6));
    const resumed = listen(app.client(), 'suppressions', { after: cursor, filter: { feed: 'cad-north' } });
    const fresh = listen(app.client(), 'suppressions', { filter: { feed: 'cad-north' } });
    await settled(app, 2);
    await path.deliver(b(7));
    await until(() => resumed.events.length === 3 && fresh.events.length === 1, { what: 'the events' });
    expect(resumed.events.map((event) => event.decision.sequence)).toEqual(['5', '6', '7']);
    expect(resumed.positions()).toEqual([5, 6, 7]);
    expect(fresh.events[0]).toMatchObject({ position: '7', feed: { name: 'cad-north' }, decision: { sequence: '7' } });
    expect([...resumed.errors, ...fresh.errors]).toEqual([]);
  });

  it('C007: tells a conflict from a repetition, with both payload digests', async () => {
    const { path, app } = await startBoth();
    const reading = listen(app.client(), 'suppressions');
    await settled(app);
    const [first, second] = await path.deliver(b(500, { status: 'ONSCENE' }), b(500, { status: 'CLEARED' }), b(501));
    await until(() => reading.events.length === 1, { what: 'the event' });
    expect(reading.events[0]?.decision).toMatchObject({
      outcome: 'KEY_CONFLICT',
      reason: 'same_key_other_digest',
      payloadDigest: second?.payloadDigest,
      original: { position: '0', payloadDigest: first?.payloadDigest },
    });
  });

  it('delivers what the filter lets through, of one feed or of all, in order', async () => {
    const north = await startPipeline();
    const south = await startPipeline({
      url: north.url,
      contract: caseContract({ feed: 'cad-south', topics: '["cad/south/#"]' }),
    });
    const app = await startTestApi({ database: north.database, wakeUps: north.wakeUps, limits: { pollMs: 50 } });
    const all = listen(app.client(), 'decisions');
    const some = listen(app.client(), 'decisions', {
      filter: { feed: 'cad-south', incidentId: 'I-9', outcome: ['APPLIED'] },
    });
    const others = listen(app.client(), 'suppressions', { filter: { outcome: ['KEY_CONFLICT'] } });
    await settled(app, 3);
    await north.deliver(b(1, { incident: 'I-9' }), b(1, { incident: 'I-9' }));
    // The southern pipeline wakes nobody: the poll finds it.
    const southern = (n: number, changes: object) => delivery(b(n, { ...changes }), { topic: 'cad/south/e1' });
    await south.deliver(
      southern(1, {}),
      southern(2, { incident: 'I-9' }),
      southern(2, { incident: 'I-9' }),
      southern(2, {}),
    );
    await until(() => all.events.length === 6 && some.events.length === 1 && others.events.length === 1, {
      what: 'the events',
    });
    const names = (reading: Reading) => reading.events.map((event) => `${event.feed.name}:${event.position}`);
    expect(names(all)).toEqual([
      'cad-north:0',
      'cad-north:1',
      'cad-south:0',
      'cad-south:1',
      'cad-south:2',
      'cad-south:3',
    ]);
    expect(names(some)).toEqual(['cad-south:1']);
    expect(names(others)).toEqual(['cad-south:3']);
    // The cursor of an event resumes there, whatever filter it was made under.
    const again = listen(app.client(), 'decisions', { after: others.events[0]?.cursor });
    const rest = listen(app.client(), 'decisions', { after: all.events[1]?.cursor, filter: { feed: 'cad-south' } });
    await until(() => rest.events.length === 4, { what: 'the rest' });
    await settled(app, 5);
    expect(again.events).toEqual([]);
  });

  it('refuses what it cannot do, and says why', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1));
    const own = await latest(app, { feed: 'cad-north' });
    const codesOf = async (name: 'decisions' | 'suppressions', variables: Record<string, unknown>) => {
      const reading = listen(app.client(), name, variables);
      await until(reading.ended, { what: 'the end' });
      expect(reading.errors[0]?.extensions.correlationId).toMatch(/^[0-9a-f-]{36}$/);
      return reading.errors.map((error) => error.extensions.code);
    };
    expect(await codesOf('decisions', { after: 'AAAA' })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('decisions', { after: own })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('decisions', { filter: { feed: 'nope' } })).toEqual(['NOT_FOUND']);
    expect(await codesOf('decisions', { filter: { from: '2026-01-01T00:00:00Z' } })).toEqual(['BAD_USER_INPUT']);
    expect(await codesOf('suppressions', { filter: { outcome: ['APPLIED'] } })).toEqual(['BAD_USER_INPUT']);
    await query(path.url, 'UPDATE feed_head SET term = 2');
    expect(await codesOf('decisions', { after: own, filter: { feed: 'cad-north' } })).toEqual(['LEDGER_TERM_CHANGED']);
    expect(app.api.stats()).toMatchObject({ subscriptions: 0, waiting: 0 });
  });

  it('ends with LEDGER_TERM_CHANGED when the ledger goes back in time under it', async () => {
    const { path, app } = await startBoth(undefined, { limits: { pollMs: 20 } });
    const reading = listen(app.client(), 'decisions');
    await settled(app);
    await query(path.url, 'UPDATE feed_head SET term = 2');
    await until(() => reading.errors.length > 0, { what: 'the error' });
    expect(reading.errors[0]?.extensions).toMatchObject({ code: 'LEDGER_TERM_CHANGED', feed: 'cad-north' });
    await until(reading.ended, { what: 'the end' });
    expect(app.api.stats()).toMatchObject({ subscriptions: 0, waiting: 0 });
  });
});
