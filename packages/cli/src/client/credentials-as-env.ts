import { isJsonObject, type Json, type JsonObject } from "@osbert/protocol";
import { CommandError } from "./exit-status.js";
import { plainText } from "./plain-text.js";
import { shellQuote } from "./shell-quote.js";

/** Credentials with more leaves, or deeper ones, are not meant for an environment. */
const mostVariables = 1_000;
const deepest = 20;

/**
 * `export NAME='…'` for every leaf of the credentials, named for the way to it: `{ db: { userName } }` is `DB_USER_NAME`. Two leaves with
 * one name are an error: one of them would be lost. The prefix keeps a broker from choosing a name such as LD_PRELOAD.
 */
export function credentialsAsEnv(credentials: JsonObject, prefix: string): string {
  const paths = new Map<string, string>();
  const lines = leavesOf(credentials, []).map(({ path, value }) => {
    const name = variableName(prefix, path);
    const way = path.join(".");
    const other = paths.get(name);
    if (other !== undefined)
      throw new CommandError(
        "failed",
        `the credentials ${plainText(other)} and ${plainText(way)} would both be called ${name}; use --format json (osbert fetch shows them again)`,
      );
    paths.set(name, way);
    return `export ${name}=${quoteAlways(value)}\n`;
  });
  return lines.join("");
}

/** `my-db` gives `MY_DB_`. */
export function prefixOf(name: string): string {
  return `${words(name)}_`;
}

function variableName(prefix: string, path: readonly string[]): string {
  const name = prefix + path.map(words).join("_");
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

function words(text: string): string {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase();
}

function quoteAlways(value: string): string {
  const quoted = shellQuote(value);
  return quoted.includes("'") ? quoted : `'${quoted}'`;
}

function leavesOf(value: Json, path: readonly string[]): { path: readonly string[]; value: string }[] {
  if (path.length > deepest) throw tooMuch();
  if (value === null) return [{ path, value: "" }];
  if (typeof value !== "object") return [{ path, value: String(value) }];
  const children: [string, Json][] = isJsonObject(value)
    ? Object.entries(value)
    : (value as readonly Json[]).map((item, index) => [String(index), item]);
  const leaves = children.flatMap(([name, child]) => leavesOf(child, [...path, name]));
  if (leaves.length > mostVariables) throw tooMuch();
  return leaves;
}

function tooMuch(): CommandError {
  return new CommandError(
    "failed",
    `the credentials are too many (more than ${mostVariables}) or too deep for variables; use --format json`,
  );
}
