import { ExactNumber, type JsonValue } from '../../src/contract/json-value';
import {
  compileTemplate,
  parseTemplate,
  renderField,
  renderTopic,
  sharedLevel,
  type TemplateValues,
} from '../../src/contract/template';
import { DeliveryValues, MessageReader } from '../../src/contract/values';

function values(
  members: Record<string, JsonValue>,
  topic = 'cad/north/e1/incident',
  incidentId: string | null = 'I-77',
): TemplateValues {
  const message = new Map(Object.entries(members));
  return {
    reader: new MessageReader(message, new DeliveryValues(message, { topic, userProperties: {} })),
    identity: { agency: 'NFD', sourceId: 'e1', epoch: null, sequence: '1', eventId: null },
    incidentId,
  };
}

const field = (template: string, given: TemplateValues): string => {
  const rendering = renderField(compileTemplate(template), given);
  return rendering.ok ? rendering.text : `! ${rendering.reason}`;
};
const topic = (template: string, given: TemplateValues): string => {
  const rendering = renderTopic(compileTemplate(template), given);
  return rendering.ok ? rendering.text : `! ${rendering.reason}`;
};

describe('parseTemplate', () => {
  test('knows every placeholder', () => {
    expect(parseTemplate('a/{topic}{topic[12]}b{incident}{agency}{source}{/p~1q/0}')).toEqual({
      ok: true,
      parts: [
        { kind: 'text', text: 'a/' },
        { kind: 'topic', offset: 2 },
        { kind: 'topicLevel', level: 12, offset: 9 },
        { kind: 'text', text: 'b' },
        { kind: 'incident', offset: 21 },
        { kind: 'agency', offset: 31 },
        { kind: 'source', offset: 39 },
        { kind: 'pointer', pointer: '/p~1q/0', tokens: ['p/q', '0'], offset: 47 },
      ],
    });
    expect(parseTemplate('')).toEqual({ ok: true, parts: [] });
  });

  test.each([
    ['a{topic', 1],
    ['ab}', 2],
    ['{topic}}', 7],
    ['{}', 0],
    ['x{Topic}', 1],
    ['{ topic }', 0],
    ['{topic[]}', 0],
    ['{topic[-1]}', 0],
    ['{topic[01]}', 0],
    ['{topic[1]', 0],
    ['{pointer}', 0],
    ['{/a~}', 0],
    ['{{topic}}', 0],
    ['{epoch}', 0],
  ])('%j is refused at %d', (text, offset) => {
    expect(parseTemplate(text)).toMatchObject({ ok: false, offset });
    expect(() => compileTemplate(text)).toThrow(RangeError);
  });

  test.each([
    ['units/{/unit}', null],
    ['{agency}/{/unit}', null],
    ['{agency}-{/unit}', 9],
    ['a/{agency}{/unit}', 10],
    ['{agency}/x{/unit}-y/{source}', null],
    ['{agency}/x-{/unit}-{source}', 19],
  ])('%s: two values in one level at %p', (text, offset) => {
    expect(sharedLevel(compileTemplate(text))).toBe(offset);
  });
});

