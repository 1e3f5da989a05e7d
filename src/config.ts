/**
 * Environment → configuration, or the whole list of what is wrong with it. Pure but for reading the files that
 * `…_FILE` variables name, which goes through `readFile`.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';

/** PEM texts; what is absent is Node's default. Certificate and key come together. */
export interface MqttTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface Config {
  /** null: embedded PGlite in `dataDir`. */
  readonly databaseUrl: string | null;
  readonly migrateDatabaseUrl: string | null;
  readonly databasePoolSize: number;
  /** null: in-process window. */
  readonly redisUrl: string | null;
  readonly redisPrefix: string;
  /** Tried in turn; null: embedded broker. */
  readonly mqttUrls: readonly string[] | null;
  readonly mqttPort: number;
  /** MQTT.js's number of the protocol: 4 is 3.1.1. */
  readonly mqttVersion: 4 | 5;
  readonly mqttUsername: string | undefined;
  readonly mqttPassword: string | undefined;
  readonly mqttTls: MqttTls;
  readonly mqttClientIdPrefix: string;
  readonly host: string;
  readonly port: number;
  /** null: whoever reaches the loopback address may do everything. */
  readonly apiTokensFile: string | null;
  readonly contractsDir: string;
  /** Whether files are read as they change, too. */
  readonly contractsMode: 'start' | 'watch';
  readonly dataDir: string;
  readonly logLevel: string;
  readonly leaseTtlMs: number;
  readonly maxPayloadBytes: number;
  readonly maxInFlight: number;
  readonly maxInFlightBytes: number;
  readonly batchMaxDeliveries: number;
  readonly development: boolean;
}

export interface Variable {
  readonly name: string;
  readonly meaning: string;
  /** As the README shows it. */
  readonly default: string;
  /** May also be given as `<name>_FILE`. */
  readonly secret?: boolean;
}

/** Every variable that is read; the table in the README is made from it. */
export const VARIABLES: readonly Variable[] = [
  secret('DATABASE_URL', 'Postgres 14 or newer (service role)', 'embedded PGlite in `DATA_DIR`'),
  secret('MIGRATE_DATABASE_URL', 'the same database as its owner, for migrations', '`DATABASE_URL`'),
  variable(
    'DATABASE_POOL_SIZE',
    'connections of the main path, 2 to 200; the API has as many again, metrics one',
    '10',
  ),
  secret('REDIS_URL', 'Redis 6.2 or newer, `redis://` or `rediss://`', 'in-process window'),
  variable('REDIS_PREFIX', 'begins every key and channel in Redis', '`replay-ledger`'),
  secret(
    'MQTT_URL',
    '`mqtt://`, `mqtts://`, `ws://` or `wss://`; a comma-separated list fails over',
    'embedded broker on `MQTT_PORT`',
  ),
  variable('MQTT_PORT', 'port of the embedded broker, 0 for a free one', '1883'),
  variable('MQTT_VERSION', '`5` or `3.1.1`', '`5`; the embedded broker has `3.1.1`'),
  secret('MQTT_USERNAME', 'user at the broker', '–'),
  secret('MQTT_PASSWORD', 'password at the broker', '–'),
  variable(
    'MQTT_CA_FILE',
    'PEM file of the authorities that may vouch for the broker (`mqtts://`, `wss://`)',
    'those of Node.js',
  ),
  variable('MQTT_CERT_FILE', 'PEM file of our certificate, for a broker that asks for one', '–'),
  variable('MQTT_KEY_FILE', 'PEM file of its private key, not encrypted', '–'),
  variable('MQTT_CLIENT_ID_PREFIX', 'begins every client id: `<prefix>-<feed>-<broker>`', '`replay-ledger`'),
  variable('HOST', 'where we listen; an address that is not loopback needs `API_TOKENS_FILE`', '127.0.0.1'),
  variable(
    'PORT',
    'port of the API, and in every role of `/healthz`, `/readyz` and `/metrics`; 0 for a free one',
    '4000',
  ),
  variable('API_TOKENS_FILE', 'hashed tokens with roles, from `replay-ledger token create`; read as it changes', '–'),
  variable('CONTRACTS_DIR', 'feed contracts, `*.yaml`', '`./contracts`'),
  variable('CONTRACTS_MODE', '`start`, or `watch`: safe changes of files apply themselves', 'embedded: `watch`'),
  variable('DATA_DIR', 'embedded data', '`./data`'),
  variable('LEASE_TTL_SECONDS', 'how long a dead instance keeps its feeds, 2 to 300', '10'),
  variable('MAX_PAYLOAD_BYTES', 'a larger payload is held as malformed, with digest and size alone', '1048576'),
  variable('MAX_IN_FLIGHT', 'unacknowledged deliveries of a feed in memory, 1 to 100000', '4000'),
  variable('MAX_IN_FLIGHT_BYTES', 'the same in bytes', '67108864'),
  variable('BATCH_MAX_DELIVERIES', 'deliveries in one transaction, 1 to 5000', '1000'),
  variable('LOG_LEVEL', '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`', '`info`'),
  variable('NODE_ENV', '`production` turns introspection and suggestions of the API off', '–'),
];

