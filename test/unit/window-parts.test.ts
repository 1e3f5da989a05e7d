import fc from 'fast-check';
import { MinHeap } from '../../src/window/min-heap';
import { versionWarnings } from '../../src/window/redis/check';
import { RedisError, toRedisError } from '../../src/window/redis/error';
import { encodeMember, feedKeys } from '../../src/window/redis/keys';
import { Outage } from '../../src/window/redis/outage';
import { RedisUrlError, parseRedisUrl } from '../../src/window/redis/url';
import { createRedisWindow } from '../../src/window/redis/window';

describe('the heap', () => {
  test('gives what ranks below a limit, lowest first, and keeps the rest', () => {
    const ranks = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });
    fc.assert(
      fc.property(ranks, ranks, fc.integer({ min: 0, max: 55 }), (early, late, limit) => {
        const heap = new MinHeap<number>();
        early.forEach((rank) => heap.push(rank, rank));
        const first = [...heap.popBelow(limit)];
        expect(first).toEqual(early.filter((rank) => rank < limit).sort((a, b) => a - b));
        late.forEach((rank) => heap.push(rank, rank));
        const rest = [...early.filter((rank) => rank >= limit), ...late].sort((a, b) => a - b);
        expect(heap).toHaveLength(rest.length);
        expect([...heap.popBelow(Infinity)]).toEqual(rest);
      }),
    );
  });
});

describe('members', () => {
  const digest = '0123456789abcdef'.repeat(4);

  test('are as short as the version allows', () => {
    expect(encodeMember(`1:${digest}`).toString('hex')).toBe(`01${digest}`);
    expect(encodeMember(`255:${digest}`).toString('hex')).toBe(`ff${digest}`);
    expect(encodeMember(`256:${digest}`).toString('hex')).toBe(`0100${digest}`);
  });

  test('are equal only where the keys are', () => {
    const version = fc.constantFrom(
      '0',
      '1',
      '01',
      '00',
      '255',
      '256',
      '65536',
      '16777216',
      '999999999',
      '9999999999',
      '',
    );
    const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdefAF'), minLength: 60, maxLength: 70 });
    const key = fc.oneof(
      fc.tuple(version, hex).map((parts) => parts.join(':')),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(key, key, (one, other) => {
        expect(encodeMember(one).equals(encodeMember(other))).toBe(one === other);
      }),
      { numRuns: 2000 },
    );
  });

  test('names of keys are fixed: another release must find them', () => {
    // printf county-fire-cad | sha256sum
    expect(feedKeys('replay-ledger', 'county-fire-cad')).toEqual({
      memory: 'replay-ledger:{565f36a90791d48b}:memory',
      keys: 'replay-ledger:{565f36a90791d48b}:keys',
      marks: 'replay-ledger:{565f36a90791d48b}:marks',
    });
  });
});

describe('Redis URLs', () => {
  test.each([
    ['redis://localhost', { host: 'localhost', port: 6379, db: 0 }],
    ['redis://127.0.0.1:7000/5', { host: '127.0.0.1', port: 7000, db: 5 }],
    ['redis://[::1]:7000/', { host: '::1', port: 7000, db: 0 }],
    ['rediss://cache.example', { host: 'cache.example', port: 6379, db: 0, tls: {} }],
    ['redis://:p%40ss%2F@h', { host: 'h', port: 6379, db: 0, password: 'p@ss/' }],
    ['redis://us%3Aer:pw@h', { host: 'h', port: 6379, db: 0, username: 'us:er', password: 'pw' }],
  ])('%s', (url, options) => {
    expect(parseRedisUrl(url)).toEqual(options);
  });

  test.each([
    ...['', 'localhost:6379', 'http://h', 'redis://', 'redis:///1', 'redis://h:70000', 'redis+sentinel://h/secret'],
    ...[
      'redis://:secret@h/x',
      'redis://:secret@h/-1',
      'redis://:secret@h/1/2',
      'redis://:secret%@h',
      'redis://h?secret=1',
    ],
    ...['redis://h/0#secret', 'redis://:secret@h/123456'],
  ])('%j is refused, without telling it', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(RedisUrlError);
    expect(() => parseRedisUrl(url)).not.toThrow(/secret/);
  });

  test.each(['', '{x}', 'a b', 'a}b{', 'x'.repeat(65)])('a window refuses the prefix %j', (keyPrefix) => {
    const options = { url: 'redis://127.0.0.1:1', keyPrefix, onProblem: () => undefined, onRecovered: () => undefined };
    expect(() => createRedisWindow(options)).toThrow(RangeError);
  });
});

describe('errors', () => {
  test.each([
    ["OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:1.", 'full'],
    ['ERR Error running script (call to f_1f): @user_script:1: -OOM command not allowed when used memory', 'full'],
    ["READONLY You can't write against a read only replica.", 'read_only'],
    ['MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk', 'read_only'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'wrong_type'],
    ['NOAUTH Authentication required.', 'forbidden'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'forbidden'],
    ['LOADING Redis is loading the dataset in memory', 'unavailable'],
    ['BUSY Redis is busy running a script.', 'unavailable'],
    ['ERR unknown command `EVALSHA`, with args beginning with: ', 'unsupported'],
    ['ERR Unknown Redis command called from script', 'unsupported'],
    ['ERR syntax error script: 1f, on @user_script:1.', 'unsupported'],
    ['connect ECONNREFUSED 127.0.0.1:6379', 'unreachable'],
    ['getaddrinfo ENOTFOUND redis', 'unreachable'],
    ['Connection is closed.', 'unreachable'],
    ['Reached the max retries per request limit (which is 0).', 'unreachable'],
    ["Stream isn't writeable and enableOfflineQueue options is false", 'unreachable'],
    ['something else', 'failed'],
  ])('%s', (message, code) => {
    const cause = new Error(message);
    expect(toRedisError(cause)).toMatchObject({ code, message, cause });
  });

  test('a name with several addresses, none of which answers', () => {
    const cause = Object.assign(new AggregateError([new Error('one'), new Error('other')]), { code: 'ECONNREFUSED' });
    expect(toRedisError(cause)).toMatchObject({ code: 'unreachable', message: 'ECONNREFUSED' });
  });

  test('an outage is reported at its start and at its end, whatever fails in it', () => {
    const reports: string[] = [];
    const outage = new Outage(
      (error) => reports.push(error.code),
      () => reports.push('recovered'),
    );
    outage.worked('lookup');
    outage.failed('record', new RedisError('full', ''));
    outage.failed('connection', new RedisError('unreachable', ''));
    outage.worked('lookup');
    outage.worked('connection');
    outage.failed('record', new RedisError('full', ''));
    expect(reports).toEqual(['full']);
    outage.worked('record');
    outage.worked('record');
    expect(reports).toEqual(['full', 'recovered']);
  });
});

test.each([
  ['5.0.14', 1],
  ['6.0.16', 1],
  ['6.2.0', 0],
  ['7.0.15', 0],
  ['10.0.0', 0],
  ['unstable', 0],
  [null, 0],
])('Redis %s: %i warnings about its version', (version, warnings) => {
  expect(versionWarnings(version)).toHaveLength(warnings);
});
