'use strict';
/**
 * Which way imports may point, and where each library lives. `npm run boundaries` holds src/ to it;
 * test/unit/boundaries.test.ts shows every rule firing on test/fixtures/boundaries/.
 */

/** Ports: interfaces and types that the core owns. Adapters implement them, so anybody may name them. */
const PORTS = '^src/[^/]+/port\\.ts$|^src/window/window\\.ts$';

/** The part of effects/ that talks to the database; the rest of the folder computes. */
const EFFECTS_STORE = '[^/]*(?:store|sql|outbox)[^/]*\\.ts$';
const EFFECTS_PURE = `^src/effects/(?!${EFFECTS_STORE})`;

/** The part of ledger/ that an offline verifier needs: it must run without a database. */
const LEDGER_PURE = '^src/ledger/(?:leaf|entry|term|merkle|tree|proof|checkpoint|verif)[^/]*\\.ts$';

const PURE = `^src/contract/|^src/dedup/|${EFFECTS_PURE}|${LEDGER_PURE}`;

/** Environment to configuration. */
const CONFIG = '^src/config(?:-reader)?\\.ts$';

/** Shapes of settings, and the rules on them: values and types, without an adapter. */
const SETTINGS = '^src/ops/(?:oidc-settings|loopback)\\.ts$';

/** What each folder may import of the project beside itself; `ports`: the ports as well. */
const FOLDERS = [
  {
    folder: 'contract',
    may: [],
    ports: false,
    why: 'What a message means is read by every other folder, so it depends on none of them.',
  },
  {
    folder: 'dedup',
    may: ['^src/contract/', EFFECTS_PURE],
    ports: false,
    why: 'A decision is computed from locked state and messages alone, or a replayed audit would not reproduce it.',
  },
  {
    folder: 'effects',
    may: ['^src/(?:contract|dedup|ledger|generated)/'],
    ports: true,
    why: 'Effects happen inside the transaction of the ledger and know nothing of transport, window or API.',
  },
  {
    folder: 'ledger',
    may: ['^src/(?:contract|dedup|effects|generated)/'],
    ports: true,
    why: 'The proof must stand without whatever feeds or shows it.',
  },
  {
    folder: 'pipeline',
    may: ['^src/(?:contract|dedup)/', EFFECTS_PURE, LEDGER_PURE],
    ports: true,
    why: 'The order of the steps is stated against ports, so that a broken adapter cannot change what is decided.',
  },
  {
    folder: 'window',
    may: ['^src/contract/'],
    ports: true,
    why: 'The window is a hint: it may not reach the proof, nor another adapter.',
  },
  {
    folder: 'mqtt',
    may: ['^src/contract/'],
    ports: true,
    why: 'Transport hands deliveries to a sink and publishes the outbox; it neither decides nor stores.',
  },
  {
    folder: 'live',
    may: ['^src/contract/'],
    ports: true,
    why: 'A wake-up only saves latency, so it may not become a second source of ledger data.',
  },
  {
    folder: 'api',
    may: ['^src/(?:contract|dedup|effects|ledger|ops|generated)/'],
    ports: true,
    why: 'The API reads the ledger and asks ports; it never drives a broker, the window or the embedded servers.',
  },
  {
    folder: 'embedded',
    may: ['^src/(?:contract|ledger|generated)/'],
    ports: true,
    why: 'Embedded stores stand in for real ones behind the same interfaces and add no path of their own.',
  },
  {
    folder: 'ops',
    may: ['^src/(?:contract|dedup)/'],
    ports: true,
    why: 'Logs, metrics and health are told what happened; they may not reach into what they observe.',
  },
];

/** One home per library: a library that lives in one folder can be replaced, patched and understood there. */
const HOMES = [
  {
    name: 'mqtt',
    libraries: ['mqtt'],
    home: '^src/mqtt/',
    why: 'Held acknowledgements lean on internals of MQTT.js, which only mqtt/ may know.',
  },
  {
    name: 'redis',
    libraries: ['ioredis'],
    home: '^src/(?:window/redis|live)/',
    why: 'Redis is a hint and a wake-up; a third use would start to rely on it.',
  },
  {
    name: 'prisma',
    libraries: ['@prisma/client', '@prisma/adapter-pg', '@prisma/driver-adapter-utils', '@prisma/schema-engine-wasm'],
    files: '^src/generated/',
    home: '^src/(?:ledger|effects|api|embedded|generated)/',
    why: 'Statements on the ledger stay where the lock order can be read.',
  },
  {
    name: 'pg',
    libraries: ['pg'],
    home: '^src/ledger/',
    why: 'Connections outside the pool of ledger/ would escape its timeouts and its shutdown.',
  },
  {
    name: 'graphql',
    libraries: [
      '@apollo/server',
      'class-validator',
      'dataloader',
      'graphql',
      'graphql-scalars',
      'graphql-ws',
      'reflect-metadata',
      'type-graphql',
      'ws',
    ],
    home: '^src/api/',
    why: 'How answers are shaped and sent is the concern of api/ alone.',
  },
  {
    name: 'embedded',
    libraries: ['@electric-sql/pglite', 'aedes', 'pglite-prisma-adapter'],
    home: '^src/embedded/',
    why: 'An installation with real servers never loads the embedded ones.',
  },
  {
    name: 'ops',
    libraries: ['pino', 'prom-client'],
    home: '^src/ops/',
    why: 'Log lines and metric names are an interface to operators, kept in one place.',
  },
  {
    name: 'access-tokens',
    libraries: ['jose'],
    home: '^src/ops/oidc[^/]*\\.ts$',
    why: 'Which algorithms, keys and claims of a token count is decided in one place, or a check could be left out.',
  },
  {
    name: 'contract',
    libraries: ['yaml', 'zod'],
    home: '^src/contract/',
    why: 'One definition of the contract format serves validation, schema and messages.',
  },
  {
    name: 'command-line',
    libraries: ['commander'],
    home: '^src/(?:main\\.ts$|cli/)',
    why: 'Arguments are turned into values at the edge.',
  },
];

