/** RFC 6901 JSON Pointer over parsed JSON. */
import { isJsonArray, isJsonObject, type JsonValue } from './json-value';

/** The reference tokens of a pointer, unescaped; empty for the whole document. */
export type PointerTokens = readonly string[];

const BAD_ESCAPE = /~(?![01])/;
/** An array index as RFC 6901 section 4 writes it; 15 digits stay exact and lie far beyond any array. */
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,14})$/;

/** Null where the text is no RFC 6901 pointer: it neither is empty nor begins with `/`, or `~` escapes nothing. */
export function parsePointer(pointer: string): PointerTokens | null {
  if (pointer === '') return [];
  if (!pointer.startsWith('/') || BAD_ESCAPE.test(pointer)) return null;
  return pointer.slice(1).split('/').map(unescapeToken);
}

/** The tokens of a pointer that a loaded contract holds. Throws `RangeError` for one that the loader must have refused. */
export function compilePointer(pointer: string): PointerTokens {
  const tokens = parsePointer(pointer);
  if (tokens === null) throw new RangeError(`not an RFC 6901 pointer: ${JSON.stringify(pointer)}`);
  return tokens;
}

/** Writes a text as one token: `~` becomes `~0`, `/` becomes `~1`. */
export function escapeToken(text: string): string {
  return text.includes('~') || text.includes('/') ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text;
}

/**
 * The value that a pointer names, or undefined where there is none. Only members that the object itself has and
 * indices without sign or leading zero resolve; a pointer never leads into a text, nor to the length of an array.
 */
export function getPointer(root: JsonValue, tokens: PointerTokens): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const token of tokens) {
    if (isJsonObject(value)) value = value.get(token);
    else if (isJsonArray(value) && ARRAY_INDEX.test(token)) value = value[Number(token)];
    else return undefined;
  }
  return value;
}

function unescapeToken(token: string): string {
  // `~1` first: `~01` means `~1`, not `/` (RFC 6901 section 4).
  return token.includes('~') ? token.replaceAll('~1', '/').replaceAll('~0', '~') : token;
}
