import { readingsOf } from '../../src/contract/check-readings';
import { readYaml } from '../../src/contract/yaml-document';
import { SourceText } from '../../src/contract/yaml-source';
import { cadWith, errorsOf, load } from './loader-fixture';

/** The errors of `CAD` with one text replaced. */
function errorsWith(from: string, to: string): string[] {
  return errorsOf(cadWith([from, to]));
}

describe('incident, envelope, effects and forward', () => {
  test('effects need an incident', () => {
    expect(errorsWith('incident: { pointer: /incident }\n', '')).toEqual([
      'cad.yaml:11:1: effects: effects change incidents, but the contract does not say where incident is read',
    ]);
    const rest = '  - { do: set, field: status, to: { pointer: /status } }\n';
    expect(
      errorsOf(cadWith(['incident: { pointer: /incident }\n', ''], [`effects:\n${rest}`, 'effects: off\n'])),
    ).toEqual([]);
    expect(
      errorsOf(cadWith(['incident: { pointer: /incident }\n', ''], [`effects:\n${rest}`, 'effects: []\n'])),
    ).toEqual([]);
  });

  test('{incident} needs an incident', () => {
    const effects = 'effects:\n  - { do: set, field: status, to: { pointer: /status } }\n';
    const text = cadWith(
      ['incident: { pointer: /incident }\n', ''],
      [effects, 'forward: { topic: "cop/{incident}" }\n'],
    );
    expect(errorsOf(text)).toEqual([
      'cad.yaml:11:19: forward.topic: {incident} is used, but the contract does not say where incident is read',
    ]);
  });

  test('envelope needs items', () => {
    expect(errorsWith('{ pointer: /agency }', '{ envelope: /agency }')).toEqual([
      expect.stringMatching(/^cad\.yaml:5:23: identity\.agency\.envelope: envelope is for deliveries with items/),
    ]);
    const text = cadWith(['{ pointer: /agency }', '{ envelope: /agency }'], ['identity:', 'items: /events\nidentity:']);
    expect(load(text).contract).toMatchObject({ items: '/events', identity: { agency: [{ envelope: '/agency' }] } });
  });

  test.each([
    ['"units/{/unit"', /character 7, "{" without "}"/],
    ['"units/}"', /character 7, "}" without "{"/],
    ['"units/{unit}"', /character 7, a placeholder is one of/],
    ['"units/{/a~2}"', /character 7, a placeholder is one of/],
    ['"units/{topic[x]}"', /character 7, a placeholder is one of/],
    ['"units/{/a}-{/b}"', /has two values in one level \(character 12\)/],
    ['""', /must be a field of the incident/],
  ])('the field %s is refused', (field, message) => {
    expect(errorsWith('field: status', `field: ${field}`)).toEqual([expect.stringMatching(message)]);
  });

  test.each([
    ['"cop/+/x"', /must not contain a wildcard/],
    ['"cop/#"', /must not contain a wildcard/],
    ['"$SYS/{incident}"', /must not start with \$/],
    ['"cop/{incidnt}"', /is no template: at character 5/],
    ['""', /must be a topic, such as/],
  ])('the forward topic %s is refused', (topic, message) => {
    expect(errorsWith('effects:', `forward: { topic: ${topic} }\neffects:`)).toEqual([expect.stringMatching(message)]);
  });

  test.each(['abc', '""', '1 000', '0x10', '1'.repeat(39)])('the constant amount %s is refused', (amount) => {
    for (const rule of ['increment, field: n, by', 'advance, field: n, to']) {
      expect(
        errorsWith(
          'set, field: status, to: { pointer: /status }',
          `${rule}: { const: "${amount.replaceAll('"', '')}" }`,
        ),
      ).toEqual([
        expect.stringMatching(
          /^cad\.yaml:13:\d+: effects\[0\]\.(by|to)\.const: (increment|advance) needs a decimal number/,
        ),
      ]);
    }
  });

  test('any constant can be set, and decimals can be added', () => {
    expect(errorsWith('{ pointer: /status }', '{ const: "" }')).toEqual([]);
    expect(
      errorsWith('set, field: status, to: { pointer: /status }', 'increment, field: n, by: { const: "-1.5" }'),
    ).toEqual([]);
  });

  test('a contract without effect is told so, and so is one that forwards nothing', () => {
    const effects = 'effects:\n  - { do: set, field: status, to: { pointer: /status } }\n';
    expect(load(cadWith([effects, ''])).contract.effects).toEqual([]);
    expect(load(cadWith([effects, ''])).warnings).toEqual([
      expect.stringMatching(/^cad\.yaml:1:1: effects: no effects and no forward/),
    ]);
    expect(load(cadWith([effects, 'effects: off\n'])).warnings).toEqual([]);
    expect(load(cadWith([effects, 'effects: off\n'])).contract.effects).toBe('off');
    expect(load(cadWith([effects, 'effects: off\nforward: { topic: "cop/x" }\n'])).warnings).toEqual([
      'cad.yaml:13:1: forward: nothing is forwarded while effects are off',
    ]);
  });
});

