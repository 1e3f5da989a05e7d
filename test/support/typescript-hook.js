/*
 * `node --require` this file, and `require` reads TypeScript, by the very settings that Jest uses. For code that has to run
 * in a process of its own from source: Jest's module system cannot import ESM-only packages, and a child can be killed.
 */
const { readFileSync } = require('node:fs');
const { transformSync } = require('@swc/core');
const jest = require('../../jest.config.js');

const [, options] = jest.transform['^.+\\.ts$'];

require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), { ...options, filename, swcrc: false });
  module._compile(code, filename);
};
