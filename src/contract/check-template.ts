/** What is wrong with the templates of a contract (design section 7), in words for its author. Pure. */
import { parseTemplate, sharedLevel, type Template } from './template';

/** The template of an effect's field; null if nothing is wrong. */
export function fieldFault(text: string): string | null {
  const parse = parseTemplate(text);
  if (!parse.ok) return syntaxFault(parse);
  const shared = sharedLevel(parse.parts);
  return shared === null
    ? null
    : `has two values in one level (character ${shared + 1}), so that two units could share one field: put "/" between them`;
}

/** The template of a forward topic; null if nothing is wrong. Whether someone consumes it is for `checkContracts`. */
export function forwardTopicFault(text: string): string | null {
  const parse = parseTemplate(text);
  if (!parse.ok) return syntaxFault(parse);
  const literal = literalText(parse.parts);
  if (/[+#]/.test(literal)) return 'must not contain a wildcard (+ or #): it is a topic, not a filter (MQTT 4.7.1)';
  return text.startsWith('$') ? 'must not start with $: such topics belong to the broker (MQTT 4.7.2)' : null;
}

function syntaxFault({ error, offset }: { readonly error: string; readonly offset: number }): string {
  return `is no template: at character ${offset + 1}, ${error}`;
}

function literalText(parts: Template): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('');
}
