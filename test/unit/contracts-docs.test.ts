/** docs/contracts.md does what it says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VARIABLES } from '../../src/config';
import { GRADES } from '../../src/contract/plan';
import { errorsOf, load } from './loader-fixture';

const PAGE = readFileSync(join(__dirname, '../../docs/contracts.md'), 'utf8');
const FILE = 'contracts/county-fire-cad.yaml';

/** The first block of YAML, which is indented as a part of a list. */
function firstContract(): string {
  const [, block = ''] = /^ {3}```yaml\n([\s\S]*?)^ {3}```/m.exec(PAGE) ?? [];
  return block.replace(/^ {3}/gm, '');
}

describe('docs/contracts.md', () => {
  test('begins with a contract that is right', () => {
    expect(load(firstContract(), FILE)).toMatchObject({ contract: { feed: 'county-fire-cad' }, warnings: [] });
  });

  test('shows the error of lint as it is', () => {
    const [shown] = errorsOf(firstContract().replace('sequence:', 'sequense:'), FILE).slice(-1);
    expect(PAGE).toContain(`   ${shown ?? 'an error'}\n`);
  });

  test('has every grade, and names what there is', () => {
    for (const grade of GRADES) expect(PAGE).toContain(`\`${grade.replace('_', ' ')}\``);
    expect(VARIABLES.map(({ name }) => name)).toEqual(expect.arrayContaining(['CONTRACTS_DIR', 'CONTRACTS_MODE']));
  });

  test('has a policy that the loader takes', () => {
    const [, line = ''] = /^(policy: .*)$/m.exec(PAGE) ?? [];
    expect(load(`${firstContract()}${line}\n`).contract.policy).toEqual({ managedBy: 'contract' });
  });
});
