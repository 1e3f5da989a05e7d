import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const LOWEST = 12_000;
const DEFAULT_EPHEMERAL_START = 32_768;

/**
 * A TCP port that is free on 127.0.0.1, below the range the kernel takes outgoing ports from.
 *
 * A port that the kernel chose (`listen(0)`) would not do for a server that dies and comes back: while it is down, a
 * client's outgoing connection may take the port, or a reconnecting client may even connect to itself on it.
 */
export async function freePort(): Promise<number> {
  const end = Math.max(ephemeralStart(), LOWEST + 1_000);
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const port = randomInt(LOWEST, end);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free TCP port between ${LOWEST} and ${end} on 127.0.0.1`);
}

function ephemeralStart(): number {
  try {
    const first = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').trim().split(/\s+/)[0]);
    return Number.isInteger(first) ? first : DEFAULT_EPHEMERAL_START;
  } catch {
    return DEFAULT_EPHEMERAL_START; // not Linux; macOS and Windows start at 49152
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
