/** Errors of contracts: where, and what, for the people who write them. Pure. */
import type { SourceFault, SourceText } from './yaml-source';
import { pathText, type YamlPath } from './yaml-tree';

export interface ContractError {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  /** Where in the contract, such as `effects[0].field`; '' for the file as a whole. */
  readonly path: string;
  readonly message: string;
}

/** A fault of the contract's content: at an offset of the source, about a path. */
export interface ContractFault extends SourceFault {
  readonly path: YamlPath;
}

/** `file:line:column: message`, the form that editors and CI logs turn into links. */
export function formatContractError(error: ContractError): string {
  const about = error.path === '' ? '' : `${error.path}: `;
  return `${error.file}:${error.line}:${error.column}: ${about}${error.message}`;
}

export function locate(file: string, source: SourceText, fault: ContractFault): ContractError {
  return { file, ...source.position(fault.offset), path: pathText(fault.path), message: fault.message };
}

/** By file, then by position. */
export function compareContractErrors(a: ContractError, b: ContractError): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
