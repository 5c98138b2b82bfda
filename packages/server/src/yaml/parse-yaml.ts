import {
  type Document,
  type DocumentOptions,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type ParsedNode,
  type ParseOptions,
  parseAllDocuments,
  parseDocument,
  type SchemaOptions,
  visit,
  type YAMLError,
} from "yaml";
import type { Fault } from "./fault.js";
import type { Place, ValueNode } from "./value-node.js";

/** A file may be anything: what is beyond these is refused, before it costs anything. */
export const largestYamlBytes = 1_048_576;
const mostNodes = 50_000;
/** Signs, texts and blanks. A megabyte of brackets or anchors takes the parser seconds; to count them takes a tenth of that. */
const mostLexemes = 8 * mostNodes;
/** Each costs a walk over the whole document. */
const mostAliases = 100;
export const mostDocuments = 100;

export interface Parsed {
  /** `undefined`: there is nothing in it, or nothing that can be used. */
  readonly written: ValueNode | undefined;
  readonly faults: readonly Fault[];
}

export interface YamlLimits {
  /** Levels of maps and lists in each other. Default 50. */
  readonly deepest?: number;
}

/**
 * Reads YAML 1.2 with the place of everything in it. Custom tags are refused, aliases count as what they stand for. Never throws, and takes
 * time in proportion to the text.
 */
export function parseYaml(text: string, file: string, limits: YamlLimits = {}): Parsed {
  const { documents, faults } = parseWith(text, file, limits, (options) => [parseDocument(text, options)]);
  return { written: documents[0], faults };
}

export interface ParsedDocuments {
  /** Those with something in them. */
  readonly documents: readonly ValueNode[];
  readonly faults: readonly Fault[];
}

/** The same for a file of several documents, within the same bounds for all of them together. */
export function parseYamlDocuments(text: string, file: string): ParsedDocuments {
  // Each costs as much as a whole file, even an empty one.
  if ((text.match(/^(---|\.\.\.)/gm)?.length ?? 0) > mostDocuments) {
    const place = { kind: "file", file, line: 1, column: 1 } as const;
    return { documents: [], faults: [{ place, key: "", message: `has more than ${mostDocuments} documents` }] };
  }
  return parseWith(text, file, {}, (options) => {
    const documents = parseAllDocuments(text, options);
    return Array.isArray(documents) ? documents : [];
  });
}

type Options = ParseOptions & DocumentOptions & SchemaOptions;

