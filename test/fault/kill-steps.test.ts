import { randomUUID } from 'node:crypto';
import { expireLeases, startConsuming, startInstance, type AppSetup } from '../support/app';
import { createMigratedDatabase } from '../support/database';
import { expectNothingUnacknowledged } from '../support/fault-broker';
import { FEED, applied, countOutcomes, expectGroundTruth, faultContract, faultMessages } from '../support/fault-feed';
import { startMosquitto, type MosquittoServer } from '../support/mosquitto';
import { publishAll } from '../support/mqtt-client';
import { sharedRedisUrl } from '../support/shared-servers';
import type { Step } from '../../src/pipeline/process-batch';

/** All of them, in their order: a step that is missing here does not compile. */
const STEPS = Object.keys({
  'looked-up': 1,
  read: 1,
  decided: 1,
  written: 1,
  committed: 1,
  recorded: 1,
  acknowledged: 1,
  woken: 1,
} satisfies Record<Step, 1>) as Step[];

const SIZE = 10;
const MESSAGES = faultMessages(3, 1, 20);

describe('kill -9 at every step of a batch', () => {
  let broker: MosquittoServer;
  beforeAll(async () => {
    broker = await startMosquitto();
  });

  it.each(STEPS)(
    'C056 C057 C090: a consumer killed at "%s", early and later, loses nothing and applies nothing twice',
    async (step) => {
      const { url } = await createMigratedDatabase();
      const setup: AppSetup = {
        databaseUrl: url,
        mqttUrl: broker.url,
        contracts: [faultContract()],
        redisUrl: sharedRedisUrl(),
        env: { BATCH_MAX_DELIVERIES: String(SIZE), REDIS_PREFIX: `test-${randomUUID()}` },
      };
      const early = await startConsuming(setup, { step, time: 1 });
      await publishAll(broker.url, MESSAGES);
      expect(await early.exit).toEqual({ code: null, signal: 'SIGKILL' });
      await expireLeases(url);
      const later = startInstance(setup, { step, time: 4 });
      expect(await later.exit).toEqual({ code: null, signal: 'SIGKILL' });
      await expireLeases(url);
      const clean = startInstance(setup);
      await applied(url, MESSAGES.length);
      expect(await clean.stop()).toEqual({ code: 0, signal: null });
      const entries = await expectGroundTruth(url, MESSAGES);
      const { DUPLICATE_SUPPRESSED = 0, ...others } = countOutcomes(entries);
      expect(others).toEqual({ APPLIED: MESSAGES.length });
      // What was committed and not acknowledged comes again, and only that.
      const isBetween = step === 'committed' || step === 'recorded';
      if (isBetween) expect(DUPLICATE_SUPPRESSED).toBeGreaterThan(0);
      await expectNothingUnacknowledged(broker.url, FEED);
    },
  );
});
