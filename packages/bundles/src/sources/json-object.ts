/** A JSON object of unknown content, or `undefined` for anything else: other JSON, other bytes, other alphabets than UTF-8. */
export function parseJsonObject(bytes: Uint8Array): { readonly [name: string]: unknown } | undefined {
  try {
    return asObject(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): { readonly [name: string]: unknown } | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as { readonly [name: string]: unknown }) : undefined;
}

/** The texts of an object: labels, annotations. What is no text is left away. */
export function textsOf(value: unknown): ReadonlyMap<string, string> {
  const texts = Object.entries(asObject(value) ?? {}).filter((entry): entry is [string, string] => {
    return typeof entry[1] === "string";
  });
  return new Map(texts);
}
