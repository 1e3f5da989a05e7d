/**
 * One process at a time on a folder.
 *
 * Node has no `flock`, and a file with a process id proves nothing: the process may be dead, its id given to another, or
 * it may live in another container, where it has another id. What the operating system takes back by itself, however a
 * process ends, is a socket. So a process holds a folder by listening on a Unix domain socket in it, and another asks
 * whether someone listens: a connection is accepted by the kernel even while the holder is busy or stopped, and refused
 * as soon as it is dead. This also works between containers of one machine that share the folder. It does not between
 * machines: folders on network file systems are not protected, and PGlite is not for them anyway.
 *
 * Two starters at once: each first shows its own socket, then looks for those of others, and gives up if any of them is
 * alive. Of two, the one who shows later sees the other, so that two never hold. Both may see each other; then the one
 * whose name sorts first waits for the other to leave. A socket is made under a name that nobody looks for and renamed
 * when it listens, because between the two a connection would be refused. Names are never used twice, so that a socket
 * found dead stays dead, and anyone may remove it.
 *
 *     making ── listen ──▶ new-<pid>-<random> ── rename ──▶ lock-<pid>-<random> ── nobody else alive ──▶ held
 *                                                             │ another alive: remove, FOLDER_LOCKED
 */
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { StorageError } from '../ledger/storage-error';

export interface FolderLock {
  /** Lets the next one in. Calling it again does nothing. */
  release(): Promise<void>;
}

const LOCK = /^lock-(\d+)-[0-9a-f]{16}$/;
/** Bytes of `sun_path` without its end, on the system that has the fewest. */
const MAX_SOCKET_PATH_BYTES = 103;
/** For the holder's word; a holder that says nothing is stopped or busy, and holds. */
const ANSWER_TIMEOUT_MS = 2_000;
const TIE_POLL_MS = 20;

/** `leaving`: it was alive a moment ago, and went away without a word; it is asked again. */
type Peer = 'dead' | 'leaving' | 'starting' | 'held';

/**
 * Locks a folder until `release()` or the end of the process. The folder is made if it does not exist.
 *
 * @throws StorageError FOLDER_LOCKED, with the folder and the holder's process id as that process sees it;
 * FOLDER_UNUSABLE if the folder cannot be made, or not carry a socket
 */
export async function lockFolder(dir: string): Promise<FolderLock> {
  const folder = await openFolder(dir);
  const name = `${process.pid}-${randomBytes(8).toString('hex')}`;
  const own = `lock-${name}`;
  const state = { held: false };
  let listener: Listener | null = null;
  const release = async (): Promise<void> => {
    await rm(join(folder.path, own), { force: true });
    await listener?.close();
    listener = null;
    await folder.close();
  };
  try {
    listener = await listen(folder.socketPath(`new-${name}`), state);
    await rename(join(folder.path, `new-${name}`), join(folder.path, own));
    await waitForOthers(folder, own);
    state.held = true;
    return { release };
  } catch (error) {
    await release();
    if (error instanceof StorageError) throw error;
    throw unusable(dir, error);
  }
}

interface Folder {
  readonly path: string;
  /** The same folder by a path that is short enough for a socket. */
  socketPath(name: string): string;
  close(): Promise<void>;
}

async function openFolder(dir: string): Promise<Folder> {
  try {
    await mkdir(dir, { recursive: true });
    const path = await realpath(dir);
    const longest = Buffer.byteLength(join(path, `lock-4194304-${'f'.repeat(16)}`));
    if (longest <= MAX_SOCKET_PATH_BYTES || process.platform !== 'linux') {
      return { path, socketPath: (name) => join(path, name), close: () => Promise.resolve() };
    }
    // Linux reaches an open folder by its descriptor, however deep it lies.
    const handle = await open(path, 'r');
    return { path, socketPath: (name) => `/proc/self/fd/${handle.fd}/${name}`, close: () => handle.close() };
  } catch (error) {
    throw unusable(dir, error);
  }
}

function unusable(dir: string, error: unknown): StorageError {
  const reason = error instanceof Error ? error.message : String(error);
  return new StorageError('FOLDER_UNUSABLE', `cannot use the data folder ${dir}: ${reason}`, { cause: error });
}

interface Listener {
  close(): Promise<void>;
}

/** Tells whoever connects whether the folder is held already. Does not keep the process alive. */
function listen(path: string, state: { readonly held: boolean }): Promise<Listener> {
  const askers = new Set<Socket>();
  const server = createServer((socket) => {
    askers.add(socket.unref());
    socket.on('close', () => askers.delete(socket));
    socket.on('error', () => socket.destroy()); // the asker has gone
    socket.end(state.held ? 'held' : 'starting');
  });
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      // A process with nothing else to do would end here, before its caller hears the refusal.
      server.ref();
      server.close(() => resolve());
      for (const socket of askers) socket.destroy();
    });
  return new Promise((resolve, reject) => {
    server.on('error', reject); // later ones, of accepting, are the asker's trouble
    // `exclusive`: a worker of node:cluster would otherwise let its parent listen, which outlives it.
    server.listen({ path, exclusive: true }, () => {
      server.unref();
      resolve({ close });
    });
  });
}

/** Resolves when no other live process shows a socket; removes those of dead ones. */
async function waitForOthers(folder: Folder, own: string): Promise<void> {
  for (;;) {
    let waiting = false;
    for (const name of await readdir(folder.path)) {
      if (name === own || !LOCK.test(name)) continue;
      const peer = await ask(folder.socketPath(name));
      if (peer === 'held' || (peer === 'starting' && name < own)) throw locked(folder.path, name);
      if (peer === 'dead') await rm(join(folder.path, name), { force: true });
      else waiting = true;
    }
    if (!waiting) return;
    await new Promise((resolve) => setTimeout(resolve, TIE_POLL_MS));
  }
}

function locked(path: string, name: string): StorageError {
  const pid = LOCK.exec(name)?.[1] ?? 'unknown';
  return new StorageError('FOLDER_LOCKED', `the data folder ${path} is in use by another process (pid ${pid})`);
}

function ask(path: string): Promise<Peer> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = createConnection({ path });
    socket.setTimeout(ANSWER_TIMEOUT_MS);
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => (answer += text));
    socket.on('timeout', () => {
      resolve('held');
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(BY_ERROR[error.code ?? ''] ?? 'held'));
    socket.on('close', () => resolve(answer === 'held' || answer === 'starting' ? answer : 'leaving'));
  });
}

/** The first two say that nobody listens. Others than these (a full queue, a missing right) may hide a holder. */
const BY_ERROR: Readonly<Record<string, Peer>> = {
  ECONNREFUSED: 'dead',
  ENOENT: 'dead',
  ECONNRESET: 'leaving',
  EPIPE: 'leaving',
};
