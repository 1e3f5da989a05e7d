/** `replay-ledger serve`: everything in one process, or one part of it. */
import { startApp } from '../app';
import type { Role } from '../app';
import type { Config } from '../config';
import type { Logger } from '../ops/port';

export interface Served {
  close(): Promise<void>;
}

export async function serve(config: Config, log: Logger, role: Role): Promise<Served> {
  for (const caution of embeddedCautions(config)) log.warn({}, caution);
  const app = await startApp(config, log, { role });
  if (app.apiUrl !== null) log.info({ url: app.apiUrl }, 'the API is ready');
  log.info({ mqtt: app.mqttUrls.map(withoutCredentials), role }, 'running');
  return app;
}

/** What embedded parts do not guarantee (design section 9). */
function embeddedCautions(config: Config): string[] {
  const cautions: string[] = [];
  if (config.databaseUrl === null) {
    cautions.push(
      `embedded database in ${config.dataDir}, for trying and developing: a killed process loses nothing committed, a power loss may`,
    );
  }
  if (config.mqttUrls === null) {
    cautions.push('embedded MQTT 3.1.1 broker: its queue is in memory, and ends with this process');
  }
  return cautions;
}

function withoutCredentials(url: string): string {
  const parsed = new URL(url);
  parsed.username = '';
  parsed.password = '';
  return parsed.toString();
}
