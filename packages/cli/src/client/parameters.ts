import { isDeeperThan, isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import { CommandError } from "./exit-status.js";

/** One `-P` or `-p`, in the order of the command line. */
export type ParameterSource =
  | { readonly kind: "document"; readonly text: string }
  | { readonly kind: "pair"; readonly text: string };

const deepest = 100;

/** All of them merged, later ones over earlier ones; `undefined` where there are none. `read` gives the text of `@file` and `@-`. */
export async function readParameters(
  sources: readonly ParameterSource[],
  read: (file: string) => Promise<string>,
): Promise<JsonObject | undefined> {
  let merged: Tree | undefined;
  for (const source of sources) {
    const piece = source.kind === "pair" ? parsePair(source.text) : await parseDocument(source.text, read);
    merged = merge(merged ?? emptyTree(), piece);
  }
  return merged;
}

/** The JSON object of `{"a":1}`, `@file` or `@-`. */
export async function parseDocument(
  text: string,
  read: (file: string) => Promise<string>,
  option = "-P",
): Promise<JsonObject> {
  const isFile = text.startsWith("@");
  const where = isFile ? `${option} ${text}` : option;
  const document = parseJson(isFile ? await read(text.slice(1)) : text, where);
  if (!isJsonObject(document))
    throw new CommandError("usage", `${where}: it must be a JSON object, such as {"size":3}`);
  return document;
}

/** `a.b=text`, or `a.b:=JSON`; a dot that belongs to a name is written `\.`. Texts stay texts: `n=3` is "3". */
export function parsePair(pair: string): JsonObject {
  const equals = pair.indexOf("=");
  const isJson = pair[equals - 1] === ":";
  const name = pair.slice(0, isJson ? equals - 1 : equals);
  const path = name.split(/(?<!\\)\./).map((segment) => segment.replaceAll("\\.", "."));
  if (equals < 0 || path.includes("") || path.length > deepest)
    throw new CommandError(
      "usage",
      `-p ${name || pair}: write name=text, or name:=JSON, with dots between names of nested values`,
    );
  const text = pair.slice(equals + 1);
  const value = isJson ? parseJson(text, `-p ${name}`) : text;
  return path.reduceRight<Json>((inner, segment) => single(segment, inner), value) as Tree;
}

/** The names of those that were given as texts, and look as if they were meant as something else: `n=3` for `n:=3`. */
export function textsLikeJson(sources: readonly ParameterSource[]): string[] {
  return sources.flatMap(({ kind, text }) => {
    const equals = text.indexOf("=");
    if (kind !== "pair" || equals < 1 || text[equals - 1] === ":") return [];
    return isMeantAsJson(text.slice(equals + 1)) ? [text.slice(0, equals)] : [];
  });
}

function isMeantAsJson(text: string): boolean {
  if (!/^(?:-?[0-9]|true$|false$|null$|[[{])/.test(text) || isDeeperThan(text, deepest)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Objects are merged name by name; everything else is replaced. */
function merge(base: JsonObject, over: JsonObject): Tree {
  const merged = emptyTree();
  for (const [name, value] of Object.entries(base)) merged[name] = value;
  for (const [name, value] of Object.entries(over)) {
    const old = merged[name];
    merged[name] = isJsonObject(value) ? merge(isJsonObject(old) ? old : emptyTree(), value) : value;
  }
  return merged;
}

// Trees have no prototype, so `__proto__` is a name like any other and reaches the broker, and nothing else, as it was written.
type Tree = { [name: string]: Json };

function emptyTree(): Tree {
  return Object.create(null) as Tree;
}

function single(name: string, value: Json): Tree {
  const tree = emptyTree();
  tree[name] = value;
  return tree;
}

// What stands in the text may be a secret: an error never repeats it.
function parseJson(text: string, where: string): Json {
  if (isDeeperThan(text, deepest))
    throw new CommandError("usage", `${where}: it is nested more than ${deepest} levels deep`);
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new CommandError("usage", `${where}: it is not JSON${hintOf(text)}`);
  }
}

function hintOf(text: string): string {
  return /^\s*[A-Za-z]/.test(text) ? "; a text needs quotes: '\"text\"'" : "";
}
