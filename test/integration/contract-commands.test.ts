import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { contractsFolder } from '../support/app';
import { createMigratedDatabase, createTestDatabase } from '../support/database';
import { query } from '../support/ledger';
import { caseContract } from '../support/pipeline';
import { startProduct } from '../support/process';

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder of contracts with a database, and the commands on them. */
async function setUp(contracts: readonly string[], { migrated = true } = {}) {
  const { url } = await (migrated ? createMigratedDatabase() : createTestDatabase());
  const dir = contractsFolder(contracts);
  const run = async (...args: string[]): Promise<Run> => {
    const product = startProduct(['contract', ...args], { env: { DATABASE_URL: url, CONTRACTS_DIR: dir } });
    const { code } = await product.exit;
    return { code, stdout: product.stdout, stderr: product.stderr };
  };
  const edit = (from: string, to: string, file = '0.yaml'): void => {
    const path = join(dir, file);
    const text = readFileSync(path, 'utf8');
    if (!text.includes(from)) throw new Error(`${file} has no "${from}"`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  };
  return { url, dir, run, edit };
}

/** As an administrator does through the API. */
async function changePolicy(url: string, windowSeconds: number): Promise<void> {
  await query(
    url,
    `WITH head AS (UPDATE feed_head SET policy_version = policy_version + 1 RETURNING feed_id, policy_version)
     INSERT INTO policy_version (feed_id, version, first_position, window_seconds, max_entries, ordering, contiguous,
                                 max_sequence_jump, origin, actor, reason, recorded_at)
     SELECT p.feed_id, head.policy_version, 0, $1, p.max_entries, p.ordering, p.contiguous, p.max_sequence_jump, 'API',
            'chief', 'long night', now()
     FROM policy_version p JOIN head ON head.feed_id = p.feed_id AND p.version = head.policy_version - 1`,
    [windowSeconds],
  );
}

const policies = (url: string) =>
  query<{ window_seconds: number; origin: string; actor: string; commit: string | null }>(
    url,
    'SELECT window_seconds, origin::text, actor, commit FROM policy_version ORDER BY version',
  );

describe('contract plan and apply', () => {
  it('plan, apply, plan is 2, 0, 0; applying again changes nothing', async () => {
    const { url, run } = await setUp([caseContract()], { migrated: false });
    expect((await run('plan')).code).toBe(2);
    expect(await run('apply', '--actor', 'chief', '--commit', 'c0ffee1')).toMatchObject({ code: 0 });
    expect((await run('plan')).code).toBe(0);
    const again = await run('apply');
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('no change')]);
    expect(await query(url, 'SELECT actor, commit FROM feed_contract')).toEqual([
      { actor: 'chief', commit: 'c0ffee1' },
    ]);
    expect(await policies(url)).toMatchObject([{ origin: 'CONTRACT', actor: 'chief', commit: 'c0ffee1' }]);
  });

  it('records the user and the commit that is checked out, and no commit where files were changed since', async () => {
    const { url, dir, run, edit } = await setUp([caseContract()]);
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', dir, '-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
        encoding: 'utf8',
      }).trim();
    git('init', '--quiet');
    git('add', '.');
    git('commit', '--quiet', '--message', 'feeds');
    await run('apply');
    edit('windowSeconds: 600', 'windowSeconds: 900');
    await run('apply');
    expect(await query(url, 'SELECT actor, commit FROM feed_contract ORDER BY version')).toEqual([
      { actor: userInfo().username, commit: git('rev-parse', 'HEAD') },
      { actor: userInfo().username, commit: null },
    ]);
  });

  it('shows every difference with its grade, in words and as JSON', async () => {
    const { run, edit } = await setUp([caseContract()]);
    await run('apply');
    edit('windowSeconds: 600', 'windowSeconds: 500');
    const plan = await run('plan');
    expect(plan.code).toBe(2);
    expect(plan.stdout).toContain('weakens protection: dedup.windowSeconds: 600 -> 500');
    const json = await run('plan', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      exitCode: 2,
      feeds: [
        {
          feed: 'cad-north',
          status: 'changed',
          grade: 'weakens_protection',
          changes: [{ field: 'dedup.windowSeconds', before: 600, after: 500, grade: 'weakens_protection' }],
        },
      ],
    });
  });

  it('goes back to an earlier contract, which a start would not', async () => {
    const { url, run, edit } = await setUp([caseContract()]);
    await run('apply');
    edit('windowSeconds: 600', 'windowSeconds: 900');
    await run('apply');
    edit('windowSeconds: 900', 'windowSeconds: 600');
    expect(await run('plan')).toMatchObject({ code: 2, stdout: expect.stringContaining('goes back to an earlier') });
    expect((await run('apply')).code).toBe(0);
    expect((await run('plan')).code).toBe(0);
    expect((await policies(url)).map(({ window_seconds }) => window_seconds)).toEqual([600, 900, 600]);
    edit('windowSeconds: 600', 'windowSeconds: 700');
    await run('apply');
    expect(await query(url, 'SELECT contract_version, policy_version FROM feed_head')).toEqual([
      { contract_version: 3, policy_version: 4 },
    ]);
  });

  it('applies all files or none, and says why', async () => {
    const { url, run, edit } = await setUp([
      caseContract(),
      caseContract({ feed: 'cad-south', topics: '["south/#"]' }),
    ]);
    await run('apply');
    await query(url, "UPDATE feed_head SET size = 5 WHERE feed_id = (SELECT id FROM feed WHERE name = 'cad-north')");
    edit('pointer: /src', 'pointer: /unit');
    edit('windowSeconds: 600', 'windowSeconds: 900', '1.yaml');
    const plan = await run('plan');
    expect([plan.code, plan.stdout]).toEqual([1, expect.stringMatching(/refused: .*0\.yaml: .*identity\.version/)]);
    const apply = await run('apply');
    expect([apply.code, apply.stderr]).toEqual([1, expect.stringMatching(/0\.yaml: .*identity\.version/)]);
    expect(await query(url, 'SELECT DISTINCT contract_version FROM feed_head')).toEqual([{ contract_version: 1 }]);
  });

  it('names feeds whose file is gone, which is no change', async () => {
    const { run, dir } = await setUp([caseContract()]);
    await run('apply');
    execFileSync('rm', [join(dir, '0.yaml')]);
    const plan = await run('plan');
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringMatching(/^cad-north .*its file is gone/)]);
  });

  it('keeps a broken file from being planned or applied, with its place', async () => {
    const { run, edit } = await setUp([caseContract()]);
    edit('windowSeconds: 600', 'windowSecs: 600');
    for (const command of ['plan', 'apply', 'export']) {
      const { code, stderr } = await run(command);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/0\.yaml:\d+:\d+: dedup\.windowSecs: unknown key/)]);
    }
  });
});

