/** The ceiling: MQTT.js as it comes, automatic acknowledgement, no work. */
import { connect } from 'mqtt';
import { acceptedAt, sessionOptions } from '../broker-session';
import { type Measured, peakRssBytes, serveJob } from '../child';

export interface BareJob {
  readonly url: string;
  readonly clientId: string;
  readonly messages: number;
}

async function drain({ url, clientId, messages }: BareJob): Promise<Measured> {
  const client = connect(url, sessionOptions(clientId));
  let received = 0;
  const last = new Promise<number>((resolve) => {
    client.on('message', () => {
      received += 1;
      if (received === messages) resolve(performance.now());
    });
  });
  const start = await acceptedAt(client);
  const end = await last;
  await client.endAsync();
  if (received !== messages) throw new Error(`${received} messages came, not ${messages}`);
  return { messages, seconds: (end - start) / 1000, peakRssBytes: peakRssBytes() };
}

serveJob(drain);
