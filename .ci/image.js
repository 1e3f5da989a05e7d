#!/usr/bin/env node
'use strict';
/**
 * Follows the Dockerfile without a Docker engine, in clean folders: each stage is a folder, COPY copies what
 * .dockerignore lets through, and `RUN npm …` runs. Then starts what the last stage holds, embedded, and asks it whether
 * it is well by the HEALTHCHECK of the image.
 *
 * Not covered: the base image, its Debian and its Node, users and rights. Other RUN lines than npm's are only shown.
 */
const { execFileSync, spawn } = require('node:child_process');
const { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } = require('node:fs');
const { tmpdir } = require('node:os');
const path = require('node:path');

const root = path.resolve(__dirname, '..');
const work = mkdtempSync(path.join(tmpdir(), 'replay-ledger-image-'));
const context = path.join(work, 'context');

/** Instructions with their continued lines joined, comments and empty lines left out. */
function instructions() {
  const text = readFileSync(path.join(root, 'Dockerfile'), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '');
  return text.split('\n').filter((line) => line.trim() !== '');
}

/** The build context: what .dockerignore names by `!path`, less what it names below that. */
function copyContext() {
  const lines = readFileSync(path.join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .map((line) => line.trim());
  const rules = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (rules[0] !== '*') throw new Error('.dockerignore must begin by ignoring everything');
  const without = rules.slice(1).filter((rule) => !rule.startsWith('!'));
  for (const rule of rules.filter((line) => line.startsWith('!'))) {
    const from = path.join(root, rule.slice(1));
    const filter = (file) => !without.some((one) => file === path.join(root, one));
    cpSync(from, path.join(context, rule.slice(1)), { recursive: true, filter });
  }
}

/** Answers the folder of the last stage. */
function build() {
  const stages = new Map();
  let stage = '';
  for (const line of instructions()) {
    const [instruction, ...words] = line.trim().split(/\s+/);
    if (instruction === 'FROM') {
      stage = path.join(work, `stage-${stages.size}`);
      mkdirSync(stage);
      stages.set(words[2] ?? `stage-${stages.size}`, stage);
    } else if (instruction === 'COPY') {
      copy(stages, stage, words);
    } else if (instruction === 'RUN' && words[0] === 'npm') {
      console.log(`RUN ${words.join(' ')}`);
      const offline = words[1] === 'ci' ? ['--prefer-offline'] : [];
      execFileSync('npm', [...words.slice(1), ...offline], { cwd: stage, stdio: ['ignore', 'ignore', 'inherit'] });
    } else if (instruction === 'RUN') {
      console.log(`not run: RUN ${words.join(' ')}`);
    }
  }
  return stage;
}

function copy(stages, stage, words) {
  const from = words[0].startsWith('--from=') ? stages.get(words.shift().slice('--from='.length)) : context;
  const target = words.pop();
  for (const word of words) {
    // A stage is its WORKDIR.
    const source = path.join(from, word.replace(/^\/app\//, ''));
    const intoFolder = target.endsWith('/') && !statSync(source).isDirectory();
    const to = path.join(stage, target, intoFolder ? path.basename(source) : '');
    mkdirSync(path.dirname(to), { recursive: true });
    cpSync(source, to, { recursive: true });
  }
}

function healthCheck() {
  const line = instructions().find((one) => one.startsWith('HEALTHCHECK'));
  return JSON.parse(line.slice(line.indexOf('CMD') + 3));
}

async function serve(image) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, NODE_ENV: 'production', DATA_DIR: path.join(work, 'data'), PORT: '0', MQTT_PORT: '0' };
  mkdirSync(path.join(image, 'contracts'));
  cpSync(path.join(root, 'contracts'), path.join(image, 'contracts'), { recursive: true });
  const service = spawn('node', ['--enable-source-maps', 'dist/main.js', 'serve'], { cwd: image, env });
  let output = '';
  service.stdout.on('data', (chunk) => (output += chunk));
  service.stderr.on('data', (chunk) => (output += chunk));
  const ended = new Promise((resolve) => service.once('exit', (code) => resolve(code)));
  try {
    const port = await waitFor(
      () => /"url":"http:\/\/127\.0\.0\.1:(\d+)\/graphql"/.exec(output)?.[1],
      service,
      () => output,
    );
    const [command, ...args] = healthCheck();
    execFileSync(command, args, { env: { PATH, PORT: port }, stdio: 'inherit' });
    for (const url of ['healthz', 'readyz']) {
      const { status } = await fetch(`http://127.0.0.1:${port}/${url}`);
      if (status !== 200) throw new Error(`/${url} answers ${status}`);
    }
  } finally {
    service.kill('SIGTERM');
  }
  const code = await ended;
  if (code !== 0) throw new Error(`the service ended with ${code}:\n${output}`);
  expectUnhealthy();
}

/** A check that cannot fail would keep a dead container in service. */
function expectUnhealthy() {
  const [command, ...args] = healthCheck();
  try {
    execFileSync(command, args, { env: { PATH: process.env.PATH, PORT: '1' }, stdio: 'ignore' });
  } catch {
    return;
  }
  throw new Error('the health check passes where nothing answers');
}

async function waitFor(find, service, output) {
  const deadline = Date.now() + 300_000;
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    if (service.exitCode !== null || Date.now() > deadline)
      throw new Error(`the service does not come up:\n${output()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function main() {
  copyContext();
  const image = build();
  for (const absent of ['src', 'test', 'node_modules/prisma', 'node_modules/typescript', 'node_modules/jest']) {
    if (existsSync(path.join(image, absent))) throw new Error(`the image holds ${absent}`);
  }
  await serve(image);
  console.log('The image builds, starts and is healthy.');
}

main()
  .catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  })
  .finally(() => rmSync(work, { recursive: true, force: true }));
