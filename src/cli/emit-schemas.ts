/** Writes the schemas that editors and clients rely on. They are committed, and a difference fails the build. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { contractJsonSchema } from '../contract/schema';

/** Name of the JSON Schema of contracts in the folder `schema/`. */
export const CONTRACT_SCHEMA_FILE = 'feed-contract.schema.json';

/** Writes the JSON Schema of contracts into `folder`, and answers the path of the file. */
export async function emitContractSchema(folder: string): Promise<string> {
  const file = join(folder, CONTRACT_SCHEMA_FILE);
  await writeFile(file, contractJsonSchema());
  return file;
}
