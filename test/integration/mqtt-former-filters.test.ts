import { startMosquitto } from '../support/mosquitto';
import { publishAll, startObserver } from '../support/mqtt-client';

describe.each([4, 5] as const)('filters that a session had before, MQTT version %i', (protocolVersion) => {
  it('are unsubscribed at every CONNACK, and nothing else is', async () => {
    const broker = await startMosquitto();
    const session = { urls: [broker.url], clientId: 'former', protocolVersion };
    const before = startObserver({ ...session, filters: ['old/+', 'cad/#'] });
    await before.subscribed();
    await before.subscriber.close();

    const formerFilters = ['old/+', 'never/had'];
    const now = startObserver({ ...session, filters: ['cad/#'], formerFilters });
    await now.subscribed();
    await publishAll(broker.url, [
      { topic: 'old/1', payload: 'of before' },
      { topic: 'cad/1', payload: 'of now' },
    ]);
    await now.received(1);
    expect(now.texts()).toEqual(['of now']);
    await now.subscriber.close();

    // The session itself, not the connection: what comes while nobody is connected is not queued either.
    await publishAll(broker.url, [
      { topic: 'old/2', payload: 'of before' },
      { topic: 'cad/2', payload: 'of now, queued' },
    ]);
    const later = startObserver({ ...session, filters: ['cad/#'] });
    await later.received(1);
    await later.subscribed();
    expect(later.texts().filter((text) => text === 'of before')).toEqual([]);
  });
});
