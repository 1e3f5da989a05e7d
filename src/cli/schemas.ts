/** `replay-ledger schemas`: what is emitted from the code, for editors and clients. CI fails when it is not current. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { emitGraphqlSchema } from '../api/schema';
import { contractJsonSchema } from '../contract/schema';

/** Writes `schema.graphql` and `feed-contract.schema.json` into the folder, which is made if it is not there. */
export async function writeSchemas(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'schema.graphql'), emitGraphqlSchema());
  await writeFile(join(dir, 'feed-contract.schema.json'), contractJsonSchema());
}
