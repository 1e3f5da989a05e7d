import { compileContract } from '../../src/contract/decode';
import { chunkLength, deliveriesOf } from '../../src/pipeline/chunk';
import { decodeAll } from '../../src/pipeline/prepare';
import { caseContract, delivery, parseContract, TOPIC } from '../support/pipeline';

const { contract, digest } = parseContract(caseContract({ rest: 'items: /events\neffects: []', topics: '["cad/#"]' }));
const active = { contract, digest, decoder: compileContract(contract) };

const batch = (items: number, topic = TOPIC) =>
  delivery(
    `{"events":[${Array.from({ length: items }, (_, seq) => `{"agency":"A","src":"s","seq":${seq}}`).join(',')}]}`,
    { topic },
  );

describe('a chunk', () => {
  it('is all of what is ordinary', () => {
    const received = decodeAll(active, [batch(10), batch(20)]);
    expect(chunkLength(received)).toBe(30);
    expect(deliveriesOf(received.slice(5, 15))).toHaveLength(2);
  });

  it('has 5000 messages at most, also where one delivery has more', () => {
    expect(chunkLength(decodeAll(active, [batch(5000)]))).toBe(5000);
    expect(chunkLength(decodeAll(active, [batch(5001)]))).toBe(5000);
  });

  it('is bounded by what travels, and never empty', () => {
    const long = batch(5000, `cad/${'x'.repeat(65_000)}`);
    expect(chunkLength(decodeAll(active, [long]))).toBeLessThan(300);
    const huge = {
      ...batch(1),
      payload: Buffer.from(`{"events":[{"agency":"A","src":"s","seq":1,"v":"${'x'.repeat(900_000)}"}]}`),
    };
    const many = decodeAll(
      active,
      Array.from({ length: 100 }, () => ({ ...huge })),
    );
    const length = chunkLength(many);
    expect(length).toBeGreaterThan(5);
    expect(length).toBeLessThan(20);
  });
});