describe('renderField', () => {
  test('fills every placeholder', () => {
    const template = 'units/{agency}/{source}/{incident}/{topic[1]}/{topic}/{/unit}';
    expect(field(template, values({ unit: 'E4' }))).toBe('units/NFD/e1/I-77/north/cad~1north~1e1~1incident/E4');
  });

  test('two different units never share a path', () => {
    const units = ['a/b', 'a~1b', 'a~b', 'a~0b', 'a', 'a/', '/a', '~', '/', 'A', 'Å', 'A\u030a', '{/unit}', ' '];
    const paths = units.map((unit) => field('units/{/unit}', values({ unit })));
    expect(new Set(paths).size).toBe(units.length);
    for (const path of paths) expect(path.split('/')).toHaveLength(2);
  });

  test('a number is its exact decimal text', () => {
    const path = (text: string): string => field('u/{/unit}', values({ unit: new ExactNumber(text) }));
    expect(['7', '7.0', '70e-1'].map(path)).toEqual(['u/7', 'u/7', 'u/7']);
    expect(path('9007199254740993')).toBe('u/9007199254740993');
    expect(path('-0.50')).toBe('u/-0.5');
    expect(path('1e400000000')).toBe('! field_invalid');
  });

  test.each<[string, Record<string, JsonValue>]>([
    ['! field_value_missing', {}],
    ['! field_value_missing', { unit: '' }],
    ['! field_invalid', { unit: null }],
    ['! field_invalid', { unit: true }],
    ['! field_invalid', { unit: [] }],
    ['! field_invalid', { unit: new Map() }],
    ['! field_invalid', { unit: 'a\0b' }],
    ['! field_too_long', { unit: 'x'.repeat(507) }],
    ['! field_too_long', { unit: '/'.repeat(254) }],
    ['! field_too_long', { unit: 'Å'.repeat(254) }],
    [`units/${'x'.repeat(506)}`, { unit: 'x'.repeat(506) }],
  ])('%s', (expected, members) => {
    expect(field('units/{/unit}', values(members))).toBe(expected);
  });

  test('a topic level that is not there is missing, an incident has its own reason', () => {
    expect(field('{topic[4]}', values({}))).toBe('! field_value_missing');
    expect(field('{topic[0]}', values({}, '\ufffd/x'))).toBe('! field_invalid');
    expect(field('x/{incident}', values({}, 'a/b', null))).toBe('! no_incident');
    expect(field('', values({}))).toBe('! field_invalid');
  });
});

describe('renderTopic', () => {
  test.each(['a\nb', 'a\u0001', 'a\u009f', 'a\ufdd0', 'a\uffff', 'a\u{1fffe}'])(
    'refuses what brokers answer by closing the connection: %j',
    (unit) => {
      expect(topic('cop/{/unit}', values({ unit }))).toBe('! forward_topic_invalid');
    },
  );

  test('takes 200 levels, and no more', () => {
    const levels = (count: number): string => Array.from({ length: count }, () => 'x').join('/');
    expect(topic('{topic}', values({}, levels(200)))).toBe(levels(200));
    expect(topic('a/{topic}', values({}, levels(200)))).toBe('! forward_topic_invalid');
  });

  test('fills every placeholder; only {topic} brings levels along', () => {
    expect(topic('cop/{incident}', values({}))).toBe('cop/I-77');
    expect(topic('cop/{topic}', values({}))).toBe('cop/cad/north/e1/incident');
    expect(topic('cop/{agency}-{source}/{topic[1]}/{/n}', values({ n: new ExactNumber('7.0') }))).toBe(
      'cop/NFD-e1/north/7',
    );
  });

  test.each<[string, JsonValue]>([
    ['empty', ''],
    ['a level of its own', 'a/b'],
    ['a single-level wildcard', '+'],
    ['a multi-level wildcard', 'x#'],
    ['NUL', 'a\0'],
    ['null', null],
    ['an object', new Map()],
    ['too long', 'x'.repeat(65_532)],
    ['too long in bytes', 'Å'.repeat(32_766)],
  ])('a value that is %s makes no topic', (_, value) => {
    expect(topic('cop/{/v}', values({ v: value }))).toBe('! forward_topic_invalid');
  });

  test('the longest topic', () => {
    expect(topic('cop/{/v}', values({ v: 'x'.repeat(65_531) }))).toHaveLength(65_535);
  });

  test('a value never makes a topic of the broker', () => {
    expect(topic('{/v}/x', values({ v: '$SYS' }))).toBe('! forward_topic_invalid');
    expect(topic('x/{/v}', values({ v: '$SYS' }))).toBe('x/$SYS');
    expect(topic('{topic}', values({}, '$SYS/x'))).toBe('! forward_topic_invalid');
  });

  test('what is missing', () => {
    expect(topic('cop/{/v}', values({}))).toBe('! forward_topic_invalid');
    expect(topic('cop/{topic[9]}', values({}))).toBe('! forward_topic_invalid');
    expect(topic('cop/{incident}', values({}, 'a/b', null))).toBe('! no_incident');
  });
});
