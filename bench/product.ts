import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const REPOSITORY = resolve(__dirname, '..');

/**
 * A module of the built product: what is measured is what is shipped, while the benchmark around it runs from source.
 * @param path below `src/`, without extension
 */
export function built<Module>(path: string): Module {
  const file = join(REPOSITORY, 'dist', `${path}.js`);
  if (!existsSync(file)) throw new Error(`${file} is missing: npm run build`);
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- the path is known at run time alone
  return require(file) as Module;
}
