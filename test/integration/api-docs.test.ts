/** docs/api.md does what it says: its queries run as they stand there, its tables are those of the code. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { API_ERROR_CODES, REQUEST_ERROR_CODES, SERVICE_ERROR_CODES } from '../../src/api/errors';
import { DEFAULT_LIMITS } from '../../src/api/limits';
import { emitGraphqlSchema } from '../../src/api/schema';
import { CLOSE_FORBIDDEN, CLOSE_RIGHTS_CHANGED } from '../../src/api/session';
import { CLOSE_TOO_SLOW } from '../../src/api/socket-guard';
import { RELOAD_MS } from '../../src/ops/token-file';
import { delivery } from '../support/pipeline';
import type { StoredEntry } from '../support/ledger';
import { until } from '../support/wait';
import type { Data, TestApi } from './api-fixture';
import { startBoth } from './api-fixture';

const ROOT = join(__dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/api.md'), 'utf8');

interface Example {
  readonly heading: string;
  readonly query: string;
  readonly variables: Record<string, unknown>;
}

/** Every GraphQL block, with the JSON block that follows it, under the heading above it. */
function examples(): Example[] {
  const found: Example[] = [];
  for (const section of PAGE.split(/^(?=##+ )/m)) {
    const heading = /^##+ (.*)$/m.exec(section)?.[1] ?? '';
    for (const match of section.matchAll(/```graphql\n([\s\S]*?)```(?:\s*```json\n([\s\S]*?)```)?/g)) {
      found.push({
        heading,
        query: match[1] ?? '',
        variables: JSON.parse(match[2] ?? '{}') as Record<string, unknown>,
      });
    }
  }
  return found;
}

const INCIDENT = 'INC-2026-0142';

function message(engine: string, boot: string, sequence: number, rest: object) {
  const payload = JSON.stringify({
    boot_id: boot,
    sequence,
    incident_id: INCIDENT,
    sent: '2026-08-29T06:10:00Z',
    ...rest,
  });
  return delivery(payload, { topic: `incidents/county-fire/${engine}/events` });
}

let app: TestApi;
let entries: StoredEntry[];
const answers = new Map<string, Data>();

beforeAll(async () => {
  const contract = readFileSync(join(ROOT, 'contracts/county-fire-cad.yaml'), 'utf8');
  const both = await startBoth(contract);
  app = both.app;
  const casualties = { type: 'casualty', payload: { delta: 3 } };
  await both.path.deliver(
    message('engine-7', 'boot-2', 7, { type: 'period', payload: { period: 1 } }),
    message('engine-7', 'boot-3', 41, casualties),
    message('engine-9', 'boot-1', 5, { type: 'unit-status', payload: { unit: 'E9', status: 'RELEASED' } }),
    message('engine-7', 'boot-3', 41, casualties),
    message('engine-7', 'boot-3', 41, { type: 'casualty', payload: { delta: 4 } }),
    message('engine-7', 'boot-3', 40, { type: 'assignment', payload: { unit: 'E7' } }),
  );
  entries = await both.path.entries();
  for (const { heading, query, variables } of examples()) {
    if (!query.startsWith('query') || !/^\d/.test(heading)) continue;
    // The page has a night of its own; ours is now.
    const times = 'from' in variables ? { from: entries[0]?.recordedAt, to: '2999-01-01T00:00:00Z' } : {};
    answers.set(heading, await app.data(query, { ...variables, ...times }));
  }
});

const answerTo = (number: number): Data => {
  const [, answer] = [...answers].find(([heading]) => heading.startsWith(`${number}. `)) ?? [];
  if (answer === undefined) throw new Error(`docs/api.md has no question ${number}`);
  return answer;
};

describe('docs/api.md', () => {
  it('asks ten questions, each with a query', () => {
    expect([...answers.keys()].map((heading) => Number.parseInt(heading, 10))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('1: what was decided about an incident', () => {
    const { counts, decisions } = answerTo(1).incident;
    expect(decisions.nodes.map((node: Data) => node.outcome)).toEqual(entries.map((entry) => entry.outcome));
    expect(counts).toEqual([
      { outcome: 'DUPLICATE_SUPPRESSED', count: '1' },
      { outcome: 'KEY_CONFLICT', count: '1' },
      { outcome: 'STALE_OUT_OF_ORDER', count: '1' },
      { outcome: 'APPLIED', count: '3' },
    ]);
  });

  it('2 to 5: replays, held messages, conflicts, one message', () => {
    expect(answerTo(2).decisions.nodes).toMatchObject([
      { position: '3', tier: 'WINDOW', original: { position: '1', outcome: 'APPLIED' } },
    ]);
    expect(answerTo(2).decisions.nodes[0].replayLagSeconds).toBeGreaterThan(0);
    expect(answerTo(3).decisions.nodes).toMatchObject([
      { outcome: 'KEY_CONFLICT', resolution: null },
      {
        outcome: 'STALE_OUT_OF_ORDER',
        reason: 'below_high_water_mark',
        payloadText: expect.stringContaining('"unit":"E7"') as string,
      },
    ]);
    expect(answerTo(4).decisions.nodes).toMatchObject([
      { sequence: '41', payload: { payload: { delta: 4 } }, original: { payload: { payload: { delta: 3 } } } },
    ]);
    expect(answerTo(5).decisions.nodes.map((node: Data) => node.position)).toEqual(['1', '3', '4']);
  });

  it('6 and 7: the picture, the balance', () => {
    expect(answerTo(6).incident.state).toEqual({ casualties: 3, operationalPeriod: 1, units: { E9: 'RELEASED' } });
    expect(answerTo(6).incident.fields[0]).toMatchObject({ path: 'casualties', position: '1', sourceId: 'engine-7' });
    expect(answerTo(7).feeds).toMatchObject([
      { name: 'county-fire-cad', ledger: { size: '6' }, balance: { balanced: true, received: '6' } },
    ]);
  });

  it('8 to 10: the window, the policy, a source', () => {
    expect(answerTo(8)).toMatchObject({
      feed: {
        window: {
          ...{ replayHorizonSeconds: 420, entriesInSeconds: '6' },
          advice: { windowSeconds: 421, maxEntries: 8, replays: '1', warning: null },
        },
      },
      decisions: { nodes: [] },
    });
    expect(answerTo(9).feed).toMatchObject({
      contract: { version: 1 },
      policyHistory: [{ version: 1, origin: 'CONTRACT' }],
    });
    const { source, sources } = answerTo(10);
    expect(source).toMatchObject({
      highWaterMark: '41',
      epochs: [
        { epoch: 'boot-3', current: true },
        { epoch: 'boot-2', current: false },
      ],
    });
    expect(sources.nodes.map((node: Data) => node.sourceId)).toEqual(['engine-7', 'engine-9']);
  });

  it('subscribes as it says', async () => {
    const { query, variables } = examples().find((example) => example.query.startsWith('subscription')) ?? {
      query: '',
      variables: {},
    };
    const { decisions } = await app.data(
      '{ decisions(filter: { feed: "county-fire-cad" }, first: 1) { pageInfo { endCursor } } }',
    );
    const events: Data[] = [];
    app
      .client()
      .subscribe(
        { query, variables: { ...variables, after: decisions.pageInfo.endCursor as string } },
        { next: ({ data }) => events.push(data as Data), error: () => undefined, complete: () => undefined },
      );
    await until(() => events.length === 3, { what: 'the events' });
    expect(events.map((event) => event.suppressions.decision.outcome)).toEqual([
      'DUPLICATE_SUPPRESSED',
      'KEY_CONFLICT',
      'STALE_OUT_OF_ORDER',
    ]);
  });

  it('changes the policy as it says, and says who did', async () => {
    const [example] = examples().filter(({ query }) => query.startsWith('mutation Resize'));
    expect((await app.data(example?.query ?? '', example?.variables)).updateDedupPolicy).toMatchObject({
      policy: { version: 2, firstPosition: '6', windowSeconds: 1800 },
      keysLeaving: '0',
    });
    const [log] = examples().filter(({ query }) => query.startsWith('query AdminLog'));
    expect((await app.data(log?.query ?? '', log?.variables)).adminLog.nodes).toMatchObject([
      { kind: 'POLICY_CHANGED', actor: 'local', detail: { version: 2, policy: { windowSeconds: 1800 } } },
    ]);
  });

  it('previews a change as it says', async () => {
    const [example] = examples().filter(({ query }) => query.startsWith('query Preview'));
    // Sequence 40 came after 41: stale, and applied late under the other ordering.
    expect((await app.data(example?.query ?? '', example?.variables)).policyPreview).toMatchObject({
      ...{ problems: [], replays: '1', previewed: { caughtByWindow: '1' }, ledgerSamples: [], differenceCount: 1 },
      differences: [
        {
          decision: { position: '5', sequence: '40' },
          inForce: { outcome: 'STALE_OUT_OF_ORDER', reason: 'below_high_water_mark' },
          previewed: { outcome: 'APPLIED', late: true },
        },
      ],
    });
  });

  it('has every error code, and no other', () => {
    const table = PAGE.slice(PAGE.indexOf('| code |'), PAGE.indexOf('## Health'));
    const documented = [...table.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
    expect(documented.sort()).toEqual(
      [...new Set([...API_ERROR_CODES, ...SERVICE_ERROR_CODES, ...REQUEST_ERROR_CODES])].sort(),
    );
  });

  it('states the limits that are in force', () => {
    const { maxBodyBytes, maxTokens, maxDepth, maxCost, maxPageSize, maxPayloadBytes, maxOperationsPerSocket } =
      DEFAULT_LIMITS;
    const { initTimeoutMs, stalledAfterMs, maxBufferedBytes, streamRetryMs, defaultPageSize } = DEFAULT_LIMITS;
    for (const text of [
      `| body of a request, message on a socket | ${maxBodyBytes / 1024} KiB |`,
      `| tokens of a document | ${maxTokens} |`,
      `| nested fields | ${maxDepth} |`,
      `| cost | ${Math.floor(maxCost / 1000)} 000 |`,
      `| entries on a page | ${maxPageSize} |`,
      `at most ${maxPageSize} a page, ${defaultPageSize} without either`,
      `| payload bytes of one answer | ${maxPayloadBytes / 1024 / 1024} MiB |`,
      `| operations on one socket | ${maxOperationsPerSocket} |`,
      `| time for \`connection_init\` | ${initTimeoutMs / 1000} s |`,
      `takes nothing for ${stalledAfterMs / 1000} seconds, leaves more than ${maxBufferedBytes / 1024 / 1024} MiB unread`,
      `after ${streamRetryMs / 1000} seconds it ends with`,
      `closed with code ${CLOSE_TOO_SLOW}`,
      `closed with ${CLOSE_FORBIDDEN} when the token expires or is revoked`,
      `with ${CLOSE_RIGHTS_CHANGED} when its role or agencies change`,
      `take effect within ${RELOAD_MS / 1000} seconds`,
    ]) {
      expect(PAGE.replace(/\s+/g, ' ')).toContain(text);
    }
  });
});

describe('schema/schema.graphql', () => {
  it('is what the code emits', () => {
    expect(readFileSync(join(ROOT, 'schema/schema.graphql'), 'utf8')).toBe(emitGraphqlSchema());
  });

  it('describes every type, field, argument and value', () => {
    const lines = emitGraphqlSchema().split('\n');
    const undescribed = lines.filter((line, index) => {
      const isDefinition =
        /^(type|enum|input|scalar) (?!Query|Mutation|Subscription)\w+/.test(line) ||
        /^ {2,4}\w+(\(|: )/.test(line) ||
        /^ {2}[A-Z_]+$/.test(line);
      return isDefinition && lines[index - 1]?.trim().endsWith('"""') !== true;
    });
    expect(undescribed).toEqual([]);
  });
});
