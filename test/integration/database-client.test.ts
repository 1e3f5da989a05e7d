import { openDatabase } from '../../src/ledger/client';
import type { Database } from '../../src/ledger/client';
import type { PostgresOptions } from '../../src/ledger/postgres-adapter';
import { sqlState } from '../../src/ledger/sql-error';
import { onCleanup } from '../support/cleanup';
import { createTestDatabase } from '../support/database';
import { freePort } from '../support/free-port';
import { withClient } from '../support/postgres';
import { loseAnswerTo, startProxy } from '../support/tcp-proxy';
import { sleep, until } from '../support/wait';

let url: string;
let database: Database;

async function open(options: Partial<PostgresOptions> = {}): Promise<Database> {
  const opened = await openDatabase({ url, poolSize: 3, applicationName: 'client test', ...options });
  onCleanup(() => opened.close());
  return opened;
}

/** What a connection of its own finds: nothing that only one session believes in. */
async function rowsOf(id: number): Promise<number> {
  return withClient(url, async (client) => {
    const result = await client.query<{ n: number }>('SELECT count(*)::integer AS n FROM effect WHERE id = $1', [id]);
    return result.rows[0]?.n ?? 0;
  });
}

beforeAll(async () => {
  ({ url } = await createTestDatabase());
  await withClient(url, async (client) => {
    await client.query('CREATE TABLE effect (id integer PRIMARY KEY, note text)');
    await client.query(`
      CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.id = 131 THEN RAISE EXCEPTION 'refused at commit' USING ERRCODE = '23514'; END IF; RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse_late()`);
  });
  database = await open();
});

describe('a commit that was none is never reported as one', () => {
  test('C071: a caught unique violation has aborted the transaction', async () => {
    await database.prisma.$executeRaw`INSERT INTO effect VALUES (130, 'first')`;
    const outcome = database.prisma.$transaction(async (tx) => {
      await tx.$executeRaw`INSERT INTO effect VALUES (1, 'audit')`;
      await tx.$executeRaw`INSERT INTO effect VALUES (130, 'again')`.catch(() => undefined);
    });
    await expect(outcome).rejects.toThrow(/COMMIT rolled back/);
    expect(sqlState(await outcome.catch((error: unknown) => error))).toBe('25P02');
    expect(await rowsOf(1)).toBe(0);
    await expect(database.prisma.$executeRaw`INSERT INTO effect VALUES (2, 'next')`).resolves.toBe(1);
  });

  test('C071: ON CONFLICT leaves the transaction alive', async () => {
    await database.prisma.$transaction(async (tx) => {
      await tx.$executeRaw`INSERT INTO effect VALUES (130, 'again') ON CONFLICT DO NOTHING`;
      await tx.$executeRaw`INSERT INTO effect VALUES (3, 'audit')`;
    });
    expect(await rowsOf(3)).toBe(1);
  });

  test('C073: an error raised by COMMIT itself', async () => {
    const outcome = database.prisma.$transaction(async (tx) => {
      await tx.$executeRaw`INSERT INTO effect VALUES (131, 'late')`;
    });
    await expect(outcome).rejects.toThrow('refused at commit');
    expect(sqlState(await outcome.catch((error: unknown) => error))).toBe('23514');
    expect(await rowsOf(131)).toBe(0);
  });

  test('the answer to COMMIT is lost: rejected, though it happened', async () => {
    const proxy = await startProxy(Number(new URL(url).port));
    const through = new URL(url);
    through.port = String(proxy.port);
    const client = await open({ url: through.href });
    const lost = loseAnswerTo(proxy, 'COMMIT');
    const outcome = client.prisma.$transaction(async (tx) => {
      await tx.$executeRaw`INSERT INTO effect VALUES (4, 'lost answer')`;
    });
    await expect(outcome).rejects.toThrow();
    await lost;
    expect(sqlState(await outcome.catch((error: unknown) => error))).toBeNull();
    expect(await rowsOf(4)).toBe(1);
    await expect(client.prisma.$queryRaw`SELECT 1 AS one`).resolves.toEqual([{ one: 1 }]);
  });

  test('C074: a transaction that ran out of time', async () => {
    const slowStatement = database.prisma.$transaction(
      async (tx) => {
        await tx.$executeRaw`INSERT INTO effect VALUES (132, 'slow')`;
        await tx.$queryRaw`SELECT pg_sleep(0.8)::text`;
      },
      { timeout: 200 },
    );
    await expect(slowStatement).rejects.toMatchObject({ code: 'P2028' });

    let afterExpiry: unknown = null;
    const slowCallback = database.prisma.$transaction(
      async (tx) => {
        await tx.$executeRaw`INSERT INTO effect VALUES (133, 'slow')`;
        await sleep(500);
        afterExpiry = await tx.$executeRaw`INSERT INTO effect VALUES (134, 'too late')`.catch(
          (error: unknown) => error,
        );
      },
      { timeout: 200 },
    );
    await expect(slowCallback).rejects.toMatchObject({ code: 'P2028' });
    expect(afterExpiry).toMatchObject({ code: 'P2028' });
    expect([await rowsOf(132), await rowsOf(133), await rowsOf(134)]).toEqual([0, 0, 0]);
  });
});

