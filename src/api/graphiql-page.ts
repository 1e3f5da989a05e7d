/** The page that GraphiQL runs in. Its addresses are relative, so that it also works behind a proxy with a path. */

export const GRAPHIQL_HTML = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Replay Ledger</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="graphiql/graphiql.min.css">
    <link rel="stylesheet" href="graphiql/page.css">
  </head>
  <body>
    <div id="graphiql">Loading …</div>
    <script src="graphiql/umd/react.production.min.js"></script>
    <script src="graphiql/umd/react-dom.production.min.js"></script>
    <script src="graphiql/graphiql.min.js"></script>
    <script type="module" src="graphiql/page.js"></script>
  </body>
</html>
`;

export const GRAPHIQL_STYLE = `html, body, #graphiql { height: 100%; margin: 0; }
`;

/**
 * Queries by fetch, subscriptions over a socket of their own each. A token is written under Headers, as
 * `{"authorization": "Bearer …"}`; sockets take it along, because a browser cannot give them headers.
 */
export const GRAPHIQL_SCRIPT = `import { createClient } from './graphql-ws/client.js';

const address = new URL('../graphql', import.meta.url);

async function ask(params, headers) {
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
  return response.json();
}

async function* follow(params, headers) {
  const url = address.href.replace(/^http/, 'ws');
  const client = createClient({ url, connectionParams: headers, retryAttempts: 0 });
  try {
    yield* client.iterate(params);
  } catch (error) {
    // A CloseEvent says nothing when it is printed.
    throw error instanceof CloseEvent ? new Error('closed with ' + error.code + ': ' + error.reason) : error;
  } finally {
    await client.dispose();
  }
}

function isSubscription(params, document) {
  const operations = (document?.definitions ?? []).filter(({ kind }) => kind === 'OperationDefinition');
  const meant = operations.find(({ name }) => !params.operationName || name?.value === params.operationName);
  return meant?.operation === 'subscription';
}

function fetcher(params, { headers = {}, documentAST } = {}) {
  return isSubscription(params, documentAST) ? follow(params, headers) : ask(params, headers);
}

const defaultQuery = \`# Ctrl-Enter runs the operation at the cursor.
query Latest {
  decisions(last: 10) {
    nodes { feed { name } position outcome tier reason agency sourceId sequence incidentId }
  }
}

subscription Live {
  decisions { position cursor decision { outcome tier reason sourceId sequence } }
}
\`;

ReactDOM.createRoot(document.getElementById('graphiql')).render(
  React.createElement(GraphiQL, { fetcher, defaultQuery, shouldPersistHeaders: false }),
);
`;
