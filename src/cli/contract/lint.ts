/** `contract lint`: needs no server, so it loads nothing that could reach one. */
import { formatContractError } from '../../contract/check-error';
import { checkContracts } from '../../contract/overlap';
import { readContractPaths } from '../../startup/contract-files';

/** Prints what is wrong and what is worth a second look, one a line. @returns the exit code: 1 where something is wrong */
export async function lintContracts(paths: readonly string[], write: (line: string) => void): Promise<0 | 1> {
  const { loaded, errors } = await readContractPaths(paths);
  const all = [...errors, ...checkContracts(loaded)];
  for (const error of all) write(formatContractError(error));
  // The place stays first, where editors and CI logs look for it.
  for (const warning of loaded.flatMap(({ warnings }) => warnings)) {
    write(warning.replace(/:\d+:\d+: /, (place) => `${place}warning: `));
  }
  if (all.length > 0) return 1;
  write(`${loaded.length} ${loaded.length === 1 ? 'contract is' : 'contracts are'} right`);
  return 0;
}
