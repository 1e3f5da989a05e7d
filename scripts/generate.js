#!/usr/bin/env node
'use strict';
/**
 * Writes the Prisma client from prisma/schema.prisma to src/generated/prisma (not in git), without a network.
 *
 * The Prisma command line fetches a schema-engine binary on first use, although `generate` never runs it. Naming any
 * existing file as that binary keeps it from trying, so this works behind a firewall and on every platform.
 *
 * Does nothing when the client was made from the same schema by the same version of Prisma: a stamp beside it says so.
 * The stamp is written last; a run that was cut short is done again.
 */
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const root = path.resolve(__dirname, '..');
const schemaFile = path.join(root, 'prisma', 'schema.prisma');
const outputDir = path.join(root, 'src', 'generated', 'prisma');
const stampFile = path.join(outputDir, '.stamp');

function stampOf() {
  const { version } = require('prisma/package.json');
  return createHash('sha256').update(`${version}\n`).update(readFileSync(schemaFile)).digest('hex');
}

function isCurrent(stamp) {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp;
}

function generate() {
  const cli = path.join(path.dirname(require.resolve('prisma/package.json')), 'build', 'index.js');
  const result = spawnSync(process.execPath, [cli, 'generate', '--schema', schemaFile, '--no-hints'], {
    cwd: root,
    encoding: 'utf8',
    env: {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: '1',
      CHECKPOINT_DISABLE: '1',
    },
  });
  if (result.error) throw result.error;
  if (result.status !== 0) {
    process.stderr.write(`${result.stdout}${result.stderr}\nprisma generate failed.\n`);
    process.exit(1);
  }
}

const stamp = stampOf();
if (!isCurrent(stamp)) {
  // A model that was renamed or dropped would otherwise leave its old file behind.
  rmSync(outputDir, { recursive: true, force: true });
  generate();
  writeFileSync(stampFile, stamp);
}
