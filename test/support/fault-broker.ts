import { clientIdOf } from './app';
import { publishAll, startObserver } from './mqtt-client';

/**
 * Takes over the session of a feed whose consumer has ended, and shows that the broker keeps nothing for it: the first
 * thing that comes is a message published now.
 */
export async function expectNothingUnacknowledged(
  url: string,
  feed: string,
  protocolVersion: 4 | 5 = 4,
): Promise<void> {
  const topic = `${feed}/barrier/events`;
  const observer = startObserver({ urls: [url], clientId: clientIdOf(feed), filters: [topic], protocolVersion });
  await observer.subscribed();
  await publishAll(url, [{ topic, payload: 'barrier' }]);
  await observer.received(1);
  // Of the session that the consumer had, or there would be nothing to show.
  expect(observer.eventsOf('connected')).toEqual([{ type: 'connected', sessionPresent: true }]);
  expect(new Set(observer.texts())).toEqual(new Set(['barrier']));
  observer.subscriber.acknowledge(observer.deliveries); // the session may be used again
  await observer.subscriber.close();
}
