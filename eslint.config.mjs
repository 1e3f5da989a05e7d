import tseslint from 'typescript-eslint';

/** Rules of this project that no package has. */
const project = {
  rules: {
    /** `value!` stands only beside a comment that says why the value is there. */
    'explained-non-null': {
      meta: {
        type: 'problem',
        schema: [],
        messages: { unexplained: 'Say in a comment on this line or the one above why this is never null.' },
      },
      create(context) {
        const commentedLines = new Set();
        for (const { loc } of context.sourceCode.getAllComments()) {
          // A comment explains its own lines and the line after it.
          for (let line = loc.start.line; line <= loc.end.line + 1; line += 1) {
            commentedLines.add(line);
          }
        }
        return {
          TSNonNullExpression(node) {
            if (!commentedLines.has(node.loc.end.line)) {
              context.report({ node, messageId: 'unexplained' });
            }
          },
        };
      },
    },
  },
};

/** Core rules that find mistakes; the compiler already finds what is undefined, unreachable or assigned wrongly. */
const mistakes = {
  eqeqeq: ['error', 'always', { null: 'ignore' }],
  'for-direction': 'error',
  'no-async-promise-executor': 'error',
  'no-compare-neg-zero': 'error',
  'no-cond-assign': 'error',
  'no-constant-binary-expression': 'error',
  'no-constant-condition': ['error', { checkLoops: 'allExceptWhileTrue' }],
  'no-control-regex': 'error',
  'no-debugger': 'error',
  'no-dupe-else-if': 'error',
  'no-duplicate-case': 'error',
  'no-empty': ['error', { allowEmptyCatch: false }],
  'no-empty-character-class': 'error',
  'no-empty-pattern': 'error',
  'no-ex-assign': 'error',
  'no-extra-boolean-cast': 'error',
  'no-fallthrough': 'error',
  'no-implied-eval': 'error',
  'no-irregular-whitespace': 'error',
  'no-loss-of-precision': 'error',
  'no-misleading-character-class': 'error',
  'no-prototype-builtins': 'error',
  'no-regex-spaces': 'error',
  'no-self-assign': 'error',
  'no-self-compare': 'error',
  'no-sparse-arrays': 'error',
  'no-template-curly-in-string': 'error',
  'no-unmodified-loop-condition': 'error',
  'no-unsafe-finally': 'error',
  'no-unsafe-optional-chaining': 'error',
  'no-unused-labels': 'error',
  'no-useless-catch': 'error',
  'no-useless-escape': 'error',
  'no-var': 'error',
  'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx'], location: 'start' }],
  'object-shorthand': 'error',
  'prefer-const': 'error',
  'use-isnan': 'error',
  'valid-typeof': 'error',
};

/** A promise that nobody waits for is an update that nobody knows the fate of. */
const promises = {
  '@typescript-eslint/await-thenable': 'error',
  '@typescript-eslint/no-floating-promises': 'error',
  '@typescript-eslint/no-misused-promises': 'error',
  '@typescript-eslint/only-throw-error': 'error',
  '@typescript-eslint/prefer-promise-reject-errors': 'error',
  // `return promise` inside `try` leaves the block before the promise fails.
  '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
  // An async function without await turns a thrown error into a rejection, as the ports ask.
  '@typescript-eslint/require-await': 'off',
};

const types = {
  '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
  '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' }],
  // A union that grows must be decided everywhere; a `default` is such a decision.
  '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
  '@typescript-eslint/no-unnecessary-type-assertion': 'error',
  '@typescript-eslint/restrict-plus-operands': 'error',
};

const ONLY_MAIN = 'Only src/main.ts touches environment, signals and exit: take a value, throw an error.';
const processProperties = ['argv', 'emit', 'env', 'exit', 'exitCode', 'kill', 'on', 'once'].map((property) => ({
  object: 'process',
  property,
  message: ONLY_MAIN,
}));

const noBarrel = { selector: 'ExportAllDeclaration', message: 'No barrels: import from the file that has the name.' };
const noWorkOnImport = {
  selector: 'Program > ExpressionStatement > :matches(CallExpression, AwaitExpression, NewExpression)',
  message: 'No work on import: put it into a function that somebody calls.',
};

