'use strict';
/**
 * Copies what the compiler leaves behind, the Lua scripts of the window, from src/ to the same paths under dist/.
 * A copy whose source is gone is removed, so that dist/ never holds a command that src/ no longer has.
 */
const { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } = require('node:fs');
const { dirname, join, relative } = require('node:path');

const root = join(__dirname, '..');
const source = join(root, 'src');
const target = join(root, 'dist');

/** Paths of the Lua scripts under `folder`, relative to it; none if there is no such folder. */
function luaScripts(folder) {
  if (!existsSync(folder)) {
    return [];
  }
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.lua'))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

const scripts = luaScripts(source);
for (const stale of luaScripts(target).filter((path) => !scripts.includes(path))) {
  rmSync(join(target, stale));
}
for (const path of scripts) {
  mkdirSync(dirname(join(target, path)), { recursive: true });
  copyFileSync(join(source, path), join(target, path));
}
