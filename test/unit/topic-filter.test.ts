import { filtersOverlap, topicMatches, validateFilter } from '../../src/contract/topic-filter';
import { errorsOf, cadWith, load } from './loader-fixture';

describe('topicMatches', () => {
  // Examples of MQTT 3.1.1 and 5.0, sections 4.7.1.2, 4.7.1.3 and 4.7.2, and their neighbours.
  test.each([
    ['sport/tennis/player1/#', 'sport/tennis/player1', true],
    ['sport/tennis/player1/#', 'sport/tennis/player1/ranking', true],
    ['sport/tennis/player1/#', 'sport/tennis/player1/score/wimbledon', true],
    ['sport/tennis/player1/#', 'sport/tennis/player10', false],
    ['sport/#', 'sport', true],
    ['#', 'a', true],
    ['#', '/a', true],
    ['sport/tennis/+', 'sport/tennis/player1', true],
    ['sport/tennis/+', 'sport/tennis/player1/ranking', false],
    ['sport/+', 'sport', false],
    ['sport/+', 'sport/', true],
    ['+/+', '/finance', true],
    ['/+', '/finance', true],
    ['+', '/finance', false],
    ['+/+/#', 'a', false],
    ['+/#', 'a', true],
    ['a//b', 'a//b', true],
    ['a/+/b', 'a//b', true],
    ['a/b', 'a/b/', false],
    ['a/b/', 'a/b', false],
    ['A/b', 'a/b', false],
    ['a/b', 'a/bc', false],
    ['a/bc', 'a/b', false],
    ['a/+', 'a/+', true],
    ['#', '', false],
    ['+', '', false],
    ['\u00e9', 'e\u0301', false],
  ])('%s takes %s: %s', (filter, topic, expected) => {
    expect(topicMatches(filter, topic)).toBe(expected);
  });

  test.each([
    ['#', '$SYS/broker/uptime', false],
    ['+/#', '$SYS/broker/uptime', false],
    ['+/broker/uptime', '$SYS/broker/uptime', false],
    ['+', '$SYS', false],
    ['$SYS/#', '$SYS/broker/uptime', true],
    ['a/+', 'a/$b', true],
    ['a/#', 'a/$b', true],
  ])('C027 %s takes %s: %s', (filter, topic, expected) => {
    expect(topicMatches(filter, topic)).toBe(expected);
  });

  test('C019 a prefix that a bridge adds makes it another topic', () => {
    expect(topicMatches('cad/+/+/incident', 'cad/north/e1/incident')).toBe(true);
    expect(topicMatches('cad/+/+/incident', 'aws/cad/north/e1/incident')).toBe(false);
    expect(topicMatches('cad/+/+/incident', 'aws/aws/cad/north/e1/incident')).toBe(false);
  });
});

describe('validateFilter', () => {
  test.each(['a', '/', '//', 'a/b', '+', '#', '+/#', 'a/+/b', 'a/#', '/#', 'a b/ü', 'a/$b', `a/${'x'.repeat(65_533)}`])(
    'takes %.20s',
    (filter) => {
      expect(validateFilter(filter)).toBeNull();
    },
  );

  test.each([
    ['', /empty/],
    ['a/#/b', /# must stand alone/],
    ['a#', /# must stand alone/],
    ['a/b#', /# must stand alone/],
    ['##', /# must stand alone/],
    ['#/', /# must stand alone/],
    ['a+', /\+ must stand alone/],
    ['a/+b/c', /\+ must stand alone/],
    ['++', /\+ must stand alone/],
    ['a\0b', /NUL/],
    ['a\ud800', /well-formed/],
    [`a/${'x'.repeat(65_534)}`, /65535 bytes/],
    [`a/${'é'.repeat(32_767)}`, /65535 bytes/],
    ['$SYS/#', /\$SYS topics are statistics/],
    ['$SYS', /\$SYS topics are statistics/],
    ['$SYS/broker/uptime', /\$SYS topics are statistics/],
    ['$aws/things/+', /start with \$ belong to the broker/],
    ['$queue/cad/+', /start with \$ belong to the broker/],
  ])('refuses %.20j', (filter, message) => {
    expect(validateFilter(filter)).toMatch(message);
  });

  test.each([
    ['$share/ded/cad/+/incident', /^shared subscriptions are refused.* write "cad\/\+\/incident" without/],
    ['$share//cad/+', /malformed.*share name is empty/],
    ['$share/a+b/cad', /malformed.*share name contains a wildcard/],
    ['$share/a#b/cad', /malformed.*share name contains a wildcard/],
    ['$share/ded', /malformed.*no topic filter after the share name/],
    ['$share/ded/', /malformed.*no topic filter after the share name/],
    ['$share', /malformed.*share name is empty/],
    ['$share/ded/a/#/b', /malformed.*# must stand alone/],
  ])('C029 refuses %s', (filter, message) => {
    expect(validateFilter(filter)).toMatch(message);
  });
});

describe('filters of a contract', () => {
  test.each([
    '$share//cad/+',
    '$share/a+b/cad',
    '$share/ded',
    '$share/ded/',
    '$share/ded/cad/+/incident',
    '$SYS/#',
    '$SYS/broker/uptime',
  ])('C029 C027 %s is refused with file and line', (filter) => {
    expect(errorsOf(cadWith(['"cad/+/+/incident"', `"cad/+/+/incident", "${filter}"`]))).toEqual([
      expect.stringMatching(/^cad\.yaml:3:30: topics\[1\]: /),
    ]);
  });

  test.each(['+/#', '#', '+/cad'])('C027 %s is taken with a warning', (filter) => {
    expect(load(cadWith(['cad/+/+/incident', filter])).warnings).toEqual([
      `cad.yaml:3:10: topics[0]: the filter "${filter}" starts with a wildcard: it takes messages of every domain on the broker`,
    ]);
  });
});

describe('filtersOverlap', () => {
  test.each([
    ['cad/+/e1/incident', 'cad/north/#', 'cad/north/e1/incident'],
    ['a/+', '+/b', 'a/b'],
    ['a/#', 'a', 'a'],
    ['a/#', 'a/#', 'a/x'],
    ['#', '#', 'x'],
    ['#', '+/b/+', 'x/b/x'],
    ['+', '+', 'x'],
    ['a/+/c', 'a//c', 'a//c'],
    ['/', '+/+', '/'],
    ['a/b', 'a/b', 'a/b'],
    ['+/+/#', 'a/#', 'a/x/x'],
    ['+/#', 'a', 'a'],
  ])('%s and %s share %s', (a, b, witness) => {
    expect(filtersOverlap(a, b)).toBe(witness);
    expect(topicMatches(a, witness) && topicMatches(b, witness)).toBe(true);
  });

  test.each([
    ['a/b', 'a/c'],
    ['a/+', 'a'],
    ['a/+', 'a/b/c'],
    ['a/+/#', 'a'],
    ['a/#', 'b/#'],
    ['a/+/c', 'a/b/d'],
    ['+', '/'],
    ['#', '$SYS/x'],
    ['+/x', '$SYS/x'],
  ])('%s and %s share nothing', (a, b) => {
    expect(filtersOverlap(a, b)).toBeNull();
    expect(filtersOverlap(b, a)).toBeNull();
  });
});
