import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readContracts } from '../../src/startup/contract-files';
import { emitContractSchema } from '../../src/cli/emit-schemas';
import { formatContractError } from '../../src/contract/check-error';
import { decodeDelivery } from '../../src/contract/decode';
import { checkContracts } from '../../src/contract/overlap';
import { contractJsonSchema } from '../../src/contract/schema';
import { CAD, cadWith } from './loader-fixture';

const REPOSITORY = join(__dirname, '..', '..');

let parent: string;
let folder: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'contracts-'));
  folder = join(parent, 'contracts');
  await mkdir(folder);
});

afterEach(() => rm(parent, { recursive: true }));

/** Errors without the name of the temporary folder. */
async function read(): Promise<{ feeds: string[]; errors: string[] }> {
  const { loaded, errors } = await readContracts(folder);
  return {
    feeds: loaded.map(({ contract }) => contract.feed),
    errors: errors.map((error) => formatContractError(error).replace(parent, '')),
  };
}

describe('C116 a folder of contracts', () => {
  test('is read by the ending of the names, in their order', async () => {
    await writeFile(join(folder, 'b.yaml'), cadWith(['cad-north', 'b']));
    await writeFile(join(folder, 'a.yml'), cadWith(['cad-north', 'a']));
    await writeFile(join(folder, '.hidden.yaml'), 'not a contract');
    await writeFile(join(folder, 'README.md'), 'not a contract');
    await writeFile(join(folder, 'b.yaml.bak'), 'not a contract');
    expect(await read()).toEqual({ feeds: ['a', 'b'], errors: [] });
  });

  test('goes on past whatever cannot be a contract', async () => {
    await writeFile(join(parent, 'outside.yaml'), CAD);
    await mkdir(join(folder, 'a-folder.yaml'));
    await writeFile(join(folder, 'b-empty.yaml'), '');
    await writeFile(join(folder, 'c-cut.yaml'), CAD.slice(0, CAD.indexOf('incident"]')));
    await symlink('/etc/passwd', join(folder, 'd-passwd.yaml'));
    await symlink(join(parent, 'outside.yaml'), join(folder, 'e-outside.yaml'));
    await symlink('nowhere.yaml', join(folder, 'f-dangling.yaml'));
    await symlink('g-loop.yaml', join(folder, 'g-loop.yaml'));
    execFileSync('mkfifo', [join(folder, 'h-pipe.yaml')]);
    await writeFile(join(folder, 'i-big.yaml'), `${CAD}#${'x'.repeat(262_144)}`);
    await writeFile(join(folder, 'j-good.yaml'), CAD);
    const { feeds, errors } = await read();
    expect(feeds).toEqual(['cad-north']);
    expect(errors).toEqual([
      '/contracts/a-folder.yaml:1:1: is a folder, not a file',
      '/contracts/b-empty.yaml:1:1: the file is empty; a contract is expected',
      expect.stringMatching(/^\/contracts\/c-cut\.yaml:3:\d+: not valid YAML/),
      '/contracts/d-passwd.yaml:1:1: is a link to a place outside the contracts folder',
      '/contracts/e-outside.yaml:1:1: is a link to a place outside the contracts folder',
      '/contracts/f-dangling.yaml:1:1: cannot be read (ENOENT)',
      '/contracts/g-loop.yaml:1:1: cannot be read (ELOOP)',
      '/contracts/h-pipe.yaml:1:1: is not a regular file',
      '/contracts/i-big.yaml:1:1: the file is too big: a contract has at most 256 KiB',
    ]);
  });

  test('takes links within it, as mounted configuration has them', async () => {
    await mkdir(join(folder, '..2025_01'));
    await writeFile(join(folder, '..2025_01', 'cad.yaml'), CAD);
    await symlink('..2025_01', join(folder, '..data'));
    await symlink(join('..data', 'cad.yaml'), join(folder, 'cad.yaml'));
    expect(await read()).toEqual({ feeds: ['cad-north'], errors: [] });
  });

  test('is taken through a link to it', async () => {
    await writeFile(join(folder, 'cad.yaml'), CAD);
    await symlink(folder, join(parent, 'link'));
    folder = join(parent, 'link');
    expect(await read()).toEqual({ feeds: ['cad-north'], errors: [] });
  });

  test('that is not there is one error', async () => {
    folder = join(parent, 'missing');
    expect(await read()).toEqual({
      feeds: [],
      errors: ['/missing:1:1: the contracts folder cannot be read (ENOENT)'],
    });
  });

  test('keeps the bytes that were read', async () => {
    await writeFile(join(folder, 'cad.yaml'), CAD);
    const [loaded] = (await readContracts(folder)).loaded;
    expect(loaded).toMatchObject({
      file: join(folder, 'cad.yaml'),
      sourceText: CAD,
      digest: createHash('sha256').update(CAD, 'utf8').digest('hex'),
    });
  });
});

