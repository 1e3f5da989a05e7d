import * as fc from 'fast-check';
import { forwardWitness } from '../../src/contract/check-forward';
import { filtersOverlap, topicMatches, validateFilter } from '../../src/contract/topic-filter';

/** Few names, so that filters meet: an empty level and one like the witness of a wildcard are among them. */
const name = fc.constantFrom('a', 'b', '', 'x', '$s');
const topic = fc
  .array(name, { minLength: 1, maxLength: 4 })
  .map((levels) => levels.join('/'))
  .filter((text) => text !== '');
const filter = fc
  .tuple(fc.array(fc.oneof(name, fc.constant('+')), { maxLength: 4 }), fc.boolean())
  .map(([levels, isOpen]) => [...levels, ...(isOpen ? ['#'] : [])].join('/'))
  .filter((text) => text !== '');

/** The rules of MQTT section 4.7, level by level; written apart from the product's walk over the text. */
function takes(filterLevels: readonly string[], topicLevels: readonly string[]): boolean {
  const [f, ...restOfFilter] = filterLevels;
  const [t, ...restOfTopic] = topicLevels;
  if (f === '#') return true;
  if (f === undefined || t === undefined) return f === undefined && t === undefined;
  if (f !== '+' && f !== t) return false;
  return restOfFilter[0] === '#' || takes(restOfFilter, restOfTopic);
}

function expected(filterText: string, topicText: string): boolean {
  const isHidden = topicText.startsWith('$') && /^[+#]/.test(filterText);
  return !isHidden && takes(filterText.split('/'), topicText.split('/'));
}

test('topicMatches agrees with the rules of the standard', () => {
  fc.assert(
    fc.property(filter, topic, (f, t) => {
      expect({ f, t, is: topicMatches(f, t) }).toEqual({ f, t, is: expected(f, t) });
    }),
    { numRuns: 5000 },
  );
});

test('C010 two filters overlap exactly if there is a topic that both take, and the witness is one', () => {
  let overlapping = 0;
  fc.assert(
    fc.property(filter, filter, fc.array(topic, { minLength: 30, maxLength: 30 }), (a, b, topics) => {
      const witness = filtersOverlap(a, b);
      expect(filtersOverlap(b, a) === null).toBe(witness === null);
      if (witness === null) {
        expect(topics.filter((t) => expected(a, t) && expected(b, t))).toEqual([]);
      } else {
        overlapping++;
        expect({ a, b, witness, both: expected(a, witness) && expected(b, witness) }).toMatchObject({ both: true });
      }
    }),
    { numRuns: 3000 },
  );
  expect(overlapping).toBeGreaterThan(100);
});

test('every filter that overlaps nothing is at least one that overlaps itself', () => {
  fc.assert(
    fc.property(filter, (f) => {
      fc.pre(validateFilter(f) === null);
      expect(filtersOverlap(f, f)).not.toBeNull();
    }),
  );
});

describe('forward topics', () => {
  const own = 'in/+/#';
  const part = fc.constantFrom('a', '/', 'b', '{incident}', '{topic[1]}', '{topic}', '{topic[0]}');
  const template = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
  const level = fc.constantFrom('a', 'b', 'ab', 'x');

  /** The topic for one message; the product's own rendering needs a whole message. */
  function render(text: string, message: string, incident: string): string {
    return text
      .replaceAll('{topic}', message)
      .replaceAll('{topic[0]}', message.split('/')[0] ?? '')
      .replaceAll('{topic[1]}', message.split('/')[1] ?? '')
      .replaceAll('{incident}', incident);
  }

  test('a template is said to be consumed exactly if some message makes it so', () => {
    let consumed = 0;
    fc.assert(
      fc.property(
        template,
        filter,
        fc.array(fc.tuple(level, fc.array(level, { maxLength: 2 }), level), { minLength: 30 }),
        (t, f, messages) => {
          fc.pre(validateFilter(f) === null);
          const witness = forwardWitness(t, [own], f);
          if (witness === null) {
            const topics = messages.map(([first, rest, incident]) =>
              render(t, ['in', first, ...rest].join('/'), incident),
            );
            expect(topics.filter((text) => expected(f, text))).toEqual([]);
          } else {
            consumed++;
            expect({ t, f, witness, taken: expected(f, witness) }).toMatchObject({ taken: true });
          }
        },
      ),
      { numRuns: 2000 },
    );
    expect(consumed).toBeGreaterThan(100);
  });
});
