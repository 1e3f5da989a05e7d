import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { connect, connectAsync } from 'mqtt';
import { parse } from 'yaml';
import { VARIABLES, readConfig } from '../../src/config';
import { readTokens } from '../../src/ops/tokens';
import { onCleanup } from '../support/cleanup';
import { freePort } from '../support/free-port';
import { serverPrograms } from '../support/packages';
import { ServerProcess } from '../support/server-process';
import { ensureServerFolder, giveToServers } from '../support/server-user';
import { until } from '../support/wait';

const ROOT = resolve(__dirname, '../..');

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const compose = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')) as Compose;
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const service = compose.services.service ?? {};

/** The environment of the service as compose makes it, with these variables set where it is run. */
function environmentWith(outside: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const resolve = (value: string) => value.replace(/\$\{(\w+):-\}/g, (_, name: string) => outside[name] ?? '');
  return Object.fromEntries(Object.entries(service.environment ?? {}).map(([name, value]) => [name, resolve(value)]));
}

/** A copy of deploy/ with secrets made in it. */
function withSecrets(): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-compose-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'deploy'));
  copyFileSync(join(ROOT, 'deploy/create-secrets.sh'), join(folder, 'deploy/create-secrets.sh'));
  const made = spawnSync('sh', ['deploy/create-secrets.sh'], { cwd: folder, encoding: 'utf8' });
  expect([made.status, made.stderr]).toEqual([0, '']);
  return folder;
}

describe('docker-compose.yml', () => {
  it('sets only variables that the service reads, and a configuration that it takes', () => {
    const names = new Set(VARIABLES.flatMap(({ name, secret }) => (secret === true ? [name, `${name}_FILE`] : [name])));
    const environment = environmentWith();
    expect(Object.keys(environment).filter((name) => !names.has(name))).toEqual([]);

    const folder = withSecrets();
    const config = readConfig(environment, (path) => {
      const name = path.replace('/run/secrets/', '');
      expect(service.secrets).toContain(name);
      return readFileSync(join(folder, compose.secrets[name]?.file ?? ''), 'utf8');
    });
    expect(config.host).toBe('0.0.0.0');
    expect(new URL(config.databaseUrl ?? '').hostname).toBe('postgres');
    expect(new URL(config.redisUrl ?? '').hostname).toBe('redis');
    expect(config.mqttUrls).toEqual(['mqtt://mosquitto:1883']);
    expect(config.mqttVersion).toBe(5);
    expect(config.mqttPassword).toMatch(/^[0-9a-f]{48}$/);
    expect(config.apiTokensFile).toBe('/run/secrets/api_tokens');
    expect(config.oidc).toBeNull();
    expect(service.volumes).toContain(`./contracts:${config.contractsDir}:ro`);
  });

  it('hands on what is set of an OpenID provider, beside the token file', () => {
    const names = VARIABLES.map(({ name }) => name).filter((name) => name.startsWith('OIDC_'));
    expect(names.length).toBeGreaterThan(5);
    const outside = Object.fromEntries(names.map((name) => [name, name.toLowerCase()]));
    const { API_TOKENS_FILE, ...environment } = environmentWith(outside);
    expect(environment).toMatchObject(outside);
    expect(API_TOKENS_FILE).toBe('/run/secrets/api_tokens');
  });

  it('names only services, volumes, secrets and files that there are', () => {
    const folder = withSecrets();
    for (const one of Object.values(compose.services)) {
      for (const secret of one.secrets ?? []) expect(Object.keys(compose.secrets)).toContain(secret);
      for (const volume of one.volumes ?? []) {
        const [source = ''] = volume.split(':');
        expect(source.startsWith('./') ? existsSync(join(ROOT, source)) : source in compose.volumes).toBe(true);
      }
      for (const [name, { condition }] of Object.entries(one.depends_on ?? {})) {
        expect(condition).toBe('service_healthy');
        expect(compose.services[name]?.healthcheck?.test[0]).toBe('CMD');
      }
    }
    for (const { file } of Object.values(compose.secrets)) expect(existsSync(join(folder, file))).toBe(true);
    for (const secret of Object.values(compose.services).flatMap(({ environment = {} }) =>
      Object.values(environment),
    )) {
      if (secret.startsWith('/run/secrets/'))
        expect(Object.keys(compose.secrets)).toContain(secret.slice('/run/secrets/'.length));
    }
  });

  it('is reached from this machine alone', () => {
    const ports = Object.values(compose.services).flatMap(({ ports: published = [] }) => published);
    expect(ports).toEqual(['127.0.0.1:4000:4000', '127.0.0.1:1883:1883']);
  });
});