describe('digest.ignore', () => {
  test.each([
    ['/seq', 'identity.sequence.pointer reads it'],
    ['/seq/low', 'identity.sequence.pointer reads "/seq"'],
    ['/incident', 'incident.pointer reads it'],
    ['/status', 'effects[0].to.pointer reads it'],
    ['/unit', 'effects[0].field reads "/unit/id"'],
    ['/unit/id', 'effects[0].field reads it'],
    ['/unit/id/x', 'effects[0].field reads "/unit/id"'],
    ['/kind', 'effects[0].when./kind reads it'],
    ['/to', 'forward.topic reads "/to/whom"'],
  ])('%s is read', (pointer, why) => {
    const text = cadWith(
      ['set, field: status', 'set, when: { /kind: 1 }, field: "u/{/unit/id}"'],
      ['effects:', `forward: { topic: "cop/{/to/whom}" }\ndigest: { ignore: [/rssi, ${pointer}] }\neffects:`],
    );
    expect(errorsOf(text)).toEqual([`cad.yaml:13:27: digest.ignore[1]: "${pointer}" cannot be ignored: ${why}`]);
  });

  test.each(['/sequence', '/se', '/sent', '/uni', '/unit~1id', '/unit/ident'])('%s is not', (pointer) => {
    const text = cadWith(
      ['field: status', 'field: "u/{/unit/id}"'],
      ['effects:', `occurredAt: { pointer: /sent }\ndigest: { ignore: [${pointer}] }\neffects:`],
    );
    expect(load(text).contract.digest).toEqual({ ignore: [pointer] });
  });

  test('the whole message cannot be ignored', () => {
    expect(errorsWith('effects:', 'digest: { ignore: [""] }\neffects:')).toEqual([
      expect.stringMatching(/^cad\.yaml:12:20: digest\.ignore\[0\]: the whole message cannot be ignored.*digest: off/),
    ]);
    expect(load(cadWith(['effects:', 'digest: off\neffects:'])).contract.digest).toBe('off');
  });

  test('every pointer that is read is known with its reader', () => {
    const text = cadWith(
      ['{ pointer: /agency }', '[{ pointer: /agency }, { pointer: /org }, { topicLevel: 1 }]'],
      ['  sequence:', '  epoch: { value: [{ pointer: /boot }, { pointer: /start }], order: opaque }\n  sequence:'],
      ['do: set,', 'do: set, when: { /a: 1, /b/c: x },'],
      ['field: status', 'field: "u/{/unit}/{/part}/{topic[1]}"'],
      [
        'effects:',
        'occurredAt: [{ pointer: /sent }, { pointer: /at }]\nforward: { topic: "cop/{/to}/{incident}" }\neffects:',
      ],
    );
    const { root } = readYaml(new SourceText(text));
    if (root === null) throw new Error('the contract is YAML');
    const read = readingsOf(root).flatMap((r) => (r.kind === 'pointer' ? [`${r.by} ${r.pointer}`] : []));
    expect(read).toEqual([
      'identity /agency',
      'identity /org',
      'identity /src',
      'identity /boot',
      'identity /start',
      'identity /seq',
      'incident /incident',
      'occurredAt /sent',
      'occurredAt /at',
      'effects /a',
      'effects /b/c',
      'effects /unit',
      'effects /part',
      'effects /status',
      'forward /to',
    ]);
  });
});
