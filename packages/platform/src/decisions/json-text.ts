import { PlatformError } from "../errors.js";
import { shortened } from "./revision.js";

/**
 * JSON as it was written. `JSON.parse` would make another number of one beyond 2^53, so what is compared, merged and sent are pieces of the
 * text itself. Names are in a Map: `__proto__` is a name like any other.
 */
export type JsonNode =
  | { readonly kind: "object"; readonly text: string; readonly members: ReadonlyMap<string, JsonNode> }
  | { readonly kind: "array"; readonly text: string; readonly items: readonly JsonNode[] }
  | { readonly kind: "scalar"; readonly text: string };

export interface JsonBounds {
  /** Characters of the text. */
  readonly length: number;
  readonly depth: number;
  /** Objects, arrays and scalars together. */
  readonly nodes: number;
}

export const jsonBounds: JsonBounds = { length: 262_144, depth: 100, nodes: 20_000 };

/** What is merged may be longer than one text of a user, and was bounded when it came in. No text has more values than characters. */
export const mergedBounds: JsonBounds = { length: 1_048_576, depth: 100, nodes: 1_048_576 };

/** What is wrong with a text, for whoever wrote it. */
export class JsonTextError extends PlatformError {
  constructor(message: string) {
    super("invalid", message);
  }
}

export function parseJsonText(text: string, bounds: JsonBounds = jsonBounds): JsonNode {
  if (text.length > bounds.length) throw new JsonTextError(`it has more than ${bounds.length} characters`);
  try {
    JSON.parse(text);
  } catch {
    // The parser's own message repeats a piece of the text, which may be a secret.
    throw new JsonTextError("it is not JSON");
  }
  return new Scanner(text, bounds).scan();
}

/** Two values are the same if they were written alike but for blanks, the order of members and the escapes in texts. */
export function sameJson(one: JsonNode, other: JsonNode): boolean {
  if (one.kind === "object" && other.kind === "object") {
    if (one.members.size !== other.members.size) return false;
    for (const [name, value] of one.members) {
      const counterpart = other.members.get(name);
      if (counterpart === undefined || !sameJson(value, counterpart)) return false;
    }
    return true;
  }
  if (one.kind === "array" && other.kind === "array")
    return (
      one.items.length === other.items.length &&
      one.items.every((item, index) => sameJson(item, other.items[index] as JsonNode))
    );
  if (one.kind !== "scalar" || other.kind !== "scalar") return false;
  if (one.text === other.text) return true;
  return one.text.startsWith('"') && other.text.startsWith('"') && JSON.parse(one.text) === JSON.parse(other.text);
}

export function objectText(members: Iterable<readonly [name: string, text: string]>): string {
  return `{${Array.from(members, ([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/** Goes through a text that is known to be JSON. */
class Scanner {
  readonly #text: string;
  readonly #bounds: JsonBounds;
  #at = 0;
  #nodes = 0;

  constructor(text: string, bounds: JsonBounds) {
    this.#text = text;
    this.#bounds = bounds;
  }

  scan(): JsonNode {
    return this.#value(1);
  }

  #value(depth: number): JsonNode {
    if (depth > this.#bounds.depth) throw new JsonTextError(`it is nested deeper than ${this.#bounds.depth}`);
    if (++this.#nodes > this.#bounds.nodes) throw new JsonTextError(`it has more than ${this.#bounds.nodes} values`);
    this.#skipBlanks();
    const from = this.#at;
    const first = this.#text[from];
    if (first === "{") {
      const members = this.#members(depth);
      return { kind: "object", text: this.#text.slice(from, this.#at), members };
    }
    if (first === "[") {
      const items = this.#items(depth);
      return { kind: "array", text: this.#text.slice(from, this.#at), items };
    }
    return { kind: "scalar", text: first === '"' ? this.#string() : this.#word() };
  }

  #members(depth: number): ReadonlyMap<string, JsonNode> {
    const members = new Map<string, JsonNode>();
    for (let more = this.#open("}"); more; more = this.#hasMore()) {
      this.#skipBlanks();
      const name = JSON.parse(this.#string()) as string;
      // Readers disagree on which of the two counts: what was checked here must be what the broker reads.
      if (members.has(name))
        throw new JsonTextError(`the name ${JSON.stringify(shortened(name, 100))} comes twice in one object`);
      this.#skipBlanks();
      this.#at++;
      members.set(name, this.#value(depth + 1));
    }
    return members;
  }

  #items(depth: number): readonly JsonNode[] {
    const items: JsonNode[] = [];
    for (let more = this.#open("]"); more; more = this.#hasMore()) items.push(this.#value(depth + 1));
    return items;
  }

  /** Past the bracket; `false`: it was closed at once. */
  #open(close: string): boolean {
    this.#at++;
    this.#skipBlanks();
    if (this.#text[this.#at] !== close) return true;
    this.#at++;
    return false;
  }

  /** Past a comma or the closing bracket. */
  #hasMore(): boolean {
    this.#skipBlanks();
    return this.#text[this.#at++] === ",";
  }

  #string(): string {
    const from = this.#at;
    for (this.#at++; this.#text[this.#at] !== '"'; this.#at++) if (this.#text[this.#at] === "\\") this.#at++;
    this.#at++;
    return this.#text.slice(from, this.#at);
  }

  /** A number, or true, false, null: whatever goes on to the next sign of JSON's own. */
  #word(): string {
    const from = this.#at;
    while (this.#at < this.#text.length && !isEndOfWord(this.#text.charCodeAt(this.#at))) this.#at++;
    return this.#text.slice(from, this.#at);
  }

  #skipBlanks(): void {
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at++;
  }
}

const [space, tab, lineFeed, carriageReturn, comma, closeBracket, closeBrace] = [32, 9, 10, 13, 44, 93, 125];

/** At the end of the text the code is NaN, which is none of them. */
function isBlank(code: number): boolean {
  return code === space || code === lineFeed || code === carriageReturn || code === tab;
}

function isEndOfWord(code: number): boolean {
  return code === comma || code === closeBracket || code === closeBrace || isBlank(code);
}