describe('the contracts that come with the product', () => {
  const examples = join(REPOSITORY, 'contracts');

  test('load without a warning, and get along', async () => {
    const { loaded, errors } = await readContracts(examples);
    expect(errors.map(formatContractError)).toEqual([]);
    expect(checkContracts(loaded).map(formatContractError)).toEqual([]);
    expect(loaded.flatMap(({ warnings }) => warnings)).toEqual([]);
    expect(loaded.map(({ contract }) => contract.feed)).toEqual([
      'county-alerts',
      'county-fire-cad',
      'hydrant-sensors',
    ]);
  });

  test('name their JSON Schema for editors', async () => {
    for (const name of await readdir(examples)) {
      const [first] = (await readFile(join(examples, name), 'utf8')).split('\n');
      expect({ name, first }).toEqual({
        name,
        first: '# yaml-language-server: $schema=../schema/feed-contract.schema.json',
      });
    }
  });

  test.each([
    [
      'county-fire-cad',
      'incidents/county-fire/engine-7/events',
      '{"boot_id":"b1","sequence":41,"incident_id":"I-1","type":"casualty","payload":{"delta":3},"sent":"2025-06-01T10:00:00Z"}',
      [{ agency: 'county-fire', sourceId: 'engine-7', epoch: 'b1', sequence: '41', eventId: null }],
    ],
    [
      'county-alerts',
      'alerts/county/desk-2/published',
      '{"sender":"oem","identifier":"A-1","sent":"2025-06-01T10:00:00Z","msgType":"Alert","status":"Actual","area":"north"}',
      [{ agency: 'oem', sourceId: 'desk-2', epoch: null, sequence: null, eventId: ['A-1', '2025-06-01T10:00:00Z'] }],
    ],
    [
      'hydrant-sensors',
      'telemetry/hydrants/gw-3/batch',
      '{"gateway":"gw-3","boot":12,"readings":[{"hydrant":"H-1","n":7,"kPa":412.5,"opened":true},{"hydrant":"H-2","n":8,"kPa":0}]}',
      [
        { agency: 'water-utility', sourceId: 'gw-3', epoch: '12', sequence: '7', eventId: null },
        { agency: 'water-utility', sourceId: 'gw-3', epoch: '12', sequence: '8', eventId: null },
      ],
    ],
  ])('%s reads a message of its feed', async (feed, topic, payload, identities) => {
    const { loaded } = await readContracts(examples);
    const contract = loaded.find((l) => l.contract.feed === feed)?.contract;
    if (contract === undefined) throw new Error(`there is no contract of ${feed}`);
    const messages = decodeDelivery(contract, {
      broker: 'default',
      topic,
      payload: Buffer.from(payload),
      qos: 1,
      dup: false,
      retained: false,
      userProperties: {},
    });
    expect(messages).toMatchObject(identities.map((identity) => ({ kind: 'keyed', identity, plan: { ok: true } })));
  });
});

describe('the JSON Schema of contracts', () => {
  test('in the repository is the one that is emitted', async () => {
    const file = await emitContractSchema(parent);
    const emitted = await readFile(file, 'utf8');
    expect(emitted).toBe(contractJsonSchema());
    expect(await readFile(join(REPOSITORY, 'schema', 'feed-contract.schema.json'), 'utf8')).toBe(emitted);
  });

  test('describes every field, for editors to show', () => {
    const undescribed: string[] = [];
    const schema = JSON.parse(contractJsonSchema()) as Record<string, unknown>;
    const walk = (node: unknown, path: string): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [key, value] of Object.entries(node)) {
        if (key === 'properties' && !/\/(if|then|else)$/.test(path)) {
          for (const [name, field] of Object.entries(value as Record<string, object>)) {
            const described = { ...field, ...definition(schema, field) };
            const isTag = name === 'do' && 'const' in field;
            if (!('description' in described) && !isTag) undescribed.push(`${path}/${name}`);
          }
        }
        walk(value, `${path}/${key}`);
      }
    };
    walk(schema, '');
    expect(undescribed).toEqual([]);
  });
});

function definition(schema: Record<string, unknown>, field: object): object {
  const reference = '$ref' in field ? String(field.$ref).replace('#/$defs/', '') : '';
  return (schema['$defs'] as Record<string, object>)[reference] ?? {};
}
