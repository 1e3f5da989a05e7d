/*
 * An OpenID provider, of the package oidc-provider, in memory. A process of its own, because the package is an ES module and
 * a provider has to die and come back. oidc-provider.ts starts it and says what the variables are.
 */
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { PORT, CLIENT_ID, CLIENT_SECRET, KEYS } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const CONTROL = '/test/keys';

/** What the test asks for with a request for a token, as JSON in a header. */
const wishes = (ctx) => JSON.parse(Buffer.from(ctx.get('x-token'), 'base64').toString('utf8'));

function createProvider(keys) {
  return new Provider(issuer, {
    jwks: { keys },
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // The audience is the resource that was asked for.
        getResourceServerInfo: (ctx) => ({
          scope: 'ledger',
          accessTokenFormat: 'jwt',
          accessTokenTTL: wishes(ctx).seconds,
          jwt: { sign: { alg: wishes(ctx).algorithm } },
        }),
      },
    },
    extraTokenClaims: (ctx) => wishes(ctx).claims,
    formats: {
      customizers: {
        // The subject of client credentials is the client, and the type is that of RFC 9068, unless the test wants others.
        jwt: (ctx, _token, parts) => {
          const { subject, type } = wishes(ctx);
          if (subject !== undefined) parts.payload.sub = subject;
          if (type !== undefined) parts.header = { ...parts.header, typ: type };
        },
      },
    },
  }).callback();
}

let answer = createProvider(JSON.parse(KEYS));

async function textOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

createServer((request, response) => {
  if (request.method !== 'PUT' || request.url !== CONTROL) {
    answer(request, response);
    return;
  }
  textOf(request).then((text) => {
    answer = createProvider(JSON.parse(text));
    response.writeHead(204).end();
  });
}).listen(Number(PORT), '127.0.0.1', () => console.log(`provider ready at ${issuer}`));
