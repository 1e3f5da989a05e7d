/**
 * Reads one YAML document of a restricted kind (design section 7): the YAML 1.2 core schema, without anchors, aliases,
 * merge keys, tags, further documents, or keys that repeat. Pure.
 */
import { Composer, isMap, isScalar, isSeq, Lexer, Parser } from 'yaml';
import type { CST, Document, ParsedNode } from 'yaml';
import type { SourceFault, SourceText } from './yaml-source';
import type { YamlEntry, YamlNode } from './yaml-tree';

/**
 * Open collections and documents. A contract needs 8. The composer of the `yaml` package recurses, and hostile nesting
 * ends not only in a full stack: 100 000 `{` ended the process, out of memory, where nothing can be caught.
 */
const MAX_DEPTH = 40;

/** A contract with 200 effects has 10 000 or so; the composer writes an error for nearly each of a hostile file. */
const MAX_LEXEMES = 50_000;

/** A file that is not YAML at all has an error a character. */
const MAX_SYNTAX_FAULTS = 20;

export interface YamlReading {
  /** null: empty, or too broken to look further. */
  readonly root: YamlNode | null;
  readonly faults: readonly SourceFault[];
}

/** Never throws. Faults come in no certain order; with syntax faults there is no root. */
export function readYaml(source: SourceText): YamlReading {
  const stream = readTokens(source.text);
  if (!stream.ok) return { root: null, faults: [stream.fault] };

  const faults: SourceFault[] = [];
  const documents = stream.tokens.filter((token) => token.type === 'document');
  for (const token of stream.tokens) {
    if (token.type === 'directive') faults.push(...directiveFaults(token.offset, token.source));
  }
  const [first, second] = documents;
  if (first === undefined) {
    return { root: null, faults: [...faults, { offset: 0, message: 'the file is empty; a contract is expected' }] };
  }
  if (second !== undefined) {
    faults.push({ offset: second.offset, message: 'a second document starts here; a file has one contract' });
  }
  walkTokens(first, faults);

  const document = compose(stream.tokens, second, source.text.length);
  const syntax = document.errors.filter((error) => error.code !== 'TAG_RESOLVE_FAILED').slice(0, MAX_SYNTAX_FAULTS);
  if (syntax.length > 0) {
    faults.push(...syntax.map((e) => ({ offset: e.pos[0], message: `not valid YAML: ${e.message}` })));
    return { root: null, faults };
  }
  if (document.contents === null || (isScalar(document.contents) && document.contents.source === '')) {
    return { root: null, faults: [...faults, { offset: 0, message: 'the file is empty; a contract is expected' }] };
  }
  return { root: convert(document.contents, source, faults), faults };
}

type TokenStream =
  { readonly ok: true; readonly tokens: readonly CST.Token[] } | { readonly ok: false; readonly fault: SourceFault };

/** The token stream, given up as soon as it is too deep or too long. */
function readTokens(text: string): TokenStream {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const stop = (message: string): TokenStream => ({ ok: false, fault: { offset: parser.offset, message } });
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > MAX_DEPTH) return stop('nested too deeply for a contract');
    if (++lexemes > MAX_LEXEMES) return stop('too much for one contract');
  }
  tokens.push(...parser.end());
  return { ok: true, tokens };
}

function compose(
  tokens: readonly CST.Token[],
  end: CST.Token | undefined,
  length: number,
): Document.Parsed<ParsedNode, true> {
  // Keys are compared here, under NFC and with both places, so the composer need not.
  const composer = new Composer<ParsedNode, true>({
    schema: 'core',
    stringKeys: true,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'silent',
  });
  const upTo = end === undefined ? tokens : tokens.slice(0, tokens.indexOf(end));
  const [document] = composer.compose(upTo, true, length);
  // With `forceDoc` the composer yields one document at least.
  return document as Document.Parsed<ParsedNode, true>;
}

