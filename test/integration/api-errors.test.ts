import { b, startPipeline } from '../support/pipeline';
import { withClient } from '../support/postgres';
import { startProxy } from '../support/tcp-proxy';
import { until } from '../support/wait';
import { expectStillServing, openOwn, overSocket, startBoth, startTestApi, UUID } from './api-fixture';

const SECRETS =
  /SELECT|INSERT|ledger_entry|feed_head|prisma|postgres|\/src\/|\/work|node_modules|127\.0\.0\.1|localhost|ECONN|\n\s+at /i;

describe('errors', () => {
  it('C106: show a code and a correlation id, and nothing of the inside; the log has the rest', async () => {
    const path = await startPipeline();
    await path.deliver(b(1));
    const url = new URL(path.url);
    const proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    const app = await startTestApi({ database: await openOwn(url.href) });
    for (const query of [
      '{ auditEntrie { id } }',
      '{ feeds { nam } }',
      '{ decisions(filter: { outcome: [APPLIE] }) { nodes { id } } }',
    ]) {
      const answer = await app.post(query);
      expect(answer.status).toBe(200);
      expect(answer.errors?.[0]).toMatchObject({
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED', correlationId: expect.stringMatching(UUID) as string },
      });
      expect(JSON.stringify(answer)).not.toContain('Did you mean');
    }
    const variables = { filter: { outcome: ['APPLIE'], hel: true } };
    const coerced = await app.post(
      'query ($filter: DecisionFilter) { decisions(filter: $filter) { nodes { id } } }',
      variables,
    );
    expect(coerced.errors?.map((error) => error.extensions.code)).toEqual(['BAD_USER_INPUT', 'BAD_USER_INPUT']);
    expect(JSON.stringify(coerced)).not.toContain('Did you mean');

    await proxy.refuse(true);
    proxy.cut();
    const down = await app.post('{ feeds { name } decision(feed: "cad-north", position: 0) { id } }');
    expect(down.errors?.map((error) => error.extensions.code)).toEqual(['SERVICE_UNAVAILABLE']);
    expect(JSON.stringify(down)).not.toMatch(SECRETS);
    const id = down.errors?.[0]?.extensions.correlationId;
    const logged = app.log.find((line) => line.facts.correlationId === id);
    expect(logged?.facts.err).toBeInstanceOf(Error);
    await proxy.refuse(false);
    await until(async () => (await app.post('{ feeds { name } }')).errors === undefined, {
      what: 'the database to be back',
    });
  });

  it('C106: masks what a resolver throws, also inside a subscription', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(2));
    const cursor = (await app.data('{ decisions(first: 1) { pageInfo { endCursor } } }')).decisions.pageInfo
      .endCursor as string;
    // A ledger that lost a table is the plainest of internal errors.
    await withClient(path.url, (client) => client.query('ALTER TABLE feed_contract RENAME TO feed_contract_gone'));
    const answer = await app.post('{ feeds { contract { text } } }');
    expect(answer.errors).toEqual([
      {
        message: 'internal error',
        locations: [{ line: 1, column: 11 }],
        path: ['feeds', 0, 'contract'],
        extensions: { code: 'INTERNAL_SERVER_ERROR', correlationId: expect.stringMatching(UUID) as string },
      },
    ]);
    const event = await overSocket(app, {
      query:
        'subscription ($after: String) { decisions(after: $after) { position decision { feed { contract { text } } } } }',
      variables: { after: cursor },
    });
    expect(event).toMatchObject({
      type: 'next',
      payload: { errors: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
    });
    expect(JSON.stringify([answer, event])).not.toMatch(SECRETS);
    expect(app.log.filter((line) => line.level === 'error')).toHaveLength(2);
  });

  it('ends a statement that takes too long, and says so', async () => {
    const path = await startPipeline();
    const app = await startTestApi({ database: await openOwn(path.url, 300) });
    await withClient(path.url, async (client) => {
      await client.query('BEGIN; LOCK TABLE ledger_entry IN ACCESS EXCLUSIVE MODE');
      expect(await app.codes('{ decision(feed: "cad-north", position: 0) { id } }')).toEqual(['QUERY_TIMEOUT']);
      await client.query('ROLLBACK');
    });
    await expectStillServing(app);
  });

  it('shows the schema in development alone', async () => {
    const { path, app } = await startBoth();
    const open = await startTestApi({ database: path.database, development: true });
    const introspection = '{ __schema { queryType { fields { name description } } } }';
    expect(await app.codes(introspection)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect((await open.data(introspection)).__schema.queryType.fields.length).toBeGreaterThan(6);
    expect((await open.post('{ feeds { nam } }')).errors?.[0]?.message).toContain('Did you mean "name"?');
  });

  it('answers in the media type that is asked for, with the status that goes with it', async () => {
    const { app } = await startBoth();
    const ask = async (accept: string, query: string) => {
      const headers = { 'content-type': 'application/json', accept };
      const response = await fetch(app.api.url, { method: 'POST', headers, body: JSON.stringify({ query }) });
      return [response.status, response.headers.get('content-type')];
    };
    const plain = 'application/json; charset=utf-8';
    const graphql = 'application/graphql-response+json';
    expect(await ask('*/*', '{ feeds { name } }')).toEqual([200, plain]);
    expect(await ask(graphql, '{ feeds { name } }')).toEqual([200, `${graphql}; charset=utf-8`]);
    expect(await ask('application/json', '{ feeds {')).toEqual([200, plain]);
    expect(await ask(graphql, '{ feeds {')).toEqual([400, `${graphql}; charset=utf-8`]);
    expect(await ask(graphql, '{ nope }')).toEqual([400, `${graphql}; charset=utf-8`]);
    expect((await ask('text/plain', '{ feeds { name } }'))[0]).toBe(406);
  });
});