describe('a policy that was changed through the API', () => {
  it('is drift; export writes it back, comments and all, and the plan is 0; nothing undoes it', async () => {
    const { url, dir, run } = await setUp([caseContract()]);
    await run('apply');
    await changePolicy(url, 3600);
    const plan = await run('plan');
    expect([plan.code, plan.stdout]).toEqual([2, expect.stringContaining('drift: dedup.windowSeconds: 3600')]);
    await run('apply');
    expect((await policies(url)).map(({ origin }) => origin)).toEqual(['CONTRACT', 'API']);

    const before = readFileSync(join(dir, '0.yaml'), 'utf8');
    expect((await run('export')).code).toBe(0);
    expect(readFileSync(join(dir, '0.yaml'), 'utf8')).toBe(before.replace('600', '3600'));
    expect((await run('plan')).code).toBe(0);
    await run('apply');
    expect((await run('plan')).code).toBe(0);
    expect((await policies(url)).map(({ window_seconds }) => window_seconds)).toEqual([600, 3600, 3600]);
  });

  it('is not written over a change of the file that waits', async () => {
    const { url, dir, run, edit } = await setUp([caseContract()]);
    await run('apply');
    await changePolicy(url, 3600);
    edit('windowSeconds: 600', 'windowSeconds: 700');
    const exported = await run('export');
    expect([exported.code, exported.stderr]).toEqual([1, expect.stringContaining('0.yaml: dedup was changed')]);
    expect(readFileSync(join(dir, '0.yaml'), 'utf8')).toContain('windowSeconds: 700');
  });
});

it.each(['oidc:chief', 'OIDC:chief', '', ' ', ' chief', 'chief\n', 'boss\u202egro', 'x'.repeat(201)])(
  'nobody applies a contract as %j',
  async (actor) => {
    const product = startProduct(['contract', 'apply', '--actor', actor], {});
    expect((await product.exit).code).toBe(1);
    expect(product.stderr).toMatch(/^error: option '--actor <name>' argument [^]* is invalid\. /m);
  },
);

describe('contract lint', () => {
  it('needs no server, and gives the place of every error of every file', async () => {
    const dir = contractsFolder([caseContract(), caseContract().replace('dedup:', 'dedupe:')]);
    const product = startProduct(['contract', 'lint', dir, join(dir, '0.yaml'), join(dir, 'none.yaml')], {});
    expect((await product.exit).code).toBe(1);
    expect(product.stdout).toMatch(/1\.yaml:\d+:\d+: dedupe: unknown key "dedupe"/);
    expect(product.stdout).toMatch(/none\.yaml:1:1: cannot be read \(ENOENT\)/);
    expect(product.stdout).not.toContain('0.yaml:');
  });

  it('finds the examples right', async () => {
    const product = startProduct(['contract', 'lint', 'contracts'], { cwd: join(__dirname, '..', '..') });
    expect([(await product.exit).code, product.stdout]).toEqual([0, '3 contracts are right\n']);
  });
});
