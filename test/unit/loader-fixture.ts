/** A contract for the tests of the loader, and ways to break it. */
import { formatContractError } from '../../src/contract/check-error';
import { loadContract } from '../../src/contract/load';
import type { LoadedContract } from '../../src/contract/types';

/** Line numbers in the tests are those of this text. */
export const CAD = `apiVersion: replay-ledger/v1
feed: cad-north
topics: ["cad/+/+/incident"]
identity:
  agency: { pointer: /agency }
  source: { pointer: /src }
  sequence: { pointer: /seq }
incident: { pointer: /incident }
dedup:
  windowSeconds: 600
  maxEntries: 1000
effects:
  - { do: set, field: status, to: { pointer: /status } }
`;

/** `CAD` with texts replaced; a text that is not there would make a test of nothing. */
export function cadWith(...changes: ReadonlyArray<readonly [from: string, to: string]>): string {
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`the contract has no "${from}"`);
    return text.replace(from, () => to);
  }, CAD);
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Loads what must load. */
export function load(text: string, file = 'cad.yaml'): LoadedContract {
  const result = loadContract(file, bytesOf(text));
  if (!result.ok) throw new Error(result.errors.map(formatContractError).join('\n'));
  return result.loaded;
}

/** All errors of a contract that must not load, formatted. */
export function errorsOf(contract: string | Uint8Array, file = 'cad.yaml'): string[] {
  const result = loadContract(file, typeof contract === 'string' ? bytesOf(contract) : contract);
  return result.ok ? [] : result.errors.map(formatContractError);
}