function parseWith(
  text: string,
  file: string,
  { deepest = 50 }: YamlLimits,
  parse: (options: Options) => readonly Document.Parsed[],
): ParsedDocuments {
  const start = { kind: "file", file, line: 1, column: 1 } as const;
  if (Buffer.byteLength(text) > largestYamlBytes)
    return { documents: [], faults: [{ place: start, key: "", message: `is larger than ${largestYamlBytes} bytes` }] };
  if (hasMoreLexemes(text, mostLexemes))
    return { documents: [], faults: [{ place: start, key: "", message: `has more than ${mostNodes} values` }] };
  const lines = new LineCounter();
  const place = (offset: number | undefined): Place => {
    const { line, col } = lines.linePos(offset ?? 0);
    return { kind: "file", file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  // Without the parser's own pretty errors: they quote the line, and in it may be a secret.
  // Without its search for keys that are there twice: it compares each with all others, and 50,000 of them take minutes.
  const parsed = parse({ lineCounter: lines, prettyErrors: false, version: "1.2", schema: "core", uniqueKeys: false });
  const told = (mistakes: (document: Document.Parsed) => readonly YAMLError[]) =>
    parsed.flatMap((document) => mistakes(document).map((error) => mistakeOf(document, error)));
  const errors = told((document) => document.errors.slice(0, mostMistakes));
  const mistakes = errors.length > 0 ? errors : told((document) => document.warnings.slice(0, mostMistakes));
  if (mistakes.length > 0) {
    const faults = mistakes
      .slice(0, mostMistakes)
      .map(({ offset, message }) => ({ place: place(offset), key: "", message }));
    return { documents: [], faults };
  }
  try {
    const resolved = new Map<Node, Node | undefined>();
    const counted = { nodes: 0 };
    const documents = parsed.flatMap((document) => {
      const conversion = new Conversion(counted, deepest, place, (node) => {
        if (!isAlias(node)) return node;
        if (!resolved.has(node) && resolved.size < mostAliases) resolved.set(node, node.resolve(document));
        return resolved.get(node);
      });
      return document.contents === null ? [] : [conversion.convert(document.contents, 0)];
    });
    return { documents, faults: [] };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { documents: [], faults: [error.fault] };
  }
}

function hasMoreLexemes(text: string, most: number): boolean {
  let count = 0;
  for (const _ of new Lexer().lex(text)) if (++count > most) return true;
  return false;
}

const mostMistakes = 20;

/**
 * Own words: those of the parser quote what they found, which may be a secret. What is never closed is told where it is opened: the parser
 * stumbles lines later.
 */
function mistakeOf(document: Document.Parsed, { code, message, pos }: YAMLError): Mistake {
  const [, closing] = /^Flow (?:map|sequence) .*end with a ([}\]])$/.exec(message) ?? [];
  if (closing !== undefined) {
    const opened = lastBefore(
      document,
      pos[0],
      (node) => (closing === "}" ? isMap(node) : isSeq(node)) && isFlow(node),
    );
    const sign = closing === "}" ? "{" : "[";
    const told = `this ${sign} is not closed: its ${closing} is missing, or is not indented deeper than the line that opens it`;
    if (opened !== undefined) return { offset: opened, message: told };
  }
  const [, quote] = /^Missing closing (["'])quote$/.exec(message) ?? [];
  if (quote !== undefined) {
    const type = quote === '"' ? "QUOTE_DOUBLE" : "QUOTE_SINGLE";
    const opened = lastBefore(document, pos[0], (node) => isScalar(node) && node.type === type);
    if (opened !== undefined)
      return { offset: opened, message: `this ${quote} is not closed; write another ${quote} where the text ends` };
  }
  return { offset: pos[0], message: sentences[code] ?? unreadable };
}

interface Mistake {
  readonly offset: number;
  readonly message: string;
}

/** Where the innermost of these nodes begins that ends at the offset, or behind it. */
function lastBefore(document: Document.Parsed, offset: number, wanted: (node: Node) => boolean): number | undefined {
  let found: number | undefined;
  visit(document, {
    Node(_key, node) {
      const [start = Number.POSITIVE_INFINITY, end = 0] = node.range ?? [];
      if (start < offset && end >= offset && wanted(node)) found = start;
    },
  });
  return found;
}

function isFlow(node: Node): boolean {
  return (isMap(node) || isSeq(node)) && node.flow === true;
}

class Refused extends Error {
  readonly fault: Fault;

  constructor(place: Place, message: string) {
    super(message);
    this.fault = { place, key: "", message };
  }
}

class Conversion {
  readonly #counted: { nodes: number };
  readonly #deepest: number;
  readonly #place: (offset: number | undefined) => Place;
  readonly #resolve: (node: Node) => Node | undefined;

  constructor(
    counted: { nodes: number },
    deepest: number,
    place: (offset: number | undefined) => Place,
    resolve: (node: Node) => Node | undefined,
  ) {
    this.#counted = counted;
    this.#deepest = deepest;
    this.#place = place;
    this.#resolve = resolve;
  }

  convert(given: Node | ParsedNode, depth: number): ValueNode {
    const place = this.#place(given.range?.[0]);
    this.#counted.nodes += 1;
    if (this.#counted.nodes > mostNodes)
      throw new Refused(place, `has more than ${mostNodes} values, aliases included`);
    if (depth > this.#deepest) throw new Refused(place, `is nested deeper than ${this.#deepest} levels`);
    const node = this.#resolve(given);
    if (node === undefined)
      throw new Refused(place, `refers to an anchor that is not there, or is more than the ${mostAliases}th alias`);
    const tag = (node as { readonly tag?: string }).tag;
    if (tag !== undefined && !coreTags.has(tag)) throw new Refused(place, "has a tag (!…); write the value without it");
    if (isScalar(node)) {
      const { value } = node;
      const text = node.source ?? String(value ?? "");
      if (value === null || ["string", "number", "boolean"].includes(typeof value))
        return { kind: "scalar", value: value as string | number | boolean | null, text, place };
      throw new Refused(place, "must be a text, a number, true or false");
    }
    if (isSeq(node)) {
      const items = node.items.map((item) => this.#child(item, place, depth));
      return { kind: "list", items, place };
    }
    if (isMap(node)) {
      const entries = new Map<string, { readonly place: Place; readonly written: ValueNode }>();
      for (const { key, value } of node.items) {
        const keyPlace = isNode(key) ? this.#place(key.range?.[0]) : place;
        if (!isScalar(key) || key.value === null) throw new Refused(keyPlace, "a key must be a text");
        const name = key.source ?? String(key.value);
        if (entries.has(name)) throw new Refused(keyPlace, "this key is there twice; leave one of them out");
        entries.set(name, { place: keyPlace, written: this.#child(value, keyPlace, depth) });
      }
      return { kind: "map", entries, place };
    }
    throw new Refused(place, unreadable);
  }

  #child(node: unknown, place: Place, depth: number): ValueNode {
    return isNode(node) ? this.convert(node, depth + 1) : { kind: "scalar", value: null, text: "", place };
  }
}

const coreTags: ReadonlySet<string> = new Set(
  ["str", "int", "float", "bool", "null", "map", "seq"].map((name) => `tag:yaml.org,2002:${name}`),
);

const unreadable = "cannot be read as YAML; check the indentation, and put texts with special characters in quotes";

const sentences: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_ALIAS: "refers to an anchor that is not there; write text that begins with * or & in quotes",
  BAD_DQ_ESCAPE: "has a wrong escape in a text in double quotes; write \\\\ for \\, or use single quotes",
  BAD_INDENT: "is not indented as its neighbours are; indent with the same number of spaces",
  BAD_SCALAR_START: "begins with a character that has a meaning in YAML; put the text in quotes",
  BLOCK_AS_IMPLICIT_KEY:
    "is nested on the line of its key; begin a new line after the colon, or put the text in quotes",
  MISSING_CHAR: "misses a character: a closing quote or bracket, or the colon after a key",
  MULTILINE_IMPLICIT_KEY: "is not a key with a colon after it; check the indentation and the colon",
  MULTIPLE_DOCS: "begins a second document (---); leave one",
  TAB_AS_INDENT: "is indented with a tab; use spaces",
  TAG_RESOLVE_FAILED: "has a tag (!…) that is not known; write the value without it",
};
