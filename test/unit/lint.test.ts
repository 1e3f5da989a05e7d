/**
 * The lint rules that are this project's own, or set in its own way: each one fires where it should and stays silent
 * beside it. Code is linted under the name of a file that exists, because the rules depend on types and on the folder.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const REPOSITORY = join(__dirname, '..', '..');
const PURE_FILE = 'src/contract/types.ts';
const ADAPTER_FILE = 'src/mqtt/port.ts';
const TEST_FILE = 'test/unit/lint.test.ts';

/** Lints all snippets in one process: ESLint loads its configuration as an ES module, which Jest cannot. */
const LINTER = `
  const { ESLint } = require('eslint');
  const snippets = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const eslint = new ESLint();
  (async () => {
    const found = [];
    for (const { file, code } of snippets) {
      const [result] = await eslint.lintText(code, { filePath: file });
      found.push(result.messages.map(({ ruleId, message }) => ruleId ?? message));
    }
    process.stdout.write(JSON.stringify(found));
  })();
`;

interface Snippet {
  readonly title: string;
  readonly file: string;
  readonly code: string;
  /** The rule that reports it, once; null where none does. */
  readonly rule: string | null;
}

const snippets: readonly Snippet[] = [
  {
    title: 'a promise that nobody waits for',
    file: ADAPTER_FILE,
    code: 'export function close(end: () => Promise<void>): void {\n  end();\n}\n',
    rule: '@typescript-eslint/no-floating-promises',
  },
  {
    title: 'an async listener where none is awaited',
    file: ADAPTER_FILE,
    code: 'export const run = (on: (f: () => void) => void, f: () => Promise<void>): void => on(f);\n',
    rule: '@typescript-eslint/no-misused-promises',
  },
  {
    title: 'a promise that leaves its try block',
    file: ADAPTER_FILE,
    code: 'export async function ask(f: () => Promise<number>): Promise<number> {\n  try {\n    return f();\n  } catch {\n    return 0;\n  }\n}\n',
    rule: '@typescript-eslint/return-await',
  },
  {
    title: 'a union that is not decided in full',
    file: ADAPTER_FILE,
    code: "export function word(tier: 'NONE' | 'LEDGER'): string {\n  switch (tier) {\n    case 'NONE':\n      return 'none';\n  }\n  return '';\n}\n",
    rule: '@typescript-eslint/switch-exhaustiveness-check',
  },
  {
    title: 'an empty catch',
    file: ADAPTER_FILE,
    code: 'export function quiet(f: () => void): void {\n  try {\n    f();\n  } catch {}\n}\n',
    rule: 'no-empty',
  },
  {
    title: 'a thrown text',
    file: ADAPTER_FILE,
    code: "export function fail(): never {\n  throw 'no';\n}\n",
    rule: '@typescript-eslint/only-throw-error',
  },
  {
    title: 'a non-null assertion without a reason',
    file: ADAPTER_FILE,
    code: 'export const first = (values: readonly string[]): string => values[0]!;\n',
    rule: 'project/explained-non-null',
  },
  {
    title: 'a non-null assertion with its reason',
    file: ADAPTER_FILE,
    code: '// Never empty: the loader refuses an empty list.\nexport const first = (values: readonly string[]): string => values[0]!;\n',
    rule: null,
  },
  {
    title: 'the console in an adapter',
    file: ADAPTER_FILE,
    code: "export const say = (): void => console.log('hello');\n",
    rule: 'no-console',
  },
  {
    title: 'the environment outside main.ts',
    file: ADAPTER_FILE,
    code: 'export const url = (): string | undefined => process.env.MQTT_URL;\n',
    rule: 'no-restricted-properties',
  },
  {
    title: 'the environment by import',
    file: ADAPTER_FILE,
    code: "import { env } from 'node:process';\n\nexport const url = (): string | undefined => env.MQTT_URL;\n",
    rule: '@typescript-eslint/no-restricted-imports',
  },
  {
    title: 'work on import',
    file: ADAPTER_FILE,
    code: 'export function connect(): void {}\n\nconnect();\n',
    rule: 'no-restricted-syntax',
  },
  {
    title: 'a barrel under another name',
    file: ADAPTER_FILE,
    code: "export * from '../contract/types';\n",
    rule: 'no-restricted-syntax',
  },
  {
    title: 'the clock in a pure file',
    file: PURE_FILE,
    code: 'export const now = (): number => Date.now();\n',
    rule: 'no-restricted-properties',
  },
  {
    title: 'the clock in a pure file, by constructor',
    file: PURE_FILE,
    code: 'export const now = (): Date => new Date();\n',
    rule: 'no-restricted-syntax',
  },
  {
    title: 'a given time in a pure file',
    file: PURE_FILE,
    code: 'export const at = (milliseconds: number): Date => new Date(milliseconds);\n',
    rule: null,
  },
  {
    title: 'the clock in an adapter',
    file: ADAPTER_FILE,
    code: 'export const now = (): number => Date.now();\n',
    rule: null,
  },
  {
    title: 'randomness in a pure file',
    file: PURE_FILE,
    code: "import { randomUUID } from 'node:crypto';\n\nexport const id = (): string => randomUUID();\n",
    rule: '@typescript-eslint/no-restricted-imports',
  },
  {
    title: 'hashing in a pure file',
    file: PURE_FILE,
    code: "import { createHash } from 'node:crypto';\n\nexport const hasher = (): unknown => createHash('sha256');\n",
    rule: null,
  },
  {
    title: 'a timer in a pure file',
    file: PURE_FILE,
    code: 'export const later = (f: () => void): void => void setTimeout(f, 1);\n',
    rule: 'no-restricted-globals',
  },
  {
    title: 'a type imported as a value',
    file: ADAPTER_FILE,
    code: "import { Delivery } from '../contract/types';\n\nexport type Copy = Delivery;\n",
    rule: '@typescript-eslint/consistent-type-imports',
  },
  {
    title: 'a class in a decorated signature, which its metadata needs as a value',
    file: ADAPTER_FILE,
    code: "import { URL } from 'node:url';\n\nconst field: PropertyDecorator = () => undefined;\n\nexport class Link {\n  @field\n  href?: URL;\n}\n",
    rule: null,
  },
  {
    title: 'a file over 300 lines',
    file: ADAPTER_FILE,
    code: `${'export {};\n'.repeat(301)}`,
    rule: 'max-lines',
  },
  {
    title: 'a function over 60 lines',
    file: ADAPTER_FILE,
    code: `export function long(f: () => void): void {\n${'  f();\n'.repeat(60)}}\n`,
    rule: 'max-lines-per-function',
  },
  ...['skip', 'only', 'todo', 'failing'].map((modifier) => ({
    title: `a test that is marked ${modifier}`,
    file: TEST_FILE,
    code: `it.${modifier}('later', () => undefined);\n`,
    rule: 'no-restricted-syntax',
  })),
  {
    title: 'an assertion in a catch block',
    file: TEST_FILE,
    code: "it('fails', () => {\n  try {\n    JSON.parse('{');\n  } catch (error) {\n    expect(error).toBeDefined();\n  }\n});\n",
    rule: 'no-restricted-syntax',
  },
  {
    title: 'a mocked module',
    file: TEST_FILE,
    code: "jest.mock('mqtt');\n",
    rule: 'no-restricted-syntax',
  },
];

describe('lint rules', () => {
  let found: ReadonlyArray<readonly string[]> = [];

  beforeAll(() => {
    const output = execFileSync(process.execPath, ['-e', LINTER], {
      cwd: REPOSITORY,
      input: JSON.stringify(snippets.map(({ file, code }) => ({ file, code }))),
      encoding: 'utf8',
      // Under CI=true typescript-eslint would judge the files on the disk instead of the snippets.
      env: { ...process.env, TSESTREE_SINGLE_RUN: 'false' },
    });
    found = JSON.parse(output) as ReadonlyArray<readonly string[]>;
  });

  it.each(snippets.map((snippet, index) => [snippet.title, snippet.rule, index] as const))(
    '%s: %s',
    (_title, rule, index) => {
      expect(found[index]).toEqual(rule === null ? [] : [rule]);
    },
  );
});
