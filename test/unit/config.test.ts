import { ConfigError, readConfig, VARIABLES, type Config } from '../../src/config';
import type { Environment } from '../../src/config-reader';

const SECRET = 'hunter2-s3cret';

/** Reads with files as given; every other file is missing. */
function read(env: Environment, files: Record<string, string> = {}): Config {
  return readConfig(env, (path) => {
    const text = files[path];
    if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    return text;
  });
}

function problems(env: Environment, files: Record<string, string> = {}): readonly string[] {
  try {
    read(env, files);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('readConfig', () => {
  it('runs embedded, on loopback, without any variable', () => {
    expect(read({})).toMatchObject({
      databaseUrl: null,
      redisUrl: null,
      mqttUrls: null,
      mqttVersion: 4,
      host: '127.0.0.1',
      port: 4000,
      mqttPort: 1883,
      contractsDir: './contracts',
      dataDir: './data',
      logLevel: 'info',
      leaseTtlMs: 10_000,
    });
  });

  it('takes an empty variable for none', () => {
    const empty = Object.fromEntries(
      VARIABLES.flatMap(({ name }) => [
        [name, ''],
        [`${name}_FILE`, ''],
      ]),
    );
    expect(read(empty)).toEqual(read({}));
  });

  it('reads the servers, in the order in which they are tried', () => {
    const config = read({
      DATABASE_URL: 'postgresql://u@db/x',
      REDIS_URL: 'rediss://cache:6380/1',
      MQTT_URL: 'mqtt://a, mqtts://b:8883,ws://c/mqtt',
    });
    expect(config).toMatchObject({
      databaseUrl: 'postgresql://u@db/x',
      redisUrl: 'rediss://cache:6380/1',
      mqttUrls: ['mqtt://a', 'mqtts://b:8883', 'ws://c/mqtt'],
      mqttVersion: 5,
    });
    expect(read({ MQTT_URL: 'mqtt://a', MQTT_VERSION: '3.1.1' }).mqttVersion).toBe(4);
  });

  it('says everything that is wrong at once, each by the name of its variable', () => {
    const found = problems({
      DATABASE_URL: 'mysql://db/x',
      REDIS_URL: 'localhost:6379',
      MQTT_URL: 'mqtt://a,,http://b',
      MQTT_PORT: '70000',
      PORT: '4000.5',
      HOST: '0.0.0.0',
      LEASE_TTL_SECONDS: '1',
      LOG_LEVEL: 'loud',
      MQTT_VERSION: '4',
      MQTT_CLIENT_ID_PREFIX: 'a/b',
    });
    expect(found.map((problem) => problem.slice(0, problem.indexOf(':'))).sort()).toEqual([
      'DATABASE_URL',
      'HOST',
      'LEASE_TTL_SECONDS',
      'LOG_LEVEL',
      'MQTT_CLIENT_ID_PREFIX',
      'MQTT_PORT',
      'MQTT_URL',
      'MQTT_URL',
      'MQTT_VERSION',
      'PORT',
      'REDIS_URL',
    ]);
  });

  it.each(['0x10', '1e3', ' 5', '+5', '-1', '5 ', '٥', '99999999999', 'NaN', '4000.0'])(
    'takes %j for no port',
    (text) => {
      expect(problems({ PORT: text })).toEqual([
        `PORT: must be a whole number from 0 to 65535, is ${JSON.stringify(text)}`,
      ]);
    },
  );

  it.each([
    ['LEASE_TTL_SECONDS', 2, 300],
    ['DATABASE_POOL_SIZE', 2, 200],
    ['BATCH_MAX_DELIVERIES', 1, 5000],
    ['MAX_IN_FLIGHT', 1, 100_000],
    ['MAX_PAYLOAD_BYTES', 1024, 268_435_455],
  ])('takes %s from %i to %i, and not beyond', (name, min, max) => {
    for (const value of [min, max]) expect(problems({ [name]: String(value) })).toEqual([]);
    for (const value of [min - 1, max + 1]) expect(problems({ [name]: String(value) })).toHaveLength(1);
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('listens on %s', (host) => {
    expect(read({ HOST: host }).host).toBe(host);
  });

  it.each(['0.0.0.0', '::', '192.168.1.1', 'example.org', '127.0.0.1.example.org', 'localhost.example.org'])(
    'refuses to listen on %s',
    (host) => {
      expect(problems({ HOST: host })).toHaveLength(1);
    },
  );

  it('refuses MQTT 5 on the embedded broker', () => {
    expect(problems({ MQTT_VERSION: '5' })).toEqual([expect.stringMatching(/^MQTT_VERSION: /)]);
  });
});

describe('secrets', () => {
  const secrets = VARIABLES.filter(({ secret }) => secret === true).map(({ name }) => name);

  it('are read from files, without the newline at the end', () => {
    const files = { '/db': 'postgres://u:p@db/x\n', '/mqtt': ` ${SECRET} \r\n` };
    expect(read({ DATABASE_URL_FILE: '/db', MQTT_PASSWORD_FILE: '/mqtt' }, files)).toMatchObject({
      databaseUrl: 'postgres://u:p@db/x',
      mqttPassword: ` ${SECRET} `,
    });
    expect(read({ MQTT_PASSWORD: ` ${SECRET}\n` }).mqttPassword).toBe(` ${SECRET}\n`);
  });

  it.each(secrets)('%s_FILE that cannot be read is a problem of its own, and so are both at once', (name) => {
    expect(problems({ [`${name}_FILE`]: '/missing' })).toEqual([`${name}_FILE: /missing cannot be read (ENOENT)`]);
    const value = name.endsWith('_URL') ? urlFor(name) : SECRET;
    const both = problems({ [name]: String(value), [`${name}_FILE`]: '/there' }, { '/there': String(value) });
    expect(both).toEqual([`${name}: is set together with ${name}_FILE; set one of them`]);
  });

  it.each(secrets.filter((name) => name.endsWith('_URL')))(
    '%s never shows in a message, wherever it came from',
    (name) => {
      const wrong = `nonsense://user:${SECRET}@host`;
      for (const found of [
        problems({ [name]: wrong }),
        problems({ [`${name}_FILE`]: '/there' }, { '/there': wrong }),
      ]) {
        expect(found).toHaveLength(1);
        expect(found.join()).not.toContain(SECRET);
      }
      expect(new ConfigError(problems({ [name]: `${SECRET} is no url` })).message).not.toContain(SECRET);
    },
  );

  it('are not looked for in files where a variable is no secret', () => {
    expect(read({ PORT_FILE: '/missing' }).port).toBe(4000);
  });
});

function urlFor(name: string): string {
  return name.startsWith('REDIS') ? 'redis://h' : name.startsWith('MQTT') ? 'mqtt://h' : 'postgres://h/x';
}