const NO_CLOCK = 'Pure files have no clock, no timer and no randomness: take the value as an argument.';
const pure = {
  'no-restricted-globals': [
    'error',
    ...['fetch', 'performance', 'process', 'queueMicrotask', 'setImmediate', 'setInterval', 'setTimeout'].map(
      (name) => ({ name, message: NO_CLOCK }),
    ),
  ],
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: NO_CLOCK },
    { object: 'Math', property: 'random', message: NO_CLOCK },
    { object: 'crypto', property: 'randomUUID', message: NO_CLOCK },
    { object: 'crypto', property: 'getRandomValues', message: NO_CLOCK },
  ],
  '@typescript-eslint/no-restricted-imports': [
    'error',
    {
      paths: ['crypto', 'node:crypto'].map((name) => ({
        name,
        allowImportNames: ['createHash', 'hash'],
        message: 'Of node:crypto, pure files use hashing alone.',
      })),
    },
  ],
  'no-restricted-syntax': [
    'error',
    noBarrel,
    noWorkOnImport,
    { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: NO_CLOCK },
    { selector: 'CallExpression[callee.name="Date"]', message: NO_CLOCK },
  ],
};

const testHonesty = {
  'no-restricted-syntax': [
    'error',
    {
      selector: 'MemberExpression[object.name=/^(describe|it|test)$/][property.name=/^(skip|only|todo|failing)$/]',
      message: 'No test is skipped, singled out or expected to fail.',
    },
    {
      selector: 'CallExpression[callee.name=/^(xit|xtest|xdescribe|fit|fdescribe)$/]',
      message: 'No test is skipped or singled out.',
    },
    {
      selector: 'CatchClause CallExpression[callee.name="expect"]',
      message: 'An assertion in a catch block passes when nothing is thrown: use rejects or toThrow.',
    },
    {
      selector: 'CallExpression[callee.object.name="jest"][callee.property.name=/^(mock|doMock|setMock)$/]',
      message: 'Stores and brokers are real in tests.',
    },
  ],
};

export default tseslint.config(
  {
    ignores: ['dist/', 'coverage/', 'data/', 'node_modules/', '.cache/', 'src/generated/', 'test/fixtures/'],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error', reportUnusedInlineConfigs: 'error' } },
  { plugins: { project }, rules: mistakes },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommended],
    languageOptions: { parserOptions: { project: './tsconfig.test.json', tsconfigRootDir: import.meta.dirname } },
    rules: { ...promises, ...types, 'max-lines': ['error', { max: 300 }] },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true, IIFEs: true }],
      'no-console': 'error',
      'no-restricted-properties': ['error', ...processProperties],
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { paths: ['process', 'node:process'].map((name) => ({ name, message: ONLY_MAIN })) },
      ],
      'no-restricted-syntax': ['error', noBarrel, noWorkOnImport],
      'project/explained-non-null': 'error',
      '@typescript-eslint/no-base-to-string': 'error',
      '@typescript-eslint/no-unsafe-argument': 'error',
      '@typescript-eslint/no-unsafe-assignment': 'error',
      '@typescript-eslint/no-unsafe-call': 'error',
      '@typescript-eslint/no-unsafe-member-access': 'error',
      '@typescript-eslint/no-unsafe-return': 'error',
    },
  },
  {
    files: [
      'src/contract/**/*.ts',
      'src/dedup/**/*.ts',
      'src/effects/**/*.ts',
      'src/ledger/{leaf,entry,term,merkle,tree,proof,checkpoint,verif}*.ts',
    ],
    rules: pure,
  },
  { files: ['src/cli/**/*.ts', 'src/main.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['src/main.ts'],
    rules: {
      'no-restricted-properties': 'off',
      '@typescript-eslint/no-restricted-imports': 'off',
      'no-restricted-syntax': ['error', noBarrel],
    },
  },
  { files: ['test/**/*.ts'], rules: testHonesty },
  {
    files: ['**/*.js', '**/*.cjs'],
    languageOptions: { sourceType: 'commonjs' },
  },
);