describe('the secrets', () => {
  it('agree with each other, are kept when made again, and are in no image and no repository', () => {
    const folder = withSecrets();
    const read = (name: string): string => readFileSync(join(folder, 'deploy/secrets', name), 'utf8').trim();
    expect(new URL(read('database_url')).password).toBe(read('postgres_password'));
    expect(readTokens(read('api_tokens'))).toEqual({ ok: true, tokens: [] });
    const before = read('mqtt_password');
    expect(spawnSync('sh', ['deploy/create-secrets.sh'], { cwd: folder }).status).toBe(0);
    expect(read('mqtt_password')).toBe(before);
    expect(readFileSync(join(ROOT, 'deploy/.gitignore'), 'utf8').split('\n')).toContain('secrets/');
    expect(readFileSync(join(ROOT, '.dockerignore'), 'utf8')).toMatch(/^(#.*\n)*\*\n/);
    expect(readFileSync(join(ROOT, '.dockerignore'), 'utf8')).not.toMatch(/^!deploy/m);
  });
});

describe('the Dockerfile', () => {
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));

  it('runs the service as a user without rights, with a health check', () => {
    expect(lastStage).toMatch(/^USER node$/m);
    expect(lastStage).toMatch(/^HEALTHCHECK .*\\\n +CMD \["node", "-e"/m);
    expect(lastStage).toMatch(/^ENTRYPOINT \["node", .*"dist\/main.js"\]\nCMD \["serve"\]$/m);
    expect(lastStage).toMatch(/^ENV NODE_ENV=production$/m);
  });

  it('installs only what runs, and no install script', () => {
    const installs = dockerfile.match(/^RUN npm ci.*$/gm) ?? [];
    expect(installs).toHaveLength(2);
    expect(installs[1]).toContain('--omit=dev --omit=optional');
    for (const install of installs) expect(install).toContain('--ignore-scripts');
    expect(lastStage).not.toMatch(/npm/);
    const version = /^FROM node:(\d+)-/m.exec(dockerfile)?.[1];
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { engines: { node: string } };
    expect(engines.node).toContain(String(version));
  });
});

it('has a broker that asks for the password, and keeps QoS 1 messages for a session through a restart', async () => {
  const { mosquitto } = await serverPrograms();
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-mosquitto-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  ensureServerFolder(folder);
  ensureServerFolder(join(folder, 'data'));
  mkdirSync(join(folder, 'secrets'));
  writeFileSync(join(folder, 'secrets/mqtt_password'), 'quiet "night"\n');
  // The paths of the container, here; and no change of owner, which takes root.
  const here = (text: string): string =>
    text
      .replaceAll('/mosquitto/config/', `${ROOT}/deploy/mosquitto/`)
      .replaceAll('/mosquitto/data', `${folder}/data`)
      .replaceAll('/mosquitto/passwords', `${folder}/passwords`)
      .replaceAll('/run/secrets', `${folder}/secrets`)
      .replace('listener 1883', `listener ${port} 127.0.0.1`)
      .replace(/^chown .*$/m, '')
      .replace(`${ROOT}/deploy/mosquitto/mosquitto.conf`, `${folder}/mosquitto.conf`);
  for (const name of ['mosquitto.conf', 'start.sh']) {
    writeFileSync(join(folder, name), here(readFileSync(join(ROOT, 'deploy/mosquitto', name), 'utf8')));
    giveToServers(join(folder, name));
  }
  chmodSync(join(folder, 'secrets'), 0o755);
  const path = [dirname(mosquitto.path), resolve(dirname(mosquitto.path), '../bin'), process.env.PATH].join(delimiter);
  const url = `mqtt://127.0.0.1:${port}`;
  const broker = new ServerProcess({
    name: 'mosquitto',
    command: '/bin/sh',
    args: () => [join(folder, 'start.sh')],
    env: { ...mosquitto.env, PATH: path },
    probe: async () => (await connectAsync(url, { ...user, reconnectPeriod: 0 }, false)).endAsync(),
    endSignal: 'KILL',
  });
  const user = { username: 'replay-ledger', password: 'quiet "night"' };
  await broker.start();
  await expect(
    connectAsync(url, { username: 'replay-ledger', password: 'wrong', reconnectPeriod: 0 }, false),
  ).rejects.toThrow(/not authori[sz]ed/i);
  await expect(connectAsync(url, { reconnectPeriod: 0 }, false)).rejects.toThrow(/not authori[sz]ed/i);

  const session = { ...user, clientId: 'consumer', clean: false, reconnectPeriod: 0 };
  const consumer = await connectAsync(url, session, false);
  await consumer.subscribeAsync('cad/#', { qos: 1 });
  await consumer.endAsync();
  const producer = await connectAsync(url, { ...user, reconnectPeriod: 0 }, false);
  // More than the thousand that mosquitto keeps by itself.
  await Promise.all(Array.from({ length: 1_500 }, (_, at) => producer.publishAsync('cad/1', String(at), { qos: 1 })));
  await producer.endAsync();
  await broker.stop('SIGTERM');
  await broker.start();

  const received: string[] = [];
  const again = connect(url, session);
  again.on('message', (_topic, payload) => received.push(payload.toString()));
  await until(() => received.length === 1_500, { what: 'what was published meanwhile' });
  expect(received).toEqual(Array.from({ length: 1_500 }, (_, at) => String(at)));
  await again.endAsync();
});