/** cli/ and startup/ have no row above: commands compose the parts, as app.ts and its steps in startup/ do. */
const PLACES = [...FOLDERS.map(({ folder }) => folder), 'cli', 'startup', 'generated'];

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/** Matches a library wherever it is resolved to, its type package included, and also when it is not installed. */
const libraryPattern = (library) => {
  const typesName = library.replace(/^@([^/]+)\//, '$1__');
  return `(?:^|/)node_modules/(?:${escaped(library)}|@types/${escaped(typesName)})/` + `|^${escaped(library)}(?:/|$)`;
};

/** A path that climbs out of, or stands beside, src/ and is no library. */
const OUTSIDE = '^(?:\\.\\./)*(?:test|bench|scripts|dist)/';
const ANY_LIBRARY = '(?:^|/)node_modules/';
const ALL_HOUSED = HOMES.flatMap(({ libraries, files }) => [
  ...libraries.map(libraryPattern),
  ...(files === undefined ? [] : [files]),
]);

const rule = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to });

const folderRules = FOLDERS.map(({ folder, may, ports, why }) =>
  rule(
    `imports-of-${folder}`,
    why,
    { path: `^src/${folder}/` },
    { path: '^src/', pathNot: [`^src/${folder}/`, ...may, ...(ports ? [PORTS] : [])] },
  ),
);

const homeRules = HOMES.map(({ name, libraries, files, home, why }) =>
  rule(
    `home-of-${name}`,
    why,
    { path: '^src/', pathNot: home },
    { path: [...libraries.map(libraryPattern), ...(files === undefined ? [] : [files])] },
  ),
);

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...folderRules,
    rule(
      'imports-of-config',
      'Configuration is values: a config.ts that imports an adapter would be configured by what it configures.',
      { path: CONFIG },
      { path: '^src/', pathNot: ['^src/contract/', SETTINGS, CONFIG] },
    ),
    rule(
      'imports-of-app',
      'The commands use the composition root; the other way round it could not be started without them.',
      { path: '^src/(?:app\\.ts$|startup/)' },
      { path: '^src/cli/' },
    ),
    rule(
      'startup-composes-for-app',
      'The steps of app.ts know every part, so whoever imports one of them knows every part as well.',
      { path: '^src/', pathNot: '^src/(?:startup|cli)/|^src/app\\.ts$' },
      { path: '^src/startup/' },
    ),
    rule(
      'main-is-the-entry',
      'main.ts owns environment, signals and exit, so importing it from src/ would start a second process inside one.',
      { path: '^src/' },
      { path: '^src/main\\.ts$' },
    ),
    rule(
      'no-unknown-place',
      'A folder that has no rule here has no boundary, so a new one is added together with its rule.',
      { path: '^src/', pathNot: [`^src/(?:${PLACES.join('|')})/`, '^src/(?:main|app)\\.ts$', CONFIG] },
      {},
    ),
    ...homeRules,
    rule(
      'no-homeless-library',
      'A library used in src/ gets a home here first, and is a dependency of the product, not one of development.',
      { path: '^src/', pathNot: '^src/generated/' },
      { path: ANY_LIBRARY, pathNot: ALL_HOUSED },
    ),
    rule(
      'pure-reaches-no-library',
      'What is decided must not depend on I/O, so a pure file reaches no library, by no detour, but those that parse.',
      { path: PURE },
      {
        path: ANY_LIBRARY,
        pathNot: HOMES.find(({ name }) => name === 'contract').libraries.map(libraryPattern),
        reachable: true,
      },
    ),
    rule(
      'pure-imports-no-builtin',
      'Files, sockets, timers and clocks make a decision impossible to repeat; hashing and reading bytes do not.',
      { path: PURE },
      { dependencyTypes: ['core'], pathNot: '^(?:node:)?(?:crypto|buffer)$' },
    ),
    rule(
      'pipeline-is-order-only',
      'The main path is the order of its steps: libraries and I/O stay behind the ports.',
      { path: '^src/pipeline/' },
      {
        path: `${ANY_LIBRARY}|^(?:node:)?(?:fs|net|tls|http|https|http2|dgram|dns|child_process|worker_threads)(?:/|$)`,
      },
    ),
    rule('no-cycles', 'Files in a cycle can only be understood, tested and loaded together.', {}, { circular: true }),
    rule(
      'no-barrels',
      'A barrel hides what a file really needs, and loads everything for one name.',
      { path: '^src/.*/index\\.ts$|^src/index\\.ts$', pathNot: '^src/generated/' },
      {},
    ),
    rule(
      'src-stands-alone',
      'The product is built from src/ alone, so nothing in it may need tests, benchmarks, scripts or an earlier build.',
      { path: '^src/' },
      { path: OUTSIDE },
    ),
  ],
  options: {
    doNotFollow: { path: ['(?:^|/)node_modules/', '^src/generated/'] },
    moduleSystems: ['cjs', 'es6'],
    // Type imports count: a port that names a library's types has taken the library in.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['module', 'main', 'types', 'typings'],
    },
    skipAnalysisNotInRules: true,
  },
};
