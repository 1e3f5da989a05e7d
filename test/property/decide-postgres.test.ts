import * as fc from 'fast-check';
import {
  DecisionModel,
  FORMER_AGENCY,
  type IdentityVersion,
  type ModelEffect,
  type ModelMessage,
  type ModelPolicy,
} from '../support/decision-model';
import { modelFields, modelMarks, plain, ranked } from '../support/decision-compare';
import { anyPolicy, anyShape, schedulesOf, type Schedule, type ScheduleShape } from '../support/decision-schedule';
import { valueOf } from '../support/decision-model';
import { expectSoundLedger, query } from '../support/ledger';
import { activate, delivery, parseContract, startPipeline, type TestPipeline } from '../support/pipeline';
import { until } from '../support/wait';

/** LONG=1 runs many more. */
const RUNS = process.env.LONG === '1' ? 500 : 15;
const FEED = 'night';
/** A run takes no minutes, so that everything is within these seconds: here the tier is a matter of the count. */
const WINDOW_SECONDS = 600;
/** Rules for so many effects of a message, and one that an impossible message trips over. */
const SLOTS = [0, 1, 2];
const IMPOSSIBLE_SLOT = 3;

const nights = anyShape.chain((shape) =>
  fc.tuple(fc.constant(shape), anyPolicy).chain(([, drawn]) => {
    // The loader refuses a bound for sequences where there are none.
    const maxSequenceJump = shape.mode === 'eventId' ? null : drawn.maxSequenceJump;
    const policy = { ...drawn, windowSeconds: WINDOW_SECONDS, maxSequenceJump };
    return schedulesOf(shape, fc.constant(policy)).map((schedule) => ({ shape, policy, schedule }));
  }),
);

describe('the main path on Postgres, against the model', () => {
  it('writes the entries, marks and incidents of the model, batch after batch, also where a batch is rolled back', async () => {
    await fc.assert(
      fc.asyncProperty(nights, async ({ shape, policy, schedule }) => {
        const failing = { next: false };
        const pipeline = await startPipeline({
          contract: contractOf(shape, policy, versionAt(schedule, 0)),
          poolSize: 2,
          onStep: (step) => {
            if (step !== 'written' || !failing.next) return;
            failing.next = false;
            throw new Error('nothing of this batch may stay');
          },
        });
        const raise = () => activate(pipeline.database, parseContract(contractOf(shape, policy, 2)));
        const model = await play(pipeline, schedule, failing, raise);
        await pipeline.stop();
        const entries = await expectSoundLedger(pipeline.url, FEED);
        const decisions = entries.map(({ outcome, tier, late, held, original, reason }) => {
          return { outcome, tier, late, held, original, superseded: reason === 'superseded' };
        });
        expect(decisions).toEqual(model.entries);
        expect(await storedFields(pipeline.url)).toEqual(modelFields(model));
        expect(await storedMarks(pipeline.url)).toEqual(modelMarks(model));
        await pipeline.database.close();
      }),
      { numRuns: RUNS },
    );
  }, 600_000);
});

/** Hands the batches over as they are, and what a crash makes the broker deliver again. */
async function play(
  pipeline: TestPipeline,
  { feed, batches }: Schedule,
  failing: { next: boolean },
  raise: () => Promise<unknown>,
): Promise<DecisionModel> {
  const model = new DecisionModel({ ...feed, feedId: pipeline.feed.feedId });
  model.version = versionAt({ feed, batches }, 0);
  let handed = 0;
  const land = async (messages: readonly ModelMessage[], policy: ModelPolicy): Promise<void> => {
    const deliveries = messages.map((message) => delivery(payloadOf(message)));
    pipeline.offer(...deliveries);
    handed += deliveries.length;
    await until(() => pipeline.acknowledged.length === handed, { what: 'the acknowledgements', everyMs: 2 });
    for (const message of messages) model.step(message, policy, 0);
  };
  for (const { messages, policy, crash, version } of batches) {
    // The worker is not told: it learns from the ledger that another contract is in force.
    if (version !== model.version) await raise();
    model.version = version;
    failing.next = crash === 'before_commit';
    await land(messages, policy);
    if (crash === 'after_commit') await land(messages, policy);
  }
  return model;
}

function versionAt({ batches }: Schedule, index: number): IdentityVersion {
  return batches[index]?.version ?? 2;
}

