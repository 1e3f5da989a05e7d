import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/*
 * Servers and children must not outlive the process that started them, however that one ends (Ctrl-C, an
 * out-of-memory kill, a worker that Jest ends). A small shell of its own process group holds the list; when its
 * standard input closes, because we are gone, it kills what is left and removes the folders.
 *
 * A process that ended is taken off the list at once, so that the number of another one is never signalled.
 */
const SCRIPT = `
processes=''
folders=''
newline='
'
while IFS=' ' read -r operation argument rest; do
  case "$operation" in
    watch) processes="$processes$argument $rest$newline" ;;
    forget) processes=$(printf '%s' "$processes" | grep -v "^$argument " ; echo .); processes=\${processes%.} ;;
    folder) folders="$folders$argument\${rest:+ $rest}$newline" ;;
  esac
done
printf '%s' "$processes" | while read -r pid signal; do kill "-$signal" "$pid" 2>/dev/null; done
[ -n "$processes" ] && sleep 2
printf '%s' "$processes" | while read -r pid signal; do kill -KILL "$pid" 2>/dev/null; done
printf '%s' "$folders" | while IFS= read -r folder; do rm -rf "$folder"; done
`;

type ReapSignal = 'KILL' | 'QUIT' | 'TERM';

let shell: ChildProcess | null = null;

function tell(line: string): void {
  if (shell === null) {
    shell = spawn('/bin/sh', ['-c', SCRIPT], { detached: true, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] });
    shell.unref();
    const input = shell.stdin as Socket; // a pipe of a child is a Socket, whatever its declared type
    input.unref();
    input.on('error', () => {
      shell = null; // somebody killed it; the next call starts another
    });
  }
  shell.stdin?.write(`${line}\n`);
}

/** `signal` is what ends it if we die first; `KILL` follows two seconds later. */
export function watchProcess(pid: number, signal: ReapSignal): void {
  tell(`watch ${pid} ${signal}`);
}

export function forgetProcess(pid: number): void {
  tell(`forget ${pid}`);
}

/** The folder is removed once we are gone. */
export function watchFolder(folder: string): void {
  tell(`folder ${folder}`);
}
