/**
 * The import rules of .dependency-cruiser.js: the product keeps them, and every one of them fires.
 *
 * Each file under test/fixtures/boundaries/src begins with `// fires <rules>`, or `// fires nothing` for the allowed
 * import next to the forbidden one. What the checker reports must be exactly what these lines say.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const REPOSITORY = join(__dirname, '..', '..');
const FIXTURES = join(REPOSITORY, 'test', 'fixtures', 'boundaries');
const CONFIG = join(REPOSITORY, '.dependency-cruiser.js');
const CHECKER = join(REPOSITORY, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruise.mjs');

interface Violation {
  readonly from: string;
  /** Where the import resolves to, relative to the cruised folder. */
  readonly to: string;
  readonly rule: { readonly name: string };
  /** The files of a cycle, which is reported once for all of them. */
  readonly cycle?: ReadonlyArray<{ readonly name: string }>;
}

interface Cruise {
  readonly modules: ReadonlyArray<{ readonly source: string }>;
  readonly summary: { readonly violations: readonly Violation[] };
}

interface Rule {
  readonly name: string;
  readonly severity: string;
  readonly comment: string;
}

/** Runs the checker as `npm run boundaries` does, with `folder` in the place of the repository. */
function cruise(folder: string): Cruise {
  const run = spawnSync(process.execPath, [CHECKER, '--config', CONFIG, '--output-type', 'json', 'src'], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  if (run.status !== 0 && !run.stdout.startsWith('{')) {
    throw new Error(`the checker did not run: ${run.stderr}${run.stdout}`);
  }
  return JSON.parse(run.stdout) as Cruise;
}

/** `<rule>: <file>`, once for each file that a violation is reported for, sorted. */
function reported(violations: readonly Violation[]): string[] {
  const lines = violations.flatMap((violation) => {
    const files = violation.cycle === undefined ? [violation.from] : violation.cycle.map(({ name }) => name);
    return files.map((file) => `${violation.rule.name}: ${file}`);
  });
  return [...new Set(lines)].sort();
}

function fixtureFiles(): string[] {
  return readdirSync(join(FIXTURES, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(FIXTURES, join(entry.parentPath, entry.name)));
}

/** The rules that the first line of a fixture declares. */
function declaredRules(file: string): string[] {
  const firstLine = readFileSync(join(FIXTURES, file), 'utf8').split('\n')[0] ?? '';
  const declared = /^\/\/ fires ([a-z, -]+?)(?::.*)?$/.exec(firstLine)?.[1];
  if (declared === undefined) {
    throw new Error(`${file} does not begin with a line "// fires <rules>"`);
  }
  return declared === 'nothing' ? [] : declared.split(', ');
}

function readRules(): readonly Rule[] {
  // The configuration is CommonJS and read as the checker reads it, outside the transform of the tests.
  const { forbidden } = jest.requireActual<{ readonly forbidden: readonly Rule[] }>(CONFIG);
  return forbidden;
}

describe('import boundaries', () => {
  const rules = readRules();
  let violations: readonly Violation[] = [];

  beforeAll(() => {
    violations = cruise(FIXTURES).summary.violations;
  });

  it('are kept by the product', () => {
    const product = cruise(REPOSITORY);
    expect(product.modules.map(({ source }) => source)).toContain('src/contract/types.ts');
    expect(reported(product.summary.violations)).toEqual([]);
  });

  it('are reported for exactly the fixtures that break them', () => {
    const declared = fixtureFiles().flatMap((file) => declaredRules(file).map((name) => `${name}: ${file}`));
    expect(reported(violations)).toEqual(declared.sort());
  });

  it.each(rules.map((rule) => [rule.name, rule] as const))(
    '%s has a fixture, fails the check and says why',
    (name, rule) => {
      expect(violations.map((violation) => violation.rule.name)).toContain(name);
      expect(rule.severity).toBe('error');
      // One sentence: it ends in a full stop and holds no other.
      expect(rule.comment).toMatch(/^[^\n]{20,}\.$/);
      expect(rule.comment).not.toMatch(/\. [A-Z]/);
    },
  );

  it('give every dependency of the product one home, and show the home being left', () => {
    const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    const leftHome = violations.filter(({ rule }) => rule.name.startsWith('home-of-'));
    for (const library of Object.keys(manifest.dependencies)) {
      const homes = leftHome.filter(({ to }) => to.includes(`node_modules/${library}/`)).map(({ rule }) => rule.name);
      expect({ library, homes: [...new Set(homes)] }).toEqual({ library, homes: [expect.stringMatching(/^home-of-/)] });
    }
  });
});
