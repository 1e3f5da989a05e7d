import { createHash } from 'node:crypto';
import { derivedKey, idempotencyKey, keyText, sha256Hex } from '../../src/contract/key';
import type { Identity } from '../../src/contract/types';

const sequenced = (agency: string, sourceId: string, sequence: string, epoch: string | null = null): Identity => ({
  agency,
  sourceId,
  epoch,
  sequence,
  eventId: null,
});
const event = (agency: string, sourceId: string, ...eventId: string[]): Identity => ({
  agency,
  sourceId,
  epoch: null,
  sequence: null,
  eventId,
});
/** By the other interface of the library, so that the two check one another. */
const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

describe('the idempotency key', () => {
  test('gives the check value of design section 4', () => {
    expect(idempotencyKey(sequenced('county-fire', 'engine-7', '41'))).toBe(
      '16e3ce77ed7e84bdb99d452b4ccb1e82ab631c0c1fd7c121ef354ff03e571258',
    );
  });

  test.each<[Identity, string]>([
    [sequenced('NFD', 'e1', '1041'), 'NFD|e1|1041'],
    [sequenced('NFD', 'e1', '1041', '2'), 'NFD|e1|2|1041'],
    [sequenced('a|b', 'c\\d', '1'), 'a\\|b|c\\\\d|1'],
    [event('NFD', 'e1', 'x', 'y|z'), '\\e|NFD|e1|x|y\\|z'],
    [event('\\e', 'e1', 'x'), '\\e|\\\\e|e1|x'],
    [sequenced('Ärhus', 'é', '0'), 'Ärhus|é|0'],
  ])('%j is keyed as %s', (identity, text) => {
    expect(keyText(identity)).toBe(text);
    expect(idempotencyKey(identity)).toBe(sha256(text));
  });

  test('C031: a delimiter within a part makes another key', () => {
    const left = idempotencyKey(sequenced('NFD', 'E|1', '1041'));
    const right = idempotencyKey(sequenced('NFD|E', '1', '1041'));
    const rawJoin = '05677b50f0e2f1c30e8b24e55fab6f3b134d4a3e35adeede348c646249638237';
    expect(new Set([left, right, rawJoin]).size).toBe(3);
  });

  test('C032: three parts never equal four', () => {
    const three = idempotencyKey(sequenced('NFD', 'x|2', '3'));
    const four = idempotencyKey(sequenced('NFD', 'x', '3', '2'));
    expect(three).not.toBe(four);
    expect(four).toBe('deda6b700a7a800aa89280503ed9ced77152a123336b2b74060dd91e234cc4c9');
  });

  test('an event id never equals a sequence', () => {
    expect(idempotencyKey(event('NFD', 'e1', '7'))).not.toBe(idempotencyKey(sequenced('NFD', 'e1', '7')));
  });

  test('an identity without sequence and event id has no key', () => {
    expect(() => idempotencyKey({ ...sequenced('a', 'b', '1'), sequence: null })).toThrow(RangeError);
  });
});

test('a released conflict has a key of its own', () => {
  const key = sha256Hex('a|b|1');
  const digest = sha256Hex('{}');
  expect(derivedKey(key, digest)).toBe(sha256(`\\c|${key}|${digest}`));
  expect(derivedKey(key, digest)).not.toBe(key);
});

test('sha256Hex hashes texts as UTF-8, and bytes as they are', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(sha256Hex('Å')).toBe(sha256Hex(Uint8Array.from([0xc3, 0x85])));
});
