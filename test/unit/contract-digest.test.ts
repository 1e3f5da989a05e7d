import { createHash } from 'node:crypto';
import type { FeedContract } from '../../src/contract/types';
import { decodeKeyed, epochContract, feedContract } from '../support/decode-feed';

const feed = feedContract();
const B = (seq: number): string => `{"agency":"NFD","src":"e1","seq":${seq},"incident":"I-77","status":"ENROUTE"}`;
const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

describe('the digest', () => {
  const digest = (contract: FeedContract, payload: string, overrides: Parameters<typeof decodeKeyed>[2] = {}): string =>
    decodeKeyed(contract, payload, overrides).payloadDigest;

  test('is of the canonical message: spelling does not count, values do', () => {
    const spelled = '{ "status":"\\u0045NROUTE","incident":"I-77", "seq":1.0,"src":"e1","agency":"NFD"}';
    expect(digest(feed, spelled)).toBe(digest(feed, B(1)));
    const number = (text: string): string => digest(feed, `{"agency":"N","src":"e","seq":1,"n":${text}}`);
    expect(number('9007199254740993')).not.toBe(number('9007199254740992'));
    expect(number('1e400')).not.toBe(number('2e400'));
    expect(number('1e400')).toBe(number('10e399'));
    expect(number('"1"')).not.toBe(number('1'));
  });

  test('leaves out what the contract ignores, and nothing else', () => {
    const contract = feedContract({ digest: { ignore: ['/resend', '/meta/hop'] } });
    const payload = (resend: string, hop: string, other: string): string =>
      `{"agency":"N","src":"e","seq":1,"resend":${resend},"meta":{"hop":${hop},"other":${other}}}`;
    expect(digest(contract, payload('1', '"a"', '1'))).toBe(digest(contract, payload('2', '{"b":[]}', '1')));
    expect(digest(contract, payload('1', '"a"', '1'))).not.toBe(digest(contract, payload('1', '"a"', '2')));
    expect(digest(contract, '{"agency":"N","src":"e","seq":1,"meta":{"other":1}}')).toBe(
      digest(contract, payload('1', '"a"', '1')),
    );
  });

  test('off trusts the key alone, and still says what came', () => {
    const message = decodeKeyed(feedContract({ digest: 'off' }), B(1));
    expect(message.claimDigest).toBe('');
    expect(message.payloadDigest).toBe(decodeKeyed(feed, B(1)).payloadDigest);
  });

  test('covers what identity, incident and effects read outside the message', () => {
    const { identity } = feedContract();
    const contract = feedContract({
      identity: { ...identity, source: [{ topicLevel: 2 }] },
      incident: [{ userProperty: 'incident' }],
      effects: [{ do: 'set', when: [], field: '{topic[1]}', to: [{ const: 'x' }] }],
      forward: { topic: 'cop/{topic}' },
    });
    const message = '{"agency":"NFD","seq":1}';
    const overrides = { userProperties: { incident: 'I-1', trace: '9' } };
    expect(digest(contract, message, overrides)).toBe(
      sha256(
        `${message}\n{"topic":"cad/north/e1/incident","topicLevel:1":"north","topicLevel:2":"e1","userProperty:incident":"I-1"}`,
      ),
    );
    expect(digest(contract, message, { userProperties: { incident: 'I-2' } })).not.toBe(
      digest(contract, message, overrides),
    );
  });

  test('covers only what was read: an alternative that was not needed does not count', () => {
    const { identity } = feedContract();
    const contract = feedContract({
      identity: { ...identity, source: [{ pointer: '/src' }, { userProperty: 'src' }] },
    });
    expect(digest(contract, B(1), { userProperties: { src: 'x' } })).toBe(digest(contract, B(1)));
    const bare = '{"agency":"NFD","seq":1}';
    expect(digest(contract, bare, { userProperties: { src: 'x' } })).toBe(sha256(`${bare}\n{"userProperty:src":"x"}`));
  });

  test('covers the envelope that was read', () => {
    const contract: FeedContract = { ...feedContract({ items: '/events' }), incident: [{ envelope: '/incident' }] };
    const payload = (incident: string): string =>
      `{"incident":"${incident}","events":[{"agency":"N","src":"e","seq":1}]}`;
    expect(digest(contract, payload('I-1'))).toBe(
      sha256('{"agency":"N","seq":1,"src":"e"}\n{"envelope:/incident":"I-1"}'),
    );
    expect(digest(contract, payload('I-1'))).not.toBe(digest(contract, payload('I-2')));
  });

  test('what occurredAt reads outside decides nothing', () => {
    const contract = feedContract({ occurredAt: [{ userProperty: 'sent' }] });
    expect(digest(contract, B(1), { userProperties: { sent: '2024-08-29T06:10:00Z' } })).toBe(digest(feed, B(1)));
  });

  test('takes a sequence, and a numeric epoch, for the number that it is', () => {
    const written = (seq: string, boot: string): string =>
      `{"agency":"N","src":"e","boot":${boot},"seq":${seq},"n":"7"}`;
    const numeric = epochContract('numeric');
    expect(digest(numeric, written('"0007"', '"02"'))).toBe(
      sha256('{"agency":"N","boot":2,"n":"7","seq":7,"src":"e"}'),
    );
    expect(digest(numeric, written('7', '2'))).toBe(digest(numeric, written('"0007"', '"02"')));
    // An opaque epoch is a text, and other members of the same value keep their form.
    const opaque = epochContract('opaque');
    expect(digest(opaque, written('7', '2'))).not.toBe(digest(opaque, written('7', '"2"')));
    const big = '9'.repeat(38);
    expect(digest(numeric, written(`"${big}"`, '2'))).toBe(digest(numeric, written(big, '2')));
  });

  test('takes it wherever it is read', () => {
    const { identity } = feedContract();
    if (identity.mode !== 'sequence') throw new Error('the feed of the cases has sequences');
    const property = feedContract({ identity: { ...identity, sequence: [{ userProperty: 'seq' }] } });
    const message = '{"agency":"N","src":"e"}';
    const of = (seq: string): string => digest(property, message, { userProperties: { seq } });
    expect(of('0007')).toBe(of('7'));
    expect(of('8')).not.toBe(of('7'));
    const nested = feedContract({ identity: { ...identity, sequence: [{ pointer: '/head/1/seq' }] } });
    const inside = (seq: string): string =>
      digest(nested, `{"agency":"N","src":"e","head":[0,{"seq":${seq},"x":"1"}]}`);
    expect(inside('"07"')).toBe(inside('7'));
  });
});