/** @param fallback as the README shows it */
function variable(name: string, meaning: string, fallback: string): Variable {
  return { name, meaning, default: fallback };
}

function secret(name: string, meaning: string, fallback: string): Variable {
  return { ...variable(name, meaning, fallback), secret: true };
}

export class ConfigError extends Error {
  /** @param problems each begins with the name of its variable */
  constructor(readonly problems: readonly string[]) {
    super(`the configuration is wrong:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|localhost)$/;
const REDIS_NAME = /^[A-Za-z0-9:._-]{1,64}$/;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const HOST = /^[A-Za-z0-9.:_-]{1,253}$/;
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/**
 * @param readFile text of a file; throws where it cannot be read
 * @throws ConfigError
 */
export function readConfig(env: Environment, readFile: (path: string) => string): Config {
  const read = new Reader(env, readFile);
  const mqttUrls = read.urls('MQTT_URL', ['mqtt:', 'mqtts:', 'ws:', 'wss:']);
  const databaseUrl = read.url('DATABASE_URL', ['postgres:', 'postgresql:']);
  const config: Config = {
    databaseUrl,
    migrateDatabaseUrl: read.url('MIGRATE_DATABASE_URL', ['postgres:', 'postgresql:']),
    databasePoolSize: read.integer('DATABASE_POOL_SIZE', 10, 2, 200),
    redisUrl: read.url('REDIS_URL', ['redis:', 'rediss:']),
    redisPrefix: read.matching('REDIS_PREFIX', 'replay-ledger', REDIS_NAME, '1 to 64 of A-Z a-z 0-9 : . _ -'),
    mqttUrls,
    mqttPort: read.integer('MQTT_PORT', 1883, 0, 65_535),
    mqttVersion: read.oneOf('MQTT_VERSION', mqttUrls === null ? '3.1.1' : '5', ['5', '3.1.1']) === '5' ? 5 : 4,
    mqttUsername: read.secret('MQTT_USERNAME') ?? undefined,
    mqttPassword: read.secret('MQTT_PASSWORD') ?? undefined,
    mqttTls: readMqttTls(read, mqttUrls),
    mqttClientIdPrefix: read.matching('MQTT_CLIENT_ID_PREFIX', 'replay-ledger', NAME, '1 to 64 of A-Z a-z 0-9 _ -'),
    host: read.matching('HOST', '127.0.0.1', HOST, 'an address or a host name'),
    port: read.integer('PORT', 4000, 0, 65_535),
    apiTokensFile: read.text('API_TOKENS_FILE'),
    contractsDir: read.text('CONTRACTS_DIR') ?? './contracts',
    contractsMode: read.oneOf('CONTRACTS_MODE', databaseUrl === null ? 'watch' : 'start', ['start', 'watch']),
    dataDir: read.text('DATA_DIR') ?? './data',
    logLevel: read.oneOf('LOG_LEVEL', 'info', LEVELS),
    leaseTtlMs: read.integer('LEASE_TTL_SECONDS', 10, 2, 300) * 1000,
    maxPayloadBytes: read.integer('MAX_PAYLOAD_BYTES', 1_048_576, 1024, 268_435_455),
    maxInFlight: read.integer('MAX_IN_FLIGHT', 4000, 1, 100_000),
    maxInFlightBytes: read.integer('MAX_IN_FLIGHT_BYTES', 67_108_864, 65_536, 2_147_483_647),
    batchMaxDeliveries: read.integer('BATCH_MAX_DELIVERIES', 1000, 1, 5000),
    development: env.NODE_ENV !== 'production',
  };
  if (mqttUrls === null && config.mqttVersion === 5) {
    read.problems.push('MQTT_VERSION: the embedded broker speaks 3.1.1 alone; set MQTT_URL for 5');
  }
  if (!LOOPBACK.test(config.host) && config.apiTokensFile === null) {
    read.problems.push(
      `HOST: ${config.host} is no loopback address, where anybody could read the ledger; set API_TOKENS_FILE`,
    );
  }
  if (read.problems.length > 0) throw new ConfigError(read.problems);
  return config;
}

/** Checked here, so that a wrong file is one clear message at the start instead of a connection that never comes up. */
function readMqttTls(read: Reader, urls: readonly string[] | null): MqttTls {
  const isCertificate = (pem: string): boolean => new X509Certificate(pem).subject !== undefined;
  const ca = read.file('MQTT_CA_FILE', 'a certificate (PEM)', isCertificate);
  const cert = read.file('MQTT_CERT_FILE', 'a certificate (PEM)', isCertificate);
  const key = read.file(
    'MQTT_KEY_FILE',
    'an unencrypted private key (PEM)',
    (pem) => createPrivateKey(pem).type === 'private',
  );
  const isSet = (name: string): boolean => read.text(name) !== null;
  if (isSet('MQTT_CERT_FILE') !== isSet('MQTT_KEY_FILE')) {
    read.problems.push('MQTT_CERT_FILE: is set together with MQTT_KEY_FILE, or neither is');
  }
  if (cert !== null && key !== null && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    read.problems.push('MQTT_KEY_FILE: is not the key of the certificate in MQTT_CERT_FILE');
  }
  const isSecure = urls?.every((url) => /^(mqtts|wss):/i.test(url)) === true;
  for (const name of ['MQTT_CA_FILE', 'MQTT_CERT_FILE']) {
    if (isSet(name) && !isSecure)
      read.problems.push(`${name}: is used only if every URL in MQTT_URL is mqtts:// or wss://`);
  }
  return { ca: ca ?? undefined, cert: cert ?? undefined, key: key ?? undefined };
}

/** Collects what is wrong and goes on with the default. Values of secrets are never in a message. */
class Reader {
  readonly problems: string[] = [];

