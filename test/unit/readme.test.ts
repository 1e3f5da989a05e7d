import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VARIABLES } from '../../src/config';
import type { Variable } from '../../src/config';

const ROOT = join(__dirname, '../..');
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const { withVariables } = jest.requireActual<{
  withVariables: (readme: string, variables: readonly Variable[]) => string;
}>('../../scripts/readme.js');

describe('the README', () => {
  it('has every variable that is read, as the configuration describes it', () => {
    expect(withVariables(readme, VARIABLES)).toBe(readme);
  });

  it('names each of its npm commands rightly', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = [...readme.matchAll(/npm (?:run )?(start|test(?::\w+)?|demo|bench|schemas|lint)\b/g)].map(
      (match) => match[1],
    );
    expect(named.length).toBeGreaterThan(3);
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });
});
