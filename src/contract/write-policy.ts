/**
 * Writes a policy into the text of a contract (design section 7). Comments and order stay, and so does every byte outside
 * the values that change, unless a key has to come or go. Pure.
 */
import { isScalar, parseDocument } from 'yaml';
import type { Document } from 'yaml';
import { loadContract } from './load';
import { POLICY_FIELDS, samePolicy } from './plan';
import type { DedupPolicy, LoadedContract } from './types';

/**
 * The text of the file with `policy` under `dedup`; the text as it is where it says so already.
 * @throws Error where the policy cannot be written into this contract: the loader would refuse or misread it
 */
export function writePolicy({ contract, file, sourceText }: LoadedContract, policy: DedupPolicy): string {
  const fields = POLICY_FIELDS.filter((field) => contract.dedup[field] !== policy[field]);
  if (fields.length === 0) return sourceText;
  const document = parseDocument(sourceText, { schema: 'core', logLevel: 'silent' });
  const text = inPlace(sourceText, document, fields, policy) ?? rewritten(sourceText, document, fields, policy);
  const load = loadContract(file, Buffer.from(text, 'utf8'));
  if (!load.ok || !samePolicy(load.loaded.contract.dedup, policy)) {
    throw new Error(`${file}: the policy in force cannot be written into this contract`);
  }
  return text;
}

type Field = (typeof POLICY_FIELDS)[number];

/** Only values change, so only their bytes do; null where a key has to come or go. */
function inPlace(source: string, document: Document, fields: readonly Field[], policy: DedupPolicy): string | null {
  const edits: { readonly from: number; readonly to: number; readonly text: string }[] = [];
  for (const field of fields) {
    const node = document.getIn(['dedup', field], true);
    if (!isScalar(node) || !node.range || policy[field] === null) return null;
    edits.push({ from: node.range[0], to: node.range[1], text: String(policy[field]) });
  }
  // From the end, so that offsets of edits to come stay right.
  return edits
    .sort((a, b) => b.from - a.from)
    .reduce((text, { from, to, text: value }) => text.slice(0, from) + value + text.slice(to), source);
}

function rewritten(source: string, document: Document, fields: readonly Field[], policy: DedupPolicy): string {
  for (const field of fields) {
    const value = policy[field];
    if (value === null) document.deleteIn(['dedup', field]);
    else document.setIn(['dedup', field], value);
  }
  const text = document.toString({ lineWidth: 0 });
  return source.includes('\r\n') ? text.replace(/\r?\n/g, '\r\n') : text;
}
