import { startPipeline } from '../support/pipeline';
import type { TestPipeline } from '../support/pipeline';
import { makeTokens, openTokenFile } from './access-fixture';
import type { TestApi } from './api-fixture';
import { startTestApi } from './api-fixture';

let path: TestPipeline;

beforeAll(async () => {
  path = await startPipeline();
});

const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const get = (app: TestApi, where: string, accept = HTML, method = 'GET') =>
  fetch(new URL(where, app.api.url), { method, headers: { accept } });

describe('GraphiQL in development mode', () => {
  it('is served whole from here, and may load and reach nothing else', async () => {
    const app = await startTestApi({ database: path.database, development: true });
    const texts = new Map<string, string>();
    for (const page of ['/', '/graphql', '/graphql?operationName=x']) {
      const response = await get(app, page);
      expect([page, response.status, response.headers.get('content-type')]).toEqual([
        page,
        200,
        'text/html; charset=utf-8',
      ]);
      const policy = response.headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).toContain("connect-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
      texts.set(response.url, await response.text());
    }
    // Everything that the page names, and what that names in turn.
    for (const [base, text] of texts) {
      const names = [...text.matchAll(/(?:src|href)="([^"]+)"|^(?:import|export) .* from '([^']+)'/gm)].map(
        ([, a, m]) => a ?? m ?? '',
      );
      for (const name of names.filter((one) => !one.startsWith('data:'))) {
        const url = new URL(name, base);
        expect([name, url.origin]).toEqual([name, new URL(app.api.url).origin]);
        if (texts.has(url.href)) continue;
        const response = await get(app, url.href, '*/*');
        expect([name, response.status]).toEqual([name, 200]);
        expect(response.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/);
        expect(response.headers.get('x-content-type-options')).toBe('nosniff');
        const content = await response.text();
        expect(content.length).toBeGreaterThan(20);
        // Those of the libraries are scripts for a whole page, not modules: nothing in them is loaded.
        if (!name.includes('min.')) texts.set(url.href, content);
      }
    }
    expect([...texts.keys()].map((url) => new URL(url).pathname)).toEqual(
      expect.arrayContaining(['/graphiql/page.js', '/graphiql/graphql-ws/client.js']),
    );
    expect((await get(app, '/graphiql/graphiql.min.css', 'text/css')).status).toBe(200);
    expect(await (await get(app, '/graphql', HTML, 'HEAD')).text()).toBe('');
  });

  it('takes nothing away from clients, and gives no other file away', async () => {
    const app = await startTestApi({ database: path.database, development: true });
    const query = `/graphql?query=${encodeURIComponent('{ feeds { name } }')}`;
    for (const accept of [HTML, 'application/json', '*/*']) {
      const response = await fetch(new URL(query, app.api.url), {
        headers: { accept, 'apollo-require-preflight': '1' },
      });
      expect(await response.json()).toEqual({ data: { feeds: [{ name: 'cad-north' }] } });
    }
    expect((await get(app, '/graphql', 'application/json')).status).toBe(403);
    expect((await get(app, '/', '*/*')).status).toBe(404);
    for (const where of [
      '/graphiql/package.json',
      '/graphiql/../package.json',
      '/graphiql/%2e%2e/package.json',
      '/graphiql/graphql-ws/index.js',
      '/graphiql/',
      '/graphiql/graphiql.min.js.map',
    ]) {
      expect([where, (await get(app, where)).status]).toEqual([where, 404]);
    }
  });

  it('shows the page to who has no token yet, and nothing of the ledger', async () => {
    const tokens = openTokenFile(makeTokens().path);
    const app = await startTestApi({ database: path.database, development: true, tokens });
    expect((await get(app, '/graphql')).status).toBe(200);
    expect((await app.post('{ feeds { name } }')).status).toBe(401);
    expect((await app.post('{ __schema { types { name } } }')).status).toBe(401);
  });
});

it('is not there in production', async () => {
  const app = await startTestApi({ database: path.database, development: false });
  expect((await get(app, '/')).status).toBe(404);
  expect((await get(app, '/graphql')).status).toBe(403);
  expect((await get(app, '/graphiql/graphiql.min.js')).status).toBe(404);
});
