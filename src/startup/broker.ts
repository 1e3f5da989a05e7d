import type { Config } from '../config';
import { startEmbeddedBroker } from '../embedded/broker';
import type { Cleanup } from '../ops/cleanup';

/** URLs of the broker; embedded, it is started. @throws an error with code EADDRINUSE */
export async function openBroker(config: Config, cleanup: Cleanup): Promise<readonly string[]> {
  if (config.mqttUrls !== null) return config.mqttUrls;
  const broker = await startEmbeddedBroker({ host: '127.0.0.1', port: config.mqttPort });
  cleanup.add('embedded broker', () => broker.close());
  return [`mqtt://127.0.0.1:${broker.port}`];
}
