import WebSocket from 'ws';
import { b } from '../support/pipeline';
import { until } from '../support/wait';
import { expectStillServing, overSocket, startBoth, UUID } from './api-fixture';

describe('limits', () => {
  const deep = (levels: number) =>
    `{ decision(feed: "cad-north", position: 0) ${'{ original '.repeat(levels)} { id } ${'}'.repeat(levels)} }`;
  const aliases = (count: number, first: number) =>
    `{ ${Array.from({ length: count }, (_, n) => `a${n}: decisions(first: ${first}) { nodes { id } }`).join(' ')} }`;

  it('C102: refuses thousands of aliases, and fewer that cost as much, before any query', async () => {
    const { app } = await startBoth();
    app.statements();
    for (const query of [aliases(3000, 100), aliases(100, 100), aliases(60, 200)]) {
      const answer = await app.post(query);
      expect(answer.status).toBe(400);
      expect(answer.errors?.map((error) => error.extensions.code)).toEqual(['QUERY_TOO_COMPLEX']);
      expect(answer.data).toBeUndefined();
    }
    // The size may come from a variable or its default.
    const byVariable = (declared: string) =>
      `query ($n: Int${declared}) { ${aliases(60, 7).slice(1, -1).replaceAll('first: 7', 'first: $n')} }`;
    expect(await app.codes(byVariable(''), { n: 200 })).toEqual(['QUERY_TOO_COMPLEX']);
    expect(await app.codes(byVariable(' = 200'))).toEqual(['QUERY_TOO_COMPLEX']);
    expect(await app.codes(byVariable(' = 200'), { n: -1 })).toEqual(['QUERY_TOO_COMPLEX']);
    expect(app.statements()).toBe(0);
    expect((await app.post(byVariable(''), { n: 1 })).errors).toBeUndefined();
    await expectStillServing(app);
  });

  it('C104: refuses depth, cycles of fragments, floods of directives and long documents before any query', async () => {
    const { app } = await startBoth();
    const doubling = Array.from(
      { length: 60 },
      (_, n) => `fragment F${n} on Decision { ...F${n + 1} ...F${n + 1} }`,
    ).join(' ');
    const attacks: [string, number, string][] = [
      [deep(20), 400, 'QUERY_TOO_COMPLEX'],
      [
        `{ decision(feed: "x", position: 0) { ...A } } ${Array.from({ length: 20 }, (_, n) => `fragment ${n === 0 ? 'A' : `A${n}`} on Decision { original { ...A${n + 1} } }`).join(' ')} fragment A20 on Decision { id }`,
        400,
        'QUERY_TOO_COMPLEX',
      ],
      [
        `{ decision(feed: "x", position: 0) { ...F0 } } ${doubling} fragment F60 on Decision { id }`,
        400,
        'QUERY_TOO_COMPLEX',
      ],
      [
        '{ incident(id: "x") { ...A } } fragment A on Incident { ...B } fragment B on Incident { ...A }',
        200,
        'GRAPHQL_VALIDATION_FAILED',
      ],
      [`{ feeds { name ${'@a'.repeat(100_000)} } }`, 400, 'QUERY_TOO_COMPLEX'],
      [`{ feeds { ${'name '.repeat(1990)} } }`, 200, 'GRAPHQL_VALIDATION_FAILED'],
      ['{'.repeat(1999), 200, 'GRAPHQL_PARSE_FAILED'],
      [`{ feeds { name } } # ${'x'.repeat(5_000_000)}`, 413, 'BAD_REQUEST'],
      [`{ feed(name: ${'['.repeat(1500)}${']'.repeat(400)}) { name } }`, 200, 'GRAPHQL_PARSE_FAILED'],
    ];
    for (const [query, status, code] of attacks) {
      app.statements();
      const { status: got, errors } = await app.post(query);
      expect([query.slice(0, 60), got, errors?.[0]?.extensions.code]).toEqual([query.slice(0, 60), status, code]);
      expect(app.statements()).toBe(0);
    }
    // Many of them at once, and a normal request in their midst: without the limits any one would take for ever.
    const flood = attacks.flatMap(([query]) => [app.post(query), app.post(query)]);
    await expectStillServing(app);
    for (const { errors } of await Promise.all(flood)) expect(errors).toHaveLength(1);
    expect((await app.post(`{ feeds { ${'name '.repeat(500)} } }`)).errors).toBeUndefined();
  });

  it('answers normal requests up to the limits', async () => {
    const { path, app } = await startBoth();
    await path.deliver(b(1), b(1));
    const fields =
      'id outcome tier reason key agency sourceId sequence incidentId recordedAt topic payload feed { name }';
    const { decisions } = await app.data(
      `{ decisions(last: 200) { nodes { ${fields} original { ${fields} } } pageInfo { startCursor } } }`,
    );
    expect(decisions.nodes).toHaveLength(2);
    expect(decisions.nodes[1].original.outcome).toBe('APPLIED');
    expect((await app.post(deep(9))).errors).toBeUndefined();
  });

  it('bounds the payload bytes of one answer', async () => {
    const { path, app } = await startBoth(undefined, { limits: { maxPayloadBytes: 10_000 } });
    await path.deliver(...[1, 2, 3].map((n) => b(n, { text: 'x'.repeat(4000) })));
    const answer = await app.post('{ decisions { nodes { position payloadText } } }');
    expect(answer.errors?.map((error) => [error.extensions.code, error.path])).toEqual([
      ['RESPONSE_TOO_LARGE', ['decisions', 'nodes', 2, 'payloadText']],
    ]);
    expect(answer.data?.decisions.nodes[1].payloadText).toHaveLength(b(2, { text: 'x'.repeat(4000) }).length);
    expect((await app.post('{ decisions(first: 2) { nodes { payloadText } } }')).errors).toBeUndefined();
  });

  it('holds over WebSocket too, together with limits of its own', async () => {
    const { app } = await startBoth(undefined, { limits: { maxOperationsPerSocket: 3, initTimeoutMs: 200 } });
    const refused: [object, string][] = [
      [{ query: deep(20) }, 'QUERY_TOO_COMPLEX'],
      [{ query: aliases(60, 200) }, 'QUERY_TOO_COMPLEX'],
      [{ query: `{ feeds { name ${'@a'.repeat(3000)} } }` }, 'QUERY_TOO_COMPLEX'],
      [{ query: '{ feeds { nam } }' }, 'GRAPHQL_VALIDATION_FAILED'],
      [{ query: '{ __schema { types { name } } }' }, 'GRAPHQL_VALIDATION_FAILED'],
      [{ query: '{ feeds {' }, 'GRAPHQL_PARSE_FAILED'],
      [{ query: '{ feeds { name } }', operationName: 'nope' }, 'BAD_USER_INPUT'],
    ];
    for (const [payload, code] of refused) {
      const answer = await overSocket(app, payload);
      expect(answer.type).toBe('error');
      expect(answer.payload[0]).toMatchObject({
        extensions: { code, correlationId: expect.stringMatching(UUID) as string },
      });
      expect(JSON.stringify(answer.payload)).not.toContain('Did you mean');
    }
    expect(await overSocket(app, { query: '{ feeds { name } }' })).toMatchObject({
      type: 'next',
      payload: { data: { feeds: [{}] } },
    });

    const socket = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    const codes: unknown[] = [];
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as { type: string; payload: { extensions: { code: string } }[] };
      if (message.type === 'error') codes.push(message.payload[0]?.extensions.code);
    });
    await new Promise((resolve) => socket.once('open', resolve));
    const acknowledged = new Promise((resolve) => socket.once('message', resolve));
    socket.send(JSON.stringify({ type: 'connection_init' }));
    await acknowledged;
    const payload = { query: 'subscription { decisions { position } }' };
    for (let id = 0; id < 5; id++) socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload }));
    await until(() => codes.length === 2, { what: 'two refusals' });
    expect(codes).toEqual(['TOO_MANY_OPERATIONS', 'TOO_MANY_OPERATIONS']);
    await until(() => app.api.stats().subscriptions === 3, { what: 'the three that may run' });
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    socket.send(JSON.stringify({ type: 'connection_init' }));
    expect(await closed).toBe(4429);

    const idle = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    expect(await new Promise<number>((resolve) => idle.once('close', resolve))).toBe(4408);
    const large = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-transport-ws');
    await new Promise((resolve) => large.once('open', resolve));
    large.send('x'.repeat(300_000));
    expect(await new Promise<number>((resolve) => large.once('close', resolve))).toBe(1009);
    const foreignProtocol = new WebSocket(app.api.url.replace('http', 'ws'), 'graphql-ws');
    expect(await new Promise((resolve) => foreignProtocol.once('error', (error) => resolve(error.message)))).toContain(
      'subprotocol',
    );
  });
});