function contractOf({ mode, epochs, digest }: ScheduleShape, policy: ModelPolicy, version: IdentityVersion): string {
  const agency = version === 1 ? `{ const: ${FORMER_AGENCY} }` : '{ pointer: /agency }';
  const epoch = version === 1 || epochs === 'none' ? '' : `, epoch: { pointer: /boot, order: ${epochs} }`;
  const identity =
    mode === 'eventId'
      ? `mode: eventId, agency: ${agency}, source: { pointer: /src }, eventId: { pointer: /id }`
      : `agency: ${agency}, source: { pointer: /src }, sequence: { pointer: /seq }${epoch}`;
  const jump = policy.maxSequenceJump === null ? '' : `, maxSequenceJump: ${policy.maxSequenceJump}`;
  const rules = [...SLOTS, IMPOSSIBLE_SLOT].flatMap((slot) => [
    rule(slot, 'increment', 'by'),
    rule(slot, 'advance', 'to'),
    rule(slot, 'set', 'to'),
    rule(slot, 'append', 'value'),
  ]);
  return `apiVersion: replay-ledger/v1
feed: ${FEED}
description: random nights
owner: tests
topics: ["cad/north/+/incident"]
decode: json
identity: { version: ${version}, ${identity} }
incident: { pointer: /incident }
${digest ? '' : 'digest: off\n'}dedup: { windowSeconds: ${policy.windowSeconds}, maxEntries: ${policy.maxEntries}, ordering: ${policy.ordering}${jump} }
delivery: { sessionExpirySeconds: 300, maxReplayDelaySeconds: 120 }
effects:
${rules.join('\n')}
`;
}

function rule(slot: number, kind: ModelEffect['do'], value: string): string {
  return `  - { when: { /e${slot}/do: ${kind} }, do: ${kind}, field: "{/e${slot}/field}", ${value}: { pointer: /e${slot}/value } }`;
}

/** JSON by hand: numbers keep their digits. */
function payloadOf(message: ModelMessage): string {
  if (message === 'ignored') return '';
  if (message === 'malformed') return '{"agency":';
  const { agency, source, epoch, sequence, eventId, variant, incident, effects, impossible } = message;
  const parts = [`"agency":"${agency}"`, `"src":"${source}"`, `"incident":"${incident}"`, `"variant":${variant}`];
  if (epoch !== null) parts.push(`"boot":"${epoch}"`);
  if (sequence !== null) parts.push(`"seq":${sequence}`);
  if (eventId !== null) parts.push(`"id":"${eventId}"`);
  effects.forEach((effect, slot) => parts.push(`"e${slot}":${effectJson(effect)}`));
  if (impossible) parts.push(`"e${IMPOSSIBLE_SLOT}":{"do":"increment","field":"count","value":"many"}`);
  return `{${parts.join(',')}}`;
}

function effectJson(effect: ModelEffect): string {
  const value = 'number' in effect ? effect.number : effect.json;
  return `{"do":"${effect.do}","field":"${effect.field}","value":${value}}`;
}

interface FieldRow {
  readonly name: string;
  readonly value: string | null;
  readonly members: string[] | null;
  readonly source: string;
  readonly sequence: string | null;
}

async function storedFields(url: string): Promise<unknown> {
  const rows = await query<FieldRow>(
    url,
    `SELECT f.incident_id || ' ' || f.field AS name, f.value,
       json_build_array(f.agency, f.source_id)::text AS source, f.sequence::text,
       (SELECT array_agg(m.value ORDER BY m.value) FROM incident_member m
        WHERE m.incident_id = f.incident_id AND m.field = f.field) AS members
     FROM incident_field f`,
  );
  const fields = rows.map(({ name, value, members, source, sequence }) => {
    const writer = { source: source.replace(', ', ','), sequence };
    return [name, { value: value === null ? (members ?? []).sort() : plain(valueOf(value)), writer }] as const;
  });
  return Object.fromEntries(fields);
}

async function storedMarks(url: string): Promise<unknown> {
  const rows = await query<{
    version: number;
    source: string;
    epoch: string;
    rank: string | null;
    mark: string | null;
    highest: string | null;
  }>(
    url,
    `SELECT key_version AS version, json_build_array(agency, source_id)::text AS source, epoch, rank::text, mark::text, highest::text
     FROM source_head`,
  );
  const digits = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
  const sources = new Map<string, Map<string, { rank: bigint | null; mark: bigint | null; highest: bigint | null }>>();
  for (const { version, source, epoch, rank, mark, highest } of rows) {
    const name = `${version} ${source.replace(', ', ',')}`;
    const head = { rank: digits(rank), mark: digits(mark), highest: digits(highest) };
    sources.set(name, new Map(sources.get(name)).set(epoch, head));
  }
  const named = [...sources].map(([name, epochs]) => [name, ranked(epochs)] as const);
  return Object.fromEntries(named.filter(([, heads]) => Object.keys(heads).length > 0));
}
