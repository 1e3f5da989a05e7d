import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onCleanup } from '../support/cleanup';
import { startProduct, startScript, type TestProcess } from '../support/process';

/** What happened in the night, counted by hand. */
const RESULT = {
  published: 9,
  delivered: 14,
  redelivered: 5,
  naive: { casualties: 6, units: { 'engine-7': 'assigned', 'engine-12': 'assigned' } },
  cop: { casualties: 3, units: { 'engine-7': 'released', 'engine-12': 'released' } },
  outcomes: { APPLIED: 9, DUPLICATE_SUPPRESSED: 5 },
  balanced: true,
  apiUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/graphql$/) as string,
};

/** Position of the replay, source, sequence, event, position of the original, tier. */
const SUPPRESSIONS = [
  ['8', 'engine-7', '1', 'engine-7 assigned', '1', 'WINDOW'],
  ['9', 'engine-12', '1', 'engine-12 assigned', '2', 'WINDOW'],
  ['10', 'engine-7', '2', 'casualties \\+1', '3', 'WINDOW'],
  ['11', 'engine-12', '2', 'casualties \\+1', '4', 'WINDOW'],
  ['12', 'engine-7', '3', 'casualties \\+1', '5', 'WINDOW'],
];

const CLEAN_END = { code: 0, signal: null };

/** A folder for temporary files that is the child's alone, so that what it leaves is seen. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'replay-ledger-test-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function startDemo(TMPDIR: string, ...args: string[]): TestProcess {
  return startProduct(['demo', ...args], { env: { TMPDIR } });
}

describe('the demo', () => {
  it('--json prints one object with the numbers of the night, and the story on standard error', async () => {
    const folder = temporaryFolder();
    const demo = startDemo(folder, '--once', '--json');
    expect(await demo.exit).toEqual(CLEAN_END);
    // Throws on a second object.
    expect(JSON.parse(demo.stdout)).toEqual(RESULT);
    expect(demo.stdout).toMatch(/^.+\n$/);
    expect(demo.stderr).toContain('Waiting for the embedded database');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('tells people both pictures, every suppressed replay with its original, and the balance, in 80 columns', async () => {
    const folder = temporaryFolder();
    const demo = startDemo(folder, '--once');
    expect(await demo.exit).toEqual(CLEAN_END);
    expect(demo.stderr).toBe('');
    const text = demo.stdout;
    expect(text).toMatch(/naive consumer +Replay Ledger\n/);
    expect(text).toMatch(/casualties +6 \(wrong: 3\) +3\n/);
    expect(text).toMatch(/engine-7 +assigned \(wrong: released\) +released\n/);
    expect(text).toMatch(/engine-12 +assigned \(wrong: released\) +released\n/);
    for (const columns of SUPPRESSIONS)
      expect(text).toMatch(new RegExp(`^ +${columns.join(' +')} +\\d+\\.\\d\\d s$`, 'm'));
    expect(text).toContain('9 published, 14 delivered (5 of them again): 9 APPLIED, 5 DUPLICATE_SUPPRESSED\n');
    expect(text).toContain('received 14 = entries 14\n');
    expect(text).toContain('applied keys 9 = applied 9 + released 0\n');
    expect(text).toContain('balanced: nothing vanished, nothing counts twice\n');
    expect(text).toMatch(/http:\/\/127\.0\.0\.1:\d+\/graphql/);
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    // No terminal, no colours.
    expect(text).not.toContain('\u001b');
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    ['while the database starts', /^Waiting for/],
    ['in the middle of the night', /02:31/],
  ])('SIGTERM %s ends it cleanly and leaves nothing', async (_when, line) => {
    const folder = temporaryFolder();
    const demo = startDemo(folder, '--once', '--json');
    await demo.waitForLine(line);
    demo.signal('SIGTERM');
    expect(await demo.exit).toEqual(CLEAN_END);
    expect(demo.stdout).toBe('');
    expect(demo.stderr).toContain('stopped by SIGTERM before the end of the story\n');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('says in one line what it cannot do, and exits with 1', async () => {
    const demo = startDemo('/nowhere/at/all', '--once', '--json');
    expect(await demo.exit).toEqual({ code: 1, signal: null });
    expect(demo.stdout).toBe('');
    expect(demo.stderr.trimEnd().split('\n').at(-1)).toMatch(/^replay-ledger: .*\/nowhere\/at\/all/);
    expect(demo.stderr).not.toMatch(/^ +at /m);
  });

  it('without --once keeps the API open for the query that it prints, until it is stopped', async () => {
    const folder = temporaryFolder();
    // The command line takes an output that is no terminal for --once, so the command is called from here.
    const demo = startScript(
      `const { runDemo } = require('./src/cli/demo.ts');
       const stop = new Promise((resolve) => process.once('SIGTERM', () => resolve('SIGTERM')));
       runDemo({ once: false, json: false, stop }).then(() => process.exit(0));`,
      { env: { TMPDIR: folder } },
    );
    await demo.waitForLine(/until you press Ctrl-C/);
    const [, url = ''] = await demo.waitForLine(/curl -s (\S+)/);
    const [, body = ''] = await demo.waitForLine(/-d '(.+)'$/);
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect(await answer.json()).toEqual({ data: { incident: { state: { ...RESULT.cop, operationalPeriod: 2 } } } });
    expect(await demo.stop()).toEqual(CLEAN_END);
    expect(readdirSync(folder)).toEqual([]);
    await expect(fetch(url)).rejects.toThrow();
  });
});
