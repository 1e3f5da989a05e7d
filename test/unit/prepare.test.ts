import { compileContract } from '../../src/contract/decode';
import { decodeAll, reachedAfter, windowKeys } from '../../src/pipeline/prepare';
import { b, caseContract, delivery, parseContract } from '../support/pipeline';

const IDENTITY =
  '{ agency: { pointer: /agency }, source: { pointer: /src }, epoch: { pointer: /boot }, sequence: { pointer: /seq } }';

function received(yaml: string, ...payloads: readonly string[]) {
  const { contract, digest } = parseContract(yaml);
  const active = { contract, digest, decoder: compileContract(contract) };
  return decodeAll(
    active,
    payloads.map((payload) => delivery(payload)),
  );
}

const keysOf = (all: ReturnType<typeof received>) =>
  all.map(({ message }) => (message.kind === 'keyed' ? `${message.keyVersion}:${message.key}` : null));

describe('what the window is asked for', () => {
  const all = received(
    caseContract({ identity: IDENTITY }),
    b(6, { boot: 'b1' }),
    b(7, { boot: 'b1' }),
    b('9007199254740993', { boot: 'b1' }),
    b(8, { boot: 'b2' }),
    b(8, { boot: 'b1', src: 'e2' }),
    b(8, { boot: 'b1', agency: 'other' }),
  );
  const keys = keysOf(all);
  const head = { rank: 1n, mark: 6n };
  const source = { keyVersion: 1, agency: 'NFD', sourceId: 'e1', epoch: 'b1' };

  it('is every key of a source that the last batch did not have', () => {
    expect(windowKeys(all, new Map())).toEqual(keys);
    expect(windowKeys(all, reachedAfter([]))).toEqual(keys);
  });

  it('is not what lies above the highest sequence of its source, epoch and key version', () => {
    expect(windowKeys(all, reachedAfter([{ ...source, head: { ...head, highest: 6n } }]))).toEqual(
      keys.filter((_, index) => index !== 1 && index !== 2),
    );
    expect(windowKeys(all, reachedAfter([{ ...source, head: { ...head, highest: 9007199254740992n } }]))).toEqual(
      keys.filter((_, index) => index !== 2),
    );
    expect(windowKeys(all, reachedAfter([{ ...source, head: { ...head, highest: 9007199254740993n } }]))).toEqual(keys);
    expect(windowKeys(all, reachedAfter([{ ...source, keyVersion: 2, head: { ...head, highest: 6n } }]))).toEqual(keys);
  });

  it('is every event id: they are in no order', () => {
    const events = received(
      caseContract({
        identity:
          '{ mode: eventId, agency: { pointer: /agency }, source: { pointer: /src }, eventId: { pointer: /seq } }',
      }),
      b(1),
      b(2),
    );
    const reached = reachedAfter([{ ...source, epoch: '', head: { rank: null, mark: null, highest: null } }]);
    expect(windowKeys(events, reached)).toEqual(keysOf(events));
  });
});
