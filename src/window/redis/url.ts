import type { RedisOptions } from 'ioredis';

/** A Redis URL that cannot be used. The message never holds the URL, which may hold a password. */
export class RedisUrlError extends Error {
  override readonly name = 'RedisUrlError';
}

/**
 * `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. The host is needed, port 6379 and database 0 are
 * the defaults; user and password are percent-encoded where they hold reserved characters.
 *
 * @throws RedisUrlError
 */
export function parseRedisUrl(text: string): RedisOptions {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '') {
    throw new RedisUrlError('a Redis URL begins with redis:// or rediss:// and names a host');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new RedisUrlError('a Redis URL takes no parameters after ? or #');
  }
  const database = /^\/?(\d{0,5})\/?$/.exec(url.pathname);
  if (database === null) {
    throw new RedisUrlError('the path of a Redis URL is the number of a database');
  }
  return {
    host: decode(url.hostname.replace(/^\[(.*)\]$/, '$1')),
    port: url.port === '' ? 6379 : Number(url.port),
    db: Number(database[1]),
    ...(url.username === '' ? {} : { username: decode(url.username) }),
    ...(url.password === '' ? {} : { password: decode(url.password) }),
    ...(url.protocol === 'rediss:' ? { tls: {} } : {}),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new RedisUrlError('reserved characters in a Redis URL must be percent-encoded');
  }
}
