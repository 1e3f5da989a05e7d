/**
 * MQTT topic filters: MQTT 3.1.1 and 5.0, section 4.7. Pure.
 *
 * The broker matches first; we match again because a broker may deliver what the contract did not ask for (a session
 * that still has an older subscription, a bridge that adds a prefix), and such a message must not be decided on.
 */

/** MQTT strings carry their length in two bytes. */
export const MAX_TOPIC_BYTES = 65_535;

/** What a witness shows where both filters take anything. */
const ANY_LEVEL = 'x';

/**
 * Whether `filter` takes `topic`. The filter is taken to be valid (`validateFilter`).
 *
 * `+` takes exactly one level, an empty one too; `#` takes the level above it and everything below. A filter that starts
 * with a wildcard never takes a topic that starts with `$` (section 4.7.2), else broker statistics would become events.
 */
export function topicMatches(filter: string, topic: string): boolean {
  if (topic.length === 0) return false;
  if (topic.startsWith('$') && (filter.startsWith('+') || filter.startsWith('#'))) return false;

  // Walks both texts level by level: this runs once a delivery, and splitting would allocate two arrays each time.
  let f = 0;
  let t = 0;
  for (;;) {
    if (filter.charAt(f) === '#' && f === filter.length - 1) return true;
    const filterEnd = levelEnd(filter, f);
    const topicEnd = levelEnd(topic, t);
    const wildcard = filterEnd === f + 1 && filter.charAt(f) === '+';
    if (!wildcard && (filterEnd - f !== topicEnd - t || !topic.startsWith(filter.slice(f, filterEnd), t))) return false;

    const filterDone = filterEnd === filter.length;
    const topicDone = topicEnd === topic.length;
    if (topicDone) return filterDone || (filter.length === filterEnd + 2 && filter.endsWith('/#'));
    if (filterDone) return false;
    f = filterEnd + 1;
    t = topicEnd + 1;
  }
}

/** Index just after the level that starts at `start`. */
function levelEnd(text: string, start: number): number {
  const slash = text.indexOf('/', start);
  return slash === -1 ? text.length : slash;
}

/**
 * What is wrong with a filter of a contract, in words for its author; null if nothing is.
 *
 * Every filter that starts with `$` is refused: `$SYS` is the broker talking about itself, and `$share` breaks the
 * order of a source (design sections 7 and 9).
 */
export function validateFilter(filter: string): string | null {
  if (filter === '') return 'a topic filter must not be empty';
  if (filter.includes('\0')) return 'a topic filter must not contain NUL (MQTT 4.7.3)';
  if (/[\ud800-\udfff]/u.test(filter)) return 'a topic filter must be well-formed Unicode (MQTT 1.5.3)';
  if (Buffer.byteLength(filter) > MAX_TOPIC_BYTES)
    return `a topic filter has at most ${MAX_TOPIC_BYTES} bytes in UTF-8`;
  if (filter === '$share' || filter.startsWith('$share/')) return sharedFilterFault(filter);
  if (filter === '$SYS' || filter.startsWith('$SYS/')) {
    return '$SYS topics are statistics of the broker, not a feed: name the topics that the producers publish on';
  }
  if (filter.startsWith('$')) return 'topics that start with $ belong to the broker and cannot be a feed (MQTT 4.7.2)';
  return wildcardFault(filter);
}

/** A `$share` filter is refused either way; a malformed one is told what is wrong with its form as well. */
function sharedFilterFault(filter: string): string {
  const [, group, ...rest] = filter.split('/');
  const plain = rest.join('/');
  const fault = !group
    ? 'its share name is empty'
    : /[+#]/.test(group)
      ? 'its share name contains a wildcard'
      : plain === ''
        ? 'it has no topic filter after the share name'
        : wildcardFault(plain);
  if (fault !== null)
    return `a malformed shared subscription: ${fault} (MQTT 5.0, 4.8.2); shared ones are refused here`;
  return `shared subscriptions are refused, because they deliver out of order: write "${plain}" without $share`;
}

function wildcardFault(filter: string): string | null {
  const levels = filter.split('/');
  for (const [index, level] of levels.entries()) {
    if (level.includes('#') && (level !== '#' || index !== levels.length - 1)) {
      return '# must stand alone in the last level of a topic filter (MQTT 4.7.1.2)';
    }
    if (level.includes('+') && level !== '+') {
      return '+ must stand alone in its level of a topic filter (MQTT 4.7.1.3)';
    }
  }
  return null;
}

/** Whether the filter starts with a wildcard: it takes every domain of the broker, and is worth a warning. */
export function startsWithWildcard(filter: string): boolean {
  return filter.startsWith('+') || filter.startsWith('#');
}

/**
 * A topic that both filters take, or null if there is none. Both are taken to be valid.
 *
 * Two contracts that take the same message would each apply it once, which is twice (design section 7).
 */
export function filtersOverlap(a: string, b: string): string | null {
  const left = a.split('/');
  const right = b.split('/');
  const witness: string[] = [];
  for (let i = 0; ; i++) {
    const l = left[i];
    const r = right[i];
    if (l === undefined && r === undefined) break;
    if (l === '#' || r === '#') {
      // `#` also takes the level above, so the other filter may end here. Only one can: the other ends in `#`.
      const rest = (l === '#' ? right : left).slice(i);
      witness.push(...rest.map((level) => (isWildcard(level) ? ANY_LEVEL : level)));
      break;
    }
    if (l === undefined || r === undefined) return null;
    if (l !== r && l !== '+' && r !== '+') return null;
    witness.push(l !== '+' ? l : r !== '+' ? r : ANY_LEVEL);
  }
  // Left to the matcher alone: a wildcard in front never takes a `$` topic.
  const topic = witness.join('/');
  return topicMatches(a, topic) && topicMatches(b, topic) ? topic : null;
}

function isWildcard(level: string): boolean {
  return level === '+' || level === '#';
}
