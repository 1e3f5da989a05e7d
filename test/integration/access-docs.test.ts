/** docs/operations.md says what the code does: its tables are made of the same data. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Metrics } from '../../src/ops/metrics';
import { AGENCY_ROLES, PERMISSIONS, ROLES, may } from '../../src/ops/roles';
import type { Permission } from '../../src/ops/roles';
import { MAX_BEARER_BYTES, UNAVAILABLE_RETRY_SECONDS } from '../../src/ops/bearer';
import { CLOCK_TOLERANCE_SECONDS } from '../../src/ops/oidc';
import { OIDC_TIMING } from '../../src/ops/oidc-keys';
import { RELOAD_MS } from '../../src/ops/token-file';

const PAGE = readFileSync(join(__dirname, '../../docs/operations.md'), 'utf8');
const API_PAGE = readFileSync(join(__dirname, '../../docs/api.md'), 'utf8');
const words = (text: string) => text.replace(/\s+/g, ' ');

/** Cells of the rows of the table under this head. */
function rowsUnder(head: string): string[][] {
  const table = PAGE.slice(PAGE.indexOf(`\n${head}`) + 1).split('\n\n')[0] ?? '';
  return table
    .split('\n')
    .slice(2)
    .map((row) => row.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim()));
}

it('has the role matrix, as it is enforced', () => {
  const rows = rowsUnder(`| permission | ${ROLES.join(' | ')} |`);
  expect(rows.map((row) => row.slice(0, ROLES.length + 1))).toEqual(
    (Object.keys(PERMISSIONS) as Permission[]).map((permission) => [
      `\`${permission}\``,
      ...ROLES.map((role) => (may([role], permission) ? 'yes' : '–')),
    ]),
  );
  // A token that is valid reads: the API asks for no more than that.
  expect(PERMISSIONS.readDecisions).toEqual(ROLES);
  const reading = ROLES.filter((role) => may([role], 'readPayloads')).map((role) => `\`${role}\``);
  expect(words(API_PAGE)).toContain(`need ${reading.join(' or ')}`);
  expect(words(PAGE)).toContain(`for ${AGENCY_ROLES.map((role) => `\`${role}\``).join(' and ')}`);
  expect(words(PAGE)).toContain(`is worth nothing within ${RELOAD_MS / 1000} seconds`);
});

it('says how long the keys of an OpenID provider count', () => {
  const { refreshMs, retryMs, timeoutMs, cooldownMs, maxAgeMs } = OIDC_TIMING;
  const minutes = `${refreshMs / 60_000} minutes`;
  for (const fact of [
    `every ${minutes}, and at once when a token names a key that is not known`,
    `not more often than every ${cooldownMs / 1000} seconds`,
    `a key that is withdrawn is worth nothing after ${minutes}`,
    `stay in force for up to ${maxAgeMs / 3_600_000} hour`,
    `is repeated after ${retryMs / 1000} seconds; the provider has ${timeoutMs / 1000} seconds to answer`,
    `\`nbf\` and \`iat\` have ${CLOCK_TOLERANCE_SECONDS} seconds`,
    `A token over ${MAX_BEARER_BYTES / 1024} KiB is refused`,
  ]) {
    expect(words(PAGE)).toContain(fact);
  }
  expect(words(API_PAGE)).toContain(`the withdrawal of a provider's key within ${minutes}`);
  expect(UNAVAILABLE_RETRY_SECONDS * 1000).toBe(retryMs);
});

it('lists every metric, with its labels and meaning', async () => {
  const { registry } = new Metrics({ feeds: [], readFacts: () => Promise.resolve([]) });
  const expected: string[][] = [];
  for (const { name, type, help } of await registry.getMetricsAsJSON()) {
    if (!name.startsWith('replay_ledger_')) continue;
    // Not in the typings: what a metric was made with.
    const { labelNames } = registry.getSingleMetric(name) as unknown as { labelNames: readonly string[] };
    const labels = labelNames.filter((label) => label !== 'le').map((label) => `\`${label}\``);
    expected.push([`\`${name}\``, String(type), labels.join(', ') || '–', help]);
  }
  expect(expected.length).toBeGreaterThan(20);
  expect(rowsUnder('| name | kind | labels | meaning |')).toEqual(expected);
});

it('raises alarms on metrics that there are', () => {
  const { registry } = new Metrics({ feeds: [], readFacts: () => Promise.resolve([]) });
  const known = registry.getMetricsAsArray().map(({ name }) => name);
  const alarms = rowsUnder('| expression |').map(([expression = '']) => expression);
  expect(alarms.length).toBeGreaterThan(5);
  for (const expression of alarms) {
    const [name = expression] = /replay_ledger_\w+/.exec(expression) ?? [];
    expect(known).toContain(name);
  }
});
