import { formatContractError } from '../../src/contract/check-error';
import { forwardWitness } from '../../src/contract/check-forward';
import { checkContracts } from '../../src/contract/overlap';
import { topicMatches } from '../../src/contract/topic-filter';
import type { LoadedContract } from '../../src/contract/types';
import { cadWith, load } from './loader-fixture';

function feed(name: string, topics: string, forward = ''): LoadedContract {
  const end = forward === '' ? '' : `forward: { topic: "${forward}" }\n`;
  const text = cadWith(['cad-north', name], ['["cad/+/+/incident"]', topics], ['effects:', `${end}effects:`]);
  return load(text, `${name}.yaml`);
}

function errorsAmong(...contracts: readonly LoadedContract[]): string[] {
  return checkContracts(contracts).map(formatContractError);
}

describe('filters of two contracts', () => {
  test('C010 that overlap are refused with both files and a topic that shows it', () => {
    const a = feed('a', '["cad/+/e1/incident"]');
    const b = feed('b', '["other", "cad/north/#"]');
    expect(errorsAmong(a, b)).toEqual([
      'b.yaml:3:19: topics[1]: the filter "cad/north/#" overlaps "cad/+/e1/incident" of feed a (a.yaml:3): ' +
        'both would take a message on "cad/north/e1/incident"',
    ]);
    expect(errorsAmong(b, a)).toEqual([
      expect.stringMatching(/^a\.yaml:3:10: .*b\.yaml:3.*"cad\/north\/e1\/incident"$/),
    ]);
  });

  test('C010 every overlapping pair is named', () => {
    const errors = errorsAmong(feed('a', '["x/#", "y/+"]'), feed('b', '["+/1", "z"]'), feed('c', '["y/2"]'));
    expect(errors.map((error) => error.split(':', 3).join(':'))).toEqual(['b.yaml:3:10', 'b.yaml:3:10', 'c.yaml:3:10']);
  });

  test('that do not overlap are taken, and so are overlapping ones of one contract', () => {
    expect(errorsAmong(feed('a', '["cad/+/e1/incident", "cad/#"]'), feed('b', '["ems/#"]'))).toEqual([]);
  });
});

test('a feed is described by one contract', () => {
  const first = feed('a', '["x"]');
  const second = { ...first, file: 'copy.yaml' };
  expect(errorsAmong(first, second)).toEqual(['copy.yaml:2:7: feed: the feed "a" is in a.yaml:2 already']);
});

describe('what is forwarded', () => {
  test('is not consumed again, by whichever contract', () => {
    const sender = feed('a', '["cad/+"]', 'cop/incidents/{incident}');
    const consumer = feed('b', '["cop/#"]');
    const error =
      'a.yaml:12:19: forward.topic: what is forwarded would be consumed again by feed b ("cop/#", b.yaml:3), ' +
      'for example on "cop/incidents/x"';
    expect(errorsAmong(sender, consumer)).toEqual([error]);
    expect(errorsAmong(consumer, sender)).toEqual([error]);
    expect(errorsAmong(sender, feed('b', '["cop/units/#"]'))).toEqual([]);
  });

  test('is not consumed again by the same contract', () => {
    expect(errorsAmong(feed('a', '["cad/#"]', 'cad/out'))).toEqual([
      'a.yaml:12:19: forward.topic: what is forwarded would be consumed again by this contract itself ("cad/#"), ' +
        'for example on "cad/out"',
    ]);
    expect(errorsAmong(feed('a', '["cad/+"]', '{topic}'))).toHaveLength(1);
    expect(errorsAmong(feed('a', '["cad/+"]', '{topic}/clean'))).toEqual([]);
    expect(errorsAmong(feed('a', '["cad/#"]', '{topic}/clean'))).toHaveLength(1);
  });

  test.each([
    ['cop/{incident}', 'a', 'cop/x', 'cop/x'],
    ['cop/{incident}', 'a', 'cop/+/x', null],
    ['cop/{incident}', 'a', 'cop', null],
    ['cop/{incident}', 'a', 'cop/', null],
    ['cop/unit-{/unit}', 'a', 'cop/unit-7', 'cop/unit-7'],
    ['cop/unit-{/unit}', 'a', 'cop/unit-', null],
    ['cop/unit-{/unit}', 'a', 'cop/incident-7', null],
    ['{incident}/{agency}', 'a', 'in/+', 'in/x'],
    ['cop/{topic[1]}', 'in/north', 'cop/north', 'cop/north'],
    ['cop/{topic[1]}', 'in/north', 'cop/south', null],
    ['cop/{topic[1]}', 'in/+', 'cop/south', 'cop/south'],
    ['cop/{topic}', 'in/+/events', 'cop/+/+/+', 'cop/in/x/events'],
    ['cop/{topic}', 'in/+/events', 'cop/in/north/states', null],
    ['cop/{topic}/clean', 'in/#', 'cop/in/a/b/clean', 'cop/in/a/b/clean'],
    ['cop/{topic}/clean', 'in/#', 'cop/in/a/b/raw', null],
    ['cop/{topic}', 'in/#', 'cop/in', 'cop/in'],
    ['{topic}', '#', 'in/#', 'in'],
    ['cop/x', 'a', 'cop/x/#', 'cop/x'],
    ['cop/x', 'a', '#', 'cop/x'],
  ])('%s for messages on %s, into %s: %s', (template, own, filter, expected) => {
    const witness = forwardWitness(template, [own], filter);
    expect(witness === null ? null : { witness, taken: topicMatches(filter, witness) }).toEqual(
      expected === null ? null : { witness: expect.any(String), taken: true },
    );
    if (expected !== null && !filter.includes('#') && !filter.includes('+')) expect(witness).toBe(expected);
  });
});
