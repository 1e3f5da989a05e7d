/**
 * Environment → configuration, or the whole list of what is wrong with it. Pure but for reading the files that
 * `…_FILE` variables name, which goes through `readFile`.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import { Reader } from './config-reader';
import type { Environment } from './config-reader';
import { parsePointer } from './contract/pointer';
import { isLoopback, isSafeUrl } from './ops/loopback';
import type { ClaimPath, OidcSettings } from './ops/oidc-settings';

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
  /** null with `oidc`: whoever reaches the loopback address may do everything. */
  readonly apiTokensFile: string | null;
  readonly oidc: OidcSettings | null;
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
  variable(
    'HOST',
    'where we listen; an address that is not loopback needs `API_TOKENS_FILE` or `OIDC_ISSUER`',
    '127.0.0.1',
  ),
  variable(
    'PORT',
    'port of the API, and in every role of `/healthz`, `/readyz` and `/metrics`; 0 for a free one',
    '4000',
  ),
  variable('API_TOKENS_FILE', 'hashed tokens with roles, from `replay-ledger token create`; read as it changes', '–'),
  variable('OIDC_ISSUER', 'OpenID provider whose access tokens count, `https://…`, as it names itself', '–'),
  variable('OIDC_AUDIENCE', 'what the `aud` of its tokens has to name; needed with `OIDC_ISSUER`', '–'),
  variable('OIDC_ROLES_CLAIM', 'claim with the roles: a name, or a JSON Pointer as `/realm_access/roles`', '`roles`'),
  variable('OIDC_ROLE_PREFIX', 'roles count only with this before them, as `replay-ledger:`', '–'),
  variable('OIDC_AGENCIES_CLAIM', 'claim with the agencies of a token, needed in each then; `*` for all', 'no limits'),
  variable('OIDC_NAME_CLAIM', 'claim that names the bearer in the audit trail', '`sub`'),
  variable('OIDC_TOKEN_TYPE', '`at+jwt` (RFC 9068), or `JWT` for providers that do not follow it', '`at+jwt`'),
  variable('CONTRACTS_DIR', 'feed contracts, `*.yaml`', '`./contracts`'),
  variable('CONTRACTS_MODE', '`start`, or `watch`: safe changes of files apply themselves', 'embedded: `watch`'),
  variable('DATA_DIR', 'embedded data', '`./data`'),
  variable('LEASE_TTL_SECONDS', 'how long a dead instance keeps its feeds, 2 to 300', '10'),
  variable('MAX_PAYLOAD_BYTES', 'a larger payload is held as malformed, with digest and size alone', '1048576'),
  variable('MAX_IN_FLIGHT', 'unacknowledged deliveries of a feed in memory, 1 to 100000', '4000'),
  variable('MAX_IN_FLIGHT_BYTES', 'the same in bytes', '67108864'),
  variable('BATCH_MAX_DELIVERIES', 'deliveries in one transaction, 1 to 5000', '2000'),
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
    oidc: readOidc(read),
    contractsDir: read.text('CONTRACTS_DIR') ?? './contracts',
    contractsMode: read.oneOf('CONTRACTS_MODE', databaseUrl === null ? 'watch' : 'start', ['start', 'watch']),
    dataDir: read.text('DATA_DIR') ?? './data',
    logLevel: read.oneOf('LOG_LEVEL', 'info', LEVELS),
    leaseTtlMs: read.integer('LEASE_TTL_SECONDS', 10, 2, 300) * 1000,
    maxPayloadBytes: read.integer('MAX_PAYLOAD_BYTES', 1_048_576, 1024, 268_435_455),
    maxInFlight: read.integer('MAX_IN_FLIGHT', 4000, 1, 100_000),
    maxInFlightBytes: read.integer('MAX_IN_FLIGHT_BYTES', 67_108_864, 65_536, 2_147_483_647),
    batchMaxDeliveries: read.integer('BATCH_MAX_DELIVERIES', 2000, 1, 5000),
    development: env.NODE_ENV !== 'production',
  };
  if (mqttUrls === null && config.mqttVersion === 5) {
    read.problems.push('MQTT_VERSION: the embedded broker speaks 3.1.1 alone; set MQTT_URL for 5');
  }
  if (!isLoopback(config.host) && config.apiTokensFile === null && !read.isSet('OIDC_ISSUER')) {
    read.problems.push(
      `HOST: ${config.host} is no loopback address, where anybody could read the ledger; set API_TOKENS_FILE or OIDC_ISSUER`,
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
  if (read.isSet('MQTT_CERT_FILE') !== read.isSet('MQTT_KEY_FILE')) {
    read.problems.push('MQTT_CERT_FILE: is set together with MQTT_KEY_FILE, or neither is');
  }
  if (cert !== null && key !== null && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    read.problems.push('MQTT_KEY_FILE: is not the key of the certificate in MQTT_CERT_FILE');
  }
  const isSecure = urls?.every((url) => /^(mqtts|wss):/i.test(url)) === true;
  for (const name of ['MQTT_CA_FILE', 'MQTT_CERT_FILE']) {
    if (read.isSet(name) && !isSecure)
      read.problems.push(`${name}: is used only if every URL in MQTT_URL is mqtts:// or wss://`);
  }
  return { ca: ca ?? undefined, cert: cert ?? undefined, key: key ?? undefined };
}

const OIDC_DETAILS = [
  'OIDC_ROLES_CLAIM',
  'OIDC_ROLE_PREFIX',
  'OIDC_AGENCIES_CLAIM',
  'OIDC_NAME_CLAIM',
  'OIDC_TOKEN_TYPE',
];

function readOidc(read: Reader): OidcSettings | null {
  const [issuer, audience] = [read.text('OIDC_ISSUER'), read.text('OIDC_AUDIENCE')];
  if (read.isSet('OIDC_ISSUER') !== read.isSet('OIDC_AUDIENCE')) {
    read.problems.push('OIDC_AUDIENCE: is set together with OIDC_ISSUER, or neither is');
  }
  for (const name of OIDC_DETAILS) {
    if (issuer === null && read.isSet(name)) read.problems.push(`${name}: is used only together with OIDC_ISSUER`);
  }
  if (issuer !== null && !isIssuer(issuer)) {
    read.problems.push(
      'OIDC_ISSUER: must be a URL beginning with https:// (http:// for a loopback address), without user, query and fragment',
    );
  }
  const details = {
    roles: readClaim(read, 'OIDC_ROLES_CLAIM') ?? ['roles'],
    rolePrefix: read.text('OIDC_ROLE_PREFIX') ?? '',
    agencies: readClaim(read, 'OIDC_AGENCIES_CLAIM'),
    name: readClaim(read, 'OIDC_NAME_CLAIM') ?? ['sub'],
    tokenType: read.oneOf('OIDC_TOKEN_TYPE', 'at+jwt', ['at+jwt', 'JWT']),
  };
  return issuer === null || audience === null ? null : { issuer, audience, ...details };
}

/** OpenID Connect Discovery 1.0, section 2; the tokens and keys of a loopback address stay on this machine without TLS. */
function isIssuer(text: string): boolean {
  if (!URL.canParse(text) || /[?#\s]/.test(text)) return false;
  const url = new URL(text);
  return url.username === '' && url.password === '' && isSafeUrl(url);
}

/** Names of claims may hold slashes, as those that are URLs do: a pointer is what begins with one. */
function readClaim(read: Reader, name: string): ClaimPath | null {
  const value = read.text(name);
  if (value === null || !value.startsWith('/')) return value === null ? null : [value];
  const path = parsePointer(value);
  if (path === null) read.problems.push(`${name}: is no JSON Pointer (RFC 6901), as what begins with / has to be`);
  return path;
}
