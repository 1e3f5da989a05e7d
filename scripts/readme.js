#!/usr/bin/env node
'use strict';
/**
 * Writes the table of variables in README.md from the one list that the configuration is read by.
 * test/unit/readme.test.ts fails when the table is not current.
 */
const { readFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');

const readmeFile = path.join(__dirname, '..', 'README.md');
const BEGIN = '<!-- variables: written by `npm run schemas` -->\n';
const END = '<!-- /variables -->';

/** @param {readonly {name: string, meaning: string, default: string, secret?: boolean}[]} variables */
function variablesTable(variables) {
  const rows = variables.map(
    ({ name, meaning, default: fallback, secret }) => `| \`${name}\`${secret ? ' ¹' : ''} | ${meaning} | ${fallback} |`,
  );
  return ['| variable | meaning | default |', '| --- | --- | --- |', ...rows].join('\n');
}

/** The README with its table made anew. */
function withVariables(readme, variables) {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error('README.md has lost the marks of the table of variables');
  return `${readme.slice(0, begin)}${BEGIN}\n${variablesTable(variables)}\n\n${readme.slice(end)}`;
}

module.exports = { withVariables };

if (require.main === module) {
  const { VARIABLES } = require('../dist/config');
  writeFileSync(readmeFile, withVariables(readFileSync(readmeFile, 'utf8'), VARIABLES));
}
