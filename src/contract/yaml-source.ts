/**
 * The bytes of a contract file as text with positions. Pure.
 *
 * What no YAML processor may accept is refused here, before the parser sees it: its lexer uses a few control
 * characters as signals of its own, and text that was decoded leniently could join two identities in U+FFFD.
 */

/** Contracts are written by people; anything bigger is no contract, and is refused unread. */
export const MAX_CONTRACT_BYTES = 256 * 1024;

/** Line and column, both counted from 1; columns in UTF-16 units, as editors count them. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** What is wrong, and where: an offset in UTF-16 units of the source text. */
export interface SourceFault {
  readonly offset: number;
  readonly message: string;
}

export class SourceText {
  private readonly lineStarts: readonly number[];

  constructor(readonly text: string) {
    const starts = [0];
    for (let i = text.indexOf('\n'); i !== -1; i = text.indexOf('\n', i + 1)) starts.push(i + 1);
    this.lineStarts = starts;
  }

  /** `offset` in UTF-16 units; what lies outside the text is taken as its nearest end. */
  position(offset: number): Position {
    const at = Math.max(0, Math.min(offset, this.text.length));
    let low = 0;
    let high = this.lineStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.lineStarts[middle] ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: at - (this.lineStarts[low] ?? 0) + 1 };
  }
}

export type SourceReading =
  | { readonly ok: true; readonly source: SourceText }
  | { readonly ok: false; readonly error: Position & { message: string } };

/** Decodes UTF-8 strictly; a leading byte order mark is dropped. Never throws. */
export function readSource(bytes: Uint8Array): SourceReading {
  const refuse = (message: string, at: Position = { line: 1, column: 1 }): SourceReading => ({
    ok: false,
    error: { ...at, message },
  });
  if (bytes.length > MAX_CONTRACT_BYTES) {
    return refuse(`the file is too big: a contract has at most ${MAX_CONTRACT_BYTES / 1024} KiB`);
  }
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    return refuse('the file is UTF-16; save it as UTF-8');
  }
  const text = decode(bytes);
  if (text === null) return refuse('the file is not valid UTF-8 from here on', firstInvalidByte(bytes));
  const source = new SourceText(text);
  // YAML 1.2, section 5.1: of the controls only tab, line feed, carriage return and next line.
  // eslint-disable-next-line no-control-regex
  const control = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]/.exec(text);
  if (control !== null) {
    const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    return refuse(`the control character U+${code} is not allowed in YAML`, source.position(control.index));
  }
  return { ok: true, source };
}

function decode(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null; // Fatal decoding has no other way to say so.
  }
}

/** Where the longest decodable prefix ends. */
function firstInvalidByte(bytes: Uint8Array): Position {
  let valid = 0;
  let invalid = bytes.length;
  while (valid < invalid) {
    const middle = (valid + invalid + 1) >> 1;
    if (isValidPrefix(bytes.subarray(0, middle))) valid = middle;
    else invalid = middle - 1;
  }
  // `stream` leaves an unfinished sequence at the end out.
  const prefix = new TextDecoder('utf-8').decode(bytes.subarray(0, valid), { stream: true });
  return new SourceText(prefix).position(prefix.length);
}

function isValidPrefix(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
