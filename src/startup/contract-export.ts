/** Writes the policies in force back into contract files, so that git knows what was changed through the API. */
import { realpath, rename, stat, writeFile } from 'node:fs/promises';
import { samePolicy } from '../contract/plan';
import type { LoadedContract } from '../contract/types';
import { writePolicy } from '../contract/write-policy';
import type { Database } from '../ledger/client';
import { readInForce } from '../ledger/in-force';
import { reload } from './contracts';
import { StartError } from './parts';

export interface Exported {
  readonly feed: string;
  readonly file: string;
  readonly written: boolean;
}

/**
 * Writes every file whose policy is not the one in force. Feeds without a file, and files without a feed, are left alone.
 * @throws StartError where a file holds a change of its policy that is not applied: it would be lost; nothing is written
 */
export async function exportPolicies(database: Database, files: readonly LoadedContract[]): Promise<Exported[]> {
  const inForce = await readInForce(database.prisma, (stored) => reload(stored).contract);
  const found = files.flatMap((loaded) => {
    const feed = inForce.find((candidate) => candidate.feed === loaded.contract.feed);
    return feed === undefined ? [] : [{ loaded, feed }];
  });
  const lost = found.filter(
    ({ loaded: { contract }, feed }) =>
      !samePolicy(contract.dedup, feed.filePolicy) && !samePolicy(contract.dedup, feed.policy),
  );
  if (lost.length > 0) {
    const reason = 'dedup was changed in the file and is not applied: apply it, or take it back, before exporting';
    throw new StartError(lost.map(({ loaded }) => `${loaded.file}: ${reason}`).join('\n'));
  }
  const texts = found.map(({ loaded, feed }) => ({ loaded, text: writePolicy(loaded, feed.policy) }));
  const exported: Exported[] = [];
  for (const { loaded, text } of texts) {
    const written = text !== loaded.sourceText;
    if (written) await replaceFile(loaded.file, text);
    exported.push({ feed: loaded.contract.feed, file: loaded.file, written });
  }
  return exported;
}

/** At once, so that a watcher never reads half a contract; through a link, since the link is what others know. */
async function replaceFile(file: string, text: string): Promise<void> {
  const target = await realpath(file);
  const { mode } = await stat(target);
  const draft = `${target}.new`;
  await writeFile(draft, text, { mode });
  await rename(draft, target);
}
