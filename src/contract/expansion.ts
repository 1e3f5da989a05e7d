/**
 * How much larger than itself a delivery may become.
 *
 * What stands outside the items (a value of the envelope, a topic level, a user property, the topic itself) counts for
 * every one of them: it is hashed with each, written by the effects of each, and the topic is in each entry. 1 MiB with
 * half of it in such a value and half in items would make gigabytes of text, more than a string can hold (2^29
 * characters), and the batch could never be written. So such a delivery is one malformed message, held with its bytes.
 *
 * In proportion to the size, because a batch is bounded by the sizes of its deliveries: what is planned for a batch is
 * bounded with it. In characters (UTF-16 code units), because that is what the bound of strings is in.
 */
import { deliverySize } from './delivery-size';
import type { Delivery, EffectPlan, PlannedEffect } from './types';

/** Whatever the size: far above what an honest small delivery makes. */
const FREE_CHARACTERS = 1_048_576;
const CHARACTERS_PER_BYTE = 16;
/** Also where `MAX_PAYLOAD_BYTES` is large: with every character escaped it still fits into a string. */
const MAX_CHARACTERS = 134_217_728;

/** Keeps count for one delivery. */
export class Expansion {
  private taken = 0;
  private bound: number | null = null;

  constructor(private readonly delivery: Delivery) {}

  get allowed(): number {
    this.bound ??= Math.min(MAX_CHARACTERS, FREE_CHARACTERS + CHARACTERS_PER_BYTE * deliverySize(this.delivery));
    return this.bound;
  }

  /**
   * One message more. Answers false once it is too much: what comes after need not be read.
   *
   * @param characters canonical text of what it read outside itself, and of what it plans
   */
  add(characters: number): boolean {
    this.taken += this.delivery.topic.length + characters;
    // Few deliveries take more than what is free, and the others need not be weighed.
    return this.taken <= FREE_CHARACTERS || this.taken <= this.allowed;
  }
}

/** Characters that a plan writes. The payload that it forwards is left out: items lie side by side in the delivery. */
export function planCharacters(plan: EffectPlan): number {
  if (!plan.ok) return 0;
  let characters = plan.forward?.topic.length ?? 0;
  for (const effect of plan.effects) characters += effect.field.length + effectText(effect).length;
  return characters;
}

function effectText(effect: PlannedEffect): string {
  switch (effect.do) {
    case 'increment':
      return effect.by;
    case 'append':
      return effect.value;
    case 'set':
    case 'advance':
      return effect.to;
  }
}