function directiveFaults(offset: number, text: string): SourceFault[] {
  if (/^%YAML[ \t]+1\.2[ \t]*$/.test(text)) return [];
  const message = /^%YAML\b/.test(text)
    ? `contracts are YAML 1.2; remove "${text.trim()}": under YAML 1.1, NO and on would be read as booleans`
    : `the directive "${text.trim().slice(0, 40)}" is not allowed in a contract`;
  return [{ offset, message }];
}

const REFUSED_TOKENS: Readonly<Record<string, string>> = {
  anchor: 'anchors (&…) are not allowed in contracts: write the value out where it is used',
  alias: 'aliases (*…) are not allowed in contracts: write the value out',
  tag: 'tags (!…) are not allowed in contracts: quote a value to make it text',
};

/** Finds anchors, aliases, tags and merge keys. Recursion is bounded by MAX_DEPTH. */
function walkTokens(token: CST.Token | null | undefined, faults: SourceFault[]): void {
  if (!token) return;
  const message = REFUSED_TOKENS[token.type];
  if (message !== undefined) faults.push({ offset: token.offset, message });
  if (token.type === 'document') {
    token.start.forEach((part) => walkTokens(part, faults));
    walkTokens(token.value, faults);
  } else if ('items' in token) {
    for (const item of token.items) {
      item.start.forEach((part) => walkTokens(part, faults));
      if (item.key && 'source' in item.key && item.key.source === '<<') {
        faults.push({ offset: item.key.offset, message: 'merge keys (<<) are not allowed in contracts' });
      }
      walkTokens(item.key, faults);
      item.sep?.forEach((part) => walkTokens(part, faults));
      walkTokens(item.value, faults);
    }
  }
}

function convert(node: ParsedNode | null, source: SourceText, faults: SourceFault[], parentOffset = 0): YamlNode {
  const offset = node?.range[0] ?? parentOffset;
  if (isMap<ParsedNode, ParsedNode | null>(node)) {
    return { kind: 'map', offset, entries: convertEntries(node, source, faults) };
  }
  if (isSeq<ParsedNode>(node)) {
    return { kind: 'seq', offset, items: node.items.map((item) => convert(item, source, faults, offset)) };
  }
  if (node === null) return { kind: 'scalar', offset, value: null, text: '' };
  // Only aliases are left, and they were reported.
  if (!isScalar(node)) return { kind: 'scalar', offset, value: null, text: '', isStandIn: true };
  const value = scalarValue(node.value);
  if (typeof value === 'string') faults.push(...textFaults(value, offset));
  return { kind: 'scalar', offset, value, text: node.source ?? '' };
}

function convertEntries(
  map: { readonly items: ReadonlyArray<{ readonly key: ParsedNode; readonly value: ParsedNode | null }> },
  source: SourceText,
  faults: SourceFault[],
): Map<string, YamlEntry> {
  const entries = new Map<string, YamlEntry>();
  const seen = new Map<string, number>();
  for (const pair of map.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : '';
    const keyOffset = pair.key.range[0];
    const value = convert(pair.value, source, faults, keyOffset);
    const earlier = seen.get(key.normalize('NFC'));
    if (earlier !== undefined) {
      const [first, again] = [source.position(earlier), source.position(keyOffset)];
      const message = `duplicate key "${key}" on line ${again.line}: it is on line ${first.line} already`;
      faults.push({ offset: keyOffset, message });
    } else if (key === '__proto__') {
      // Validators skip this name silently, and no key of a contract is called so.
      faults.push({ offset: keyOffset, message: 'unknown key "__proto__"' });
    } else {
      faults.push(...textFaults(key, keyOffset));
      seen.set(key.normalize('NFC'), keyOffset);
      entries.set(key, { key, keyOffset, value });
    }
  }
  return entries;
}

function scalarValue(value: unknown): string | number | boolean | null {
  // The core schema yields no other kinds once big integers and tags are off.
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

/** Escapes such as "\ud800" and "\0" can write what the bytes of the file cannot. */
function textFaults(value: string, offset: number): SourceFault[] {
  if (value.includes('\0')) return [{ offset, message: 'a text must not contain NUL' }];
  if (/[\ud800-\udfff]/u.test(value)) return [{ offset, message: 'a text must not contain half a surrogate pair' }];
  return [];
}
