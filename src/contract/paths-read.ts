/** Which parts of a message a contract reads: what `digest.ignore` may not touch (design section 4). Pure. */
import { valueSource } from './effects-plan';
import { parseTemplate } from './template';
import type { FeedContract, ValueSource } from './types';

export interface PathRead {
  /** RFC 6901, into the message. */
  readonly pointer: string;
  /** `occurredAt` decides nothing: ignoring what it reads hides no difference that matters. */
  readonly by: 'identity' | 'incident' | 'occurredAt' | 'effects' | 'forward';
}

/**
 * The pointers into the message that a contract reads, in the order of the contract, repeated where they are read
 * repeatedly. Where a delivery is the message, `envelope` pointers are among them.
 */
export function pathsRead(contract: FeedContract): readonly PathRead[] {
  const { identity, effects } = contract;
  const paths: PathRead[] = [];
  const add = (by: PathRead['by'], pointers: readonly string[]): void => {
    paths.push(...pointers.map((pointer) => ({ pointer, by })));
  };
  const ofSource = (source: ValueSource | null): string[] =>
    (source ?? []).flatMap((origin) => {
      if ('pointer' in origin) return [origin.pointer];
      return 'envelope' in origin && contract.items === null ? [origin.envelope] : [];
    });

  const identitySources =
    identity.mode === 'eventId'
      ? [identity.agency, identity.source, ...identity.eventId]
      : [identity.agency, identity.source, identity.epoch?.value ?? [], identity.sequence];
  add('identity', identitySources.flatMap(ofSource));
  add('incident', ofSource(contract.incident));
  add('occurredAt', ofSource(contract.occurredAt));
  for (const rule of effects === 'off' ? [] : effects) {
    add(
      'effects',
      rule.when.map(({ pointer }) => pointer),
    );
    add('effects', ofTemplate(rule.field));
    add('effects', ofSource(valueSource(rule)));
  }
  if (contract.forward !== null) add('forward', ofTemplate(contract.forward.topic));
  return paths;
}

function ofTemplate(text: string): string[] {
  const parse = parseTemplate(text);
  if (!parse.ok) return [];
  return parse.parts.flatMap((part) => (part.kind === 'pointer' ? [part.pointer] : []));
}
