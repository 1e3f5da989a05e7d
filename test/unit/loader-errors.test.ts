import { cadWith, errorsOf, load } from './loader-fixture';

/** The errors of `CAD` with one text replaced. */
function errorsWith(from: string, to: string): string[] {
  return errorsOf(cadWith([from, to]));
}

describe('not supported yet', () => {
  test.each([
    [
      'maxEntries: 1000',
      'maxEntries: 1000\n  contiguous: true',
      '12:15: dedup.contiguous: gaps (contiguous: true) are not supported yet',
    ],
    [
      'feed: cad-north',
      'feed: cad-north\nconsume: shared',
      '3:10: consume: shared subscriptions (consume: shared) are not supported yet',
    ],
    [
      'feed: cad-north',
      'feed: cad-north\nbrokers: [a, b]',
      '3:10: brokers: brokers other than the one called default are not supported yet: leave it out, or write [default]',
    ],
    [
      'feed: cad-north',
      'feed: cad-north\nbrokers: [backup]',
      '3:10: brokers: brokers other than the one called default are not supported yet: leave it out, or write [default]',
    ],
  ])('%s → %j', (from, to, error) => {
    expect(errorsWith(from, to)).toEqual([`cad.yaml:${error}`]);
  });

  test('the same keys with the values that are supported are taken', () => {
    const text = cadWith(
      ['identity:', 'identity:\n  version: 1'],
      ['maxEntries: 1000', 'maxEntries: 1000\n  contiguous: false'],
      ['feed: cad-north', 'feed: cad-north\nconsume: owned\nbrokers: [default]'],
    );
    expect(load(text).contract).toMatchObject({ consume: 'owned', brokers: ['default'], identity: { version: 1 } });
  });
});

test('all errors come at once, in the order of the file', () => {
  const errors = errorsOf(
    cadWith(
      ['cad-north', 'CAD'],
      ['cad/+/+/incident', 'cad/#/incident'],
      ['{ pointer: /src }', '{ topiclevel: 1 }'],
      ['windowSeconds: 600', 'windowSeconds: 300'],
      ['maxEntries: 1000', 'maxEntries: 1e3'],
      ['field: status', 'field: "units/{/unit"'],
    ),
  );
  expect(errors.map((error) => error.split(' ').slice(0, 2).join(' '))).toEqual([
    'cad.yaml:2:7: feed:',
    'cad.yaml:3:10: topics[0]:',
    'cad.yaml:6:13: identity.source.topiclevel:',
    'cad.yaml:10:18: dedup.windowSeconds:',
    'cad.yaml:11:15: dedup.maxEntries:',
    'cad.yaml:13:23: effects[0].field:',
  ]);
});
