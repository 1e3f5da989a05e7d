/** `tail --token-file` while the token in the file is replaced. */
import { rmSync, writeFileSync } from 'node:fs';
import { FollowError, followDecisions } from '../../src/api/client';
import { tokenOfFile } from '../../src/cli/tail';
import { onCleanup } from '../support/cleanup';
import { b, startPipeline } from '../support/pipeline';
import { until } from '../support/wait';
import { asking, makeTokens, openTokenFile } from './access-fixture';
import { startTestApi } from './api-fixture';

it('goes on with the token that the file holds when the one of before is refused, and ends without another', async () => {
  const path = await startPipeline();
  await path.deliver(b(1));
  const [accepted, own] = [makeTokens(), makeTokens()];
  const [first, second] = [accepted.add({ name: 'first' }), accepted.add({ name: 'second' })];
  const app = await startTestApi({
    database: path.database,
    wakeUps: path.wakeUps,
    tokens: openTokenFile(accepted.path, 20),
  });
  writeFileSync(own.path, `${first}\n`);
  const stop = new AbortController();
  onCleanup(() => stop.abort());
  const troubles: string[] = [];
  const shown: (string | null)[] = [];
  const tail = (async () => {
    const following = followDecisions({
      url: app.api.url,
      token: tokenOfFile(own.path),
      filter: {},
      after: null,
      signal: stop.signal,
      onTrouble: (reason) => troubles.push(reason),
      reconnectMinMs: 10,
      reconnectMaxMs: 50,
    });
    for await (const { decision } of following) shown.push(decision.sequence);
  })();
  const ended = tail.then(
    () => null,
    (error: unknown) => error,
  );
  await until(() => app.api.stats().waiting === 1, { what: 'the subscription' });
  await path.deliver(b(2));
  await until(() => shown.length === 1, { what: 'a decision' });

  writeFileSync(own.path, `${second}\n`);
  accepted.revoke('first');
  await until(() => troubles.length === 1 && app.api.stats().waiting === 1, { what: 'another subscription' });
  await path.deliver(b(3));
  await until(() => shown.length === 2, { what: 'the decision after it' });
  expect([shown, troubles]).toEqual([['2', '3'], ['the connection was closed with 4403: the token was revoked']]);

  // While the file is away, the token is that of before.
  rmSync(own.path);
  accepted.revoke('second');
  await until(async () => (await asking(app, second)('{ feeds { name } }')).status === 401, { what: 'the revocation' });
  expect(await ended).toEqual(new FollowError('the connection was closed with 4403: the token was revoked'));
});

it('begins with no file that is not there', () => {
  const { path } = makeTokens();
  rmSync(path);
  expect(() => tokenOfFile(path)).toThrow('ENOENT');
});
