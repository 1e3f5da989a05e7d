import type { TestProcess } from './process';

/** Where health and metrics of a consumer answer. */
export async function opsUrl(app: TestProcess): Promise<string> {
  const [, url] = await app.waitForLine(/"url":"(http:[^"]+)","msg":"health and metrics are ready"/);
  return url ?? '';
}

/** Series of the product by name and labels, without the prefix. */
export async function scrape(url: string): Promise<Map<string, number>> {
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('replay_ledger_'));
  return new Map(
    lines.map((line) => [line.slice(14, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}
