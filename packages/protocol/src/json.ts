/** What travels on the wire. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [name: string]: Json;
}

/** Counts brackets outside of texts, before anything is parsed: what walks a deep value later may recurse. */
export function isDeeperThan(text: string, levels: number): boolean {
  let depth = 0;
  let inText = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (inText) {
      if (code === backslash) index++;
      else if (code === quote) inText = false;
    } else if (code === quote) inText = true;
    else if (code === openBrace || code === openBracket) {
      if (++depth > levels) return true;
    } else if (code === closeBrace || code === closeBracket) depth--;
  }
  return false;
}

const quote = 34;
const backslash = 92;
const openBracket = 91;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;

/**
 * Whether a number in what was parsed is none: `1e999` is parsed as infinity, which is written as null, and whoever reads that later sees
 * what nobody sent. It recurses.
 */
export function hasInfinity(value: unknown): boolean {
  if (typeof value === "number") return !Number.isFinite(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasInfinity);
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One text for all values that are equal as JSON, whatever the order of their fields. It recurses: bound the depth of what comes from outside. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = value as { readonly [name: string]: Json };
  let text = "{";
  for (const name of Object.keys(fields).sort())
    text += `${text === "{" ? "" : ","}${JSON.stringify(name)}:${canonicalJson(fields[name] as Json)}`;
  return `${text}}`;
}