describe('lost connections', () => {
  test('an idle one that the server closes is replaced, and told of', async () => {
    const told: Error[] = [];
    const client = await open({ poolSize: 1, onConnectionLost: (error) => told.push(error) });
    const [session] = await client.prisma.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    await database.prisma.$queryRaw`SELECT pg_terminate_backend(${session?.pid}::integer)`;
    await until(() => told.length > 0, { what: 'the loss to be noticed' });
    await expect(client.prisma.$queryRaw`SELECT 1 AS one`).resolves.toEqual([{ one: 1 }]);
  });

  test('one that dies inside a transaction', async () => {
    const outcome = database.prisma.$transaction(async (tx) => {
      const [session] = await tx.$queryRaw<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
      await tx.$executeRaw`INSERT INTO effect VALUES (5, 'killed')`;
      await withClient(url, (client) => client.query('SELECT pg_terminate_backend($1)', [session?.pid]));
    });
    await expect(outcome).rejects.toThrow();
    expect(await rowsOf(5)).toBe(0);
  });

  test('a server that falls silent: the query is given up, and its connection not used again', async () => {
    const proxy = await startProxy(Number(new URL(url).port));
    const through = new URL(url);
    through.port = String(proxy.port);
    const client = await open({ url: through.href, poolSize: 1, statementTimeoutMs: 200 });
    const outcome = client.prisma.$transaction(async (tx) => {
      // The server would close the connection otherwise; from a machine that is gone, nothing comes.
      await tx.$executeRaw`SET LOCAL idle_in_transaction_session_timeout TO 0`;
      let silent: number | null = null;
      proxy.onServerData((_chunk, connection) => {
        silent ??= connection.id;
        return connection.id === silent ? 'swallow' : undefined;
      });
      await tx.$queryRaw`SELECT 2`;
    });
    await expect(outcome).rejects.toThrow();
    await expect(client.prisma.$queryRaw`SELECT 3 AS three`).resolves.toEqual([{ three: 3 }]);
  });

  test('a transaction that lies idle is ended by the server, and its locks with it', async () => {
    const frozen = await open({ statementTimeoutMs: 200 });
    const outcome = frozen.prisma.$transaction(
      async (tx) => {
        await tx.$executeRaw`INSERT INTO effect VALUES (6, 'frozen')`;
        await sleep(700);
      },
      { timeout: 5_000 },
    );
    await expect(outcome).rejects.toThrow();
    expect(await rowsOf(6)).toBe(0);
  });
});

