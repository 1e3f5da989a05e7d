/**
 * Rules among contracts (design section 7): names are unique, no message is consumed under two contracts, and nothing
 * that is forwarded is consumed again. Pure.
 */
import { compareContractErrors, locate, type ContractError } from './check-error';
import { forwardWitness } from './check-forward';
import { filtersOverlap } from './topic-filter';
import type { LoadedContract } from './types';
import { readYaml } from './yaml-document';
import { SourceText } from './yaml-source';
import { offsetOf, type YamlPath } from './yaml-tree';

/**
 * What is wrong among contracts, each of which is right by itself; sorted by file and position. An error stands at the
 * later of two contracts in the order given, and names the place in the other; a forward topic at the one that forwards.
 */
export function checkContracts(loaded: readonly LoadedContract[]): ContractError[] {
  const errors: ContractError[] = [];
  loaded.forEach((later, index) => {
    for (const earlier of loaded.slice(0, index)) {
      if (earlier.contract.feed === later.contract.feed) {
        const message = `the feed "${later.contract.feed}" is in ${placeOf(earlier, ['feed'])} already`;
        errors.push(errorAt(later, ['feed'], message));
      } else if (shareBroker(earlier, later)) {
        errors.push(...overlapErrors(earlier, later));
      }
    }
  });
  for (const sender of loaded) {
    for (const consumer of loaded) errors.push(...forwardErrors(sender, consumer));
  }
  return errors.sort(compareContractErrors);
}

function shareBroker(a: LoadedContract, b: LoadedContract): boolean {
  return a.contract.brokers.some((broker) => b.contract.brokers.includes(broker));
}

function overlapErrors(earlier: LoadedContract, later: LoadedContract): ContractError[] {
  const errors: ContractError[] = [];
  later.contract.topics.forEach((filter, i) => {
    earlier.contract.topics.forEach((other, j) => {
      const witness = filtersOverlap(other, filter);
      if (witness === null) return;
      const message =
        `the filter "${filter}" overlaps "${other}" of feed ${earlier.contract.feed} ` +
        `(${placeOf(earlier, ['topics', j])}): both would take a message on "${witness}"`;
      errors.push(errorAt(later, ['topics', i], message));
    });
  });
  return errors;
}

function forwardErrors(sender: LoadedContract, consumer: LoadedContract): ContractError[] {
  const template = sender.contract.forward?.topic;
  if (template === undefined || !shareBroker(sender, consumer)) return [];
  return consumer.contract.topics.flatMap((filter, index) => {
    const witness = forwardWitness(template, sender.contract.topics, filter);
    if (witness === null) return [];
    const who =
      consumer === sender
        ? `this contract itself ("${filter}")`
        : `feed ${consumer.contract.feed} ("${filter}", ${placeOf(consumer, ['topics', index])})`;
    const message = `what is forwarded would be consumed again by ${who}, for example on "${witness}"`;
    return [errorAt(sender, ['forward', 'topic'], message)];
  });
}

function errorAt(at: LoadedContract, path: YamlPath, message: string): ContractError {
  // Read again, because it happens only where something is wrong, and a stored contract has no tree.
  const source = new SourceText(at.sourceText);
  const { root } = readYaml(source);
  return locate(at.file, source, { offset: root === null ? 0 : offsetOf(root, path), path, message });
}

function placeOf(contract: LoadedContract, path: YamlPath): string {
  const { file, line } = errorAt(contract, path, '');
  return `${file}:${line}`;
}
