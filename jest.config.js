/** @param {boolean} keepDynamicImports */
function swc(keepDynamicImports) {
  return [
    '@swc/jest',
    {
      jsc: {
        parser: { syntax: 'typescript', decorators: true },
        transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
        target: 'es2022',
      },
      module: { type: 'commonjs', ignoreDynamic: keepDynamicImports },
      sourceMaps: 'inline',
    },
  ];
}

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testTimeout: 60_000,
  maxWorkers: 2,
  transform: {
    // The Prisma client imports its query compiler dynamically, which is CommonJS too: as a require it loads in Jest.
    '/src/generated/.+\\.ts$': swc(false),
    // So does jose, an ES module without anything that CommonJS lacks.
    '/src/ops/oidc[^/]*\\.ts$': swc(false),
    '/node_modules/jose/.+\\.js$': swc(false),
    // Everywhere else a dynamic import means a package that is ESM only.
    '^.+\\.ts$': swc(true),
  },
  transformIgnorePatterns: ['/node_modules/(?!jose/)'],
};