test('sessions do not depend on the defaults of the server or the role', async () => {
  const role = `role_${Math.random().toString(36).slice(2)}`;
  const admin = async (sql: string): Promise<void> => withClient(url, async (client) => void (await client.query(sql)));
  await admin(`CREATE ROLE ${role} LOGIN`);
  onCleanup(() => admin(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
  const hostile = {
    TimeZone: "'Asia/Kolkata'",
    DateStyle: "'SQL, DMY'",
    bytea_output: "'escape'",
    default_transaction_isolation: "'serializable'",
    synchronous_commit: "'off'",
    search_path: "'pg_catalog'",
  };
  for (const [name, value] of Object.entries(hostile)) await admin(`ALTER ROLE ${role} SET ${name} TO ${value}`);
  const asRole = new URL(url);
  asRole.username = role;

  const { prisma } = await open({ url: asRole.href });
  const [row] = await prisma.$queryRaw<Record<string, unknown>[]>`
    SELECT '2026-07-30T12:00:00Z'::timestamptz AS at, '\\xc3ff'::bytea AS bytes, current_schema() AS schema,
      current_setting('transaction_isolation') AS isolation, current_setting('synchronous_commit') AS durable`;
  expect(row).toMatchObject({
    at: new Date('2026-07-30T12:00:00Z'),
    schema: 'public',
    isolation: 'read committed',
    durable: 'on',
  });
  expect(Buffer.from(row?.bytes as Uint8Array).toString('hex')).toBe('c3ff');
  const at = new Date('2026-01-02T03:04:05.678Z');
  await expect(prisma.$queryRaw`SELECT ${at}::timestamptz = '2026-01-02T03:04:05.678Z' AS same`).resolves.toEqual([
    { same: true },
  ]);
});

test('bigint and numeric are read exactly', async () => {
  const digits = `${'9'.repeat(38)}.${'0'.repeat(37)}1`;
  const [row] = await database.prisma.$queryRaw<{ big: bigint; exact: { toFixed(): string } }[]>`
    SELECT 9223372036854775807 AS big, ${digits}::numeric AS exact`;
  expect(row?.big).toBe(9223372036854775807n);
  expect(row?.exact.toFixed()).toBe(digits);
});

describe('what cannot be opened says why, in one line and without the password', () => {
  const secret = 'hunter2-secret';

  async function refusal(change: (target: URL) => void): Promise<{ code: unknown; message: string }> {
    const target = new URL(url);
    target.password = secret;
    change(target);
    const error: unknown = await open({ url: target.href, connectTimeoutMs: 1_000 }).catch((reason: unknown) => reason);
    if (!(error instanceof Error)) throw new Error('it opened');
    expect(error.message).not.toMatch(/\n/);
    expect(error.message).not.toContain(secret);
    return { code: (error as { code?: unknown }).code, message: error.message };
  }

  test('nobody listens', async () => {
    const port = await freePort();
    const { code, message } = await refusal((target) => (target.port = String(port)));
    expect(code).toBe('UNREACHABLE');
    expect(message).toContain(`127.0.0.1:${port}`);
  });

  test('somebody listens who says nothing', async () => {
    const proxy = await startProxy(Number(new URL(url).port));
    proxy.pauseUpstream();
    expect((await refusal((target) => (target.port = String(proxy.port)))).code).toBe('UNREACHABLE');
  });

  test('no such host', async () => {
    expect((await refusal((target) => (target.hostname = 'nowhere.invalid'))).code).toBe('UNREACHABLE');
  });

  test('no such database', async () => {
    const { code, message } = await refusal((target) => (target.pathname = '/nowhere'));
    expect(code).toBe('NO_SUCH_DATABASE');
    expect(message).toContain('nowhere');
  });

  test.each(['LATIN1', 'SQL_ASCII'])('a database in %s, which cannot hold every message', async (encoding) => {
    const name = `test_${encoding.toLowerCase()}_${process.pid}`;
    await withClient(url, (client) =>
      client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C'`),
    );
    onCleanup(async () => void (await withClient(url, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))));
    const { code, message } = await refusal((target) => (target.pathname = `/${name}`));
    expect(code).toBe('WRONG_ENCODING');
    expect(message).toContain(`is encoded in ${encoding}; UTF8 is needed`);
  });

  test('no such role', async () => {
    expect((await refusal((target) => (target.username = 'nobody_here'))).code).toBe('AUTHENTICATION_FAILED');
  });

  test('TLS is asked of a server without it', async () => {
    expect((await refusal((target) => target.searchParams.set('sslmode', 'verify-full'))).code).toBe('TLS_FAILED');
  });

  test.each(['mysql://root@127.0.0.1/x', 'not a url', '', '/var/run/postgresql'])(
    'no URL of Postgres: %p',
    async (text) => {
      await expect(open({ url: text })).rejects.toMatchObject({ code: 'BAD_URL' });
    },
  );
});

test('closing twice is closing once', async () => {
  const client = await open();
  await Promise.all([client.close(), client.close()]);
  await expect(client.prisma.$queryRaw`SELECT 1`).rejects.toThrow();
});