  constructor(
    private readonly env: Environment,
    private readonly readFile: (path: string) => string,
  ) {}

  /** An empty variable counts as unset, as compose files leave them. */
  text(name: string): string | null {
    const value = this.env[name];
    return value === undefined || value === '' ? null : value;
  }

  secret(name: string): string | null {
    const value = this.text(name);
    const file = this.text(`${name}_FILE`);
    if (file === null) return value;
    if (value !== null) {
      this.problems.push(`${name}: is set together with ${name}_FILE; set one of them`);
      return value;
    }
    // The newline that editors and secret stores leave at the end is not part of the secret.
    return this.contents(`${name}_FILE`, file)?.replace(/\r?\n$/, '') ?? null;
  }

  /** Text of the file that a variable names. `isGood` may throw, which counts as no. */
  file(name: string, expected: string, isGood: (text: string) => boolean): string | null {
    const path = this.text(name);
    const text = path === null ? null : this.contents(name, path);
    if (text === null) return null;
    try {
      if (isGood(text)) return text;
    } catch {
      // The library's reason may quote the file, which may be a secret.
    }
    this.problems.push(`${name}: ${path} does not hold ${expected}`);
    return null;
  }

  private contents(name: string, path: string): string | null {
    try {
      return this.readFile(path);
    } catch (error) {
      const code = (error as { code?: string }).code ?? 'unreadable';
      this.problems.push(`${name}: ${path} cannot be read (${code})`);
      return null;
    }
  }

  url(name: string, schemes: readonly string[]): string | null {
    const value = this.secret(name);
    if (value !== null) this.checkUrl(name, value, schemes);
    return value;
  }

  urls(name: string, schemes: readonly string[]): readonly string[] | null {
    const value = this.secret(name);
    if (value === null) return null;
    const urls = value.split(',').map((url) => url.trim());
    for (const url of urls) this.checkUrl(name, url, schemes);
    return urls;
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.text(name);
    if (value === null) return fallback;
    const number = Number(value);
    if (/^\d{1,10}$/.test(value) && number >= min && number <= max) return number;
    this.problems.push(`${name}: must be a whole number from ${min} to ${max}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  oneOf<const T extends string>(name: string, fallback: NoInfer<T>, values: readonly T[]): T {
    const value = this.text(name) ?? fallback;
    const known = values.find((candidate) => candidate === value);
    if (known !== undefined) return known;
    this.problems.push(`${name}: must be one of ${values.join(', ')}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  matching(name: string, fallback: string, pattern: RegExp, expected: string): string {
    const value = this.text(name) ?? fallback;
    if (pattern.test(value)) return value;
    this.problems.push(`${name}: must be ${expected}, is ${JSON.stringify(value)}`);
    return fallback;
  }

  private checkUrl(name: string, value: string, schemes: readonly string[]): void {
    const known = schemes.map((scheme) => `${scheme}//`).join(', ');
    if (!URL.canParse(value) || !schemes.includes(new URL(value).protocol)) {
      this.problems.push(`${name}: must be a URL beginning with ${known}`);
    }
  }
}
