/** Reads the contracts of a folder. What is in each file is for `contract/load.ts`. */
import { constants } from 'node:fs';
import { open, readdir, realpath, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { ContractError } from '../contract/check-error';
import { loadContract } from '../contract/load';
import type { LoadedContract } from '../contract/types';
import { MAX_CONTRACT_BYTES } from '../contract/yaml-source';

export interface ContractFolder {
  /** In the order of the file names. */
  readonly loaded: readonly LoadedContract[];
  /** Of single files; rules among contracts are for `checkContracts`. */
  readonly errors: readonly ContractError[];
}

/**
 * Loads every `*.yaml` and `*.yml` directly in `folder`, but for those whose name starts with a dot. Never rejects: a
 * folder or a file that cannot be read is an error of its own, and the other files are loaded all the same.
 */
export async function readContracts(folder: string): Promise<ContractFolder> {
  const loaded: LoadedContract[] = [];
  const errors: ContractError[] = [];
  let names: string[];
  let root: string;
  try {
    root = await realpath(folder);
    names = (await readdir(root)).filter((name) => /\.ya?ml$/i.test(name) && !name.startsWith('.')).sort();
  } catch (error) {
    return { loaded, errors: [wholeFile(folder, `the contracts folder cannot be read (${codeOf(error)})`)] };
  }
  // One at a time: there are few, and the order of errors is the order of files.
  for (const name of names) {
    const one = await readOne(root, name, join(folder, name));
    loaded.push(...one.loaded);
    errors.push(...one.errors);
  }
  return { loaded, errors };
}

/** As `readContracts`, of files and folders as they are named. Never rejects. */
export async function readContractPaths(paths: readonly string[]): Promise<ContractFolder> {
  const parts: ContractFolder[] = [];
  for (const path of paths) {
    const isFolder = await stat(path).then(
      (status) => status.isDirectory(),
      () => false, // Reading it says what is wrong.
    );
    parts.push(isFolder ? await readContracts(path) : await readContractFile(path));
  }
  // A file may be named beside its folder.
  const loaded = new Map(parts.flatMap((part) => part.loaded).map((one) => [resolve(one.file), one]));
  return { loaded: [...loaded.values()], errors: parts.flatMap(({ errors }) => errors) };
}

async function readContractFile(path: string): Promise<ContractFolder> {
  try {
    return await readOne(await realpath(dirname(path)), basename(path), path);
  } catch (error) {
    return { loaded: [], errors: [wholeFile(path, `cannot be read (${codeOf(error)})`)] };
  }
}

/** @param root real path of its folder */
async function readOne(root: string, name: string, file: string): Promise<ContractFolder> {
  const content = await readContained(root, name);
  if (typeof content === 'string') return { loaded: [], errors: [wholeFile(file, content)] };
  const load = loadContract(file, content);
  return load.ok ? { loaded: [load.loaded], errors: [] } : { loaded: [], errors: load.errors };
}

/** The bytes of a file, or in words why there are none. */
async function readContained(root: string, name: string): Promise<Uint8Array | string> {
  let handle: FileHandle | undefined;
  try {
    const target = await realpath(join(root, name));
    // Links within the folder are how mounted configuration is swapped; one that leaves it could show any file of
    // the host in an error message.
    if (!target.startsWith(root.endsWith(sep) ? root : root + sep))
      return 'is a link to a place outside the contracts folder';
    // Not blocking, or a pipe of that name would be waited for; not following, or the link could have changed since.
    handle = await open(target, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const status = await handle.stat();
    if (status.isDirectory()) return 'is a folder, not a file';
    if (!status.isFile()) return 'is not a regular file';
    return await readBounded(handle);
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  } finally {
    await handle?.close();
  }
}

/** One byte more than allowed is enough for the loader to refuse it, whatever the file's size was or becomes. */
async function readBounded(handle: FileHandle): Promise<Uint8Array> {
  const buffer = new Uint8Array(MAX_CONTRACT_BYTES + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function wholeFile(file: string, message: string): ContractError {
  return { file, line: 1, column: 1, path: '', message };
}

/** ENOENT, EACCES, ELOOP …: the code alone, since messages of the system repeat the path. */
function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : 'unknown error';
}
