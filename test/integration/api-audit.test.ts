/** GraphQL over HTTP, as the audits of graphql-http see it. */
import { serverAudits } from 'graphql-http';
import { startPipeline } from '../support/pipeline';
import { startTestApi } from './api-fixture';

it('fails no MUST and no SHOULD in development mode', async () => {
  const { database } = await startPipeline();
  const { api } = await startTestApi({ database, development: true });
  // A GET shows that a script sent it: against forgery by links, and outside what the specification asks for.
  const fetchFn = (url: string, init: RequestInit = {}) =>
    fetch(url, { ...init, headers: { 'apollo-require-preflight': 'true', ...init.headers } });
  const audits = serverAudits({ url: api.url, fetchFn });
  const failed: string[] = [];
  const passed = new Map<string, number>();
  for (const { name, fn } of audits) {
    const result = await fn();
    const [level = ''] = name.split(' ');
    if (result.status === 'ok') passed.set(level, (passed.get(level) ?? 0) + 1);
    else failed.push(`${level} ${result.id}: ${result.name} (${result.reason})`);
  }
  expect(failed.filter((text) => !text.startsWith('MAY'))).toEqual([]);
  expect(passed.get('MUST')).toBeGreaterThan(10);
  expect(passed.get('SHOULD')).toBeGreaterThan(10);
});
