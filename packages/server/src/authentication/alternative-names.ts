/** Kinds of alternative names that can name a caller, as Node prints them. */
const kinds = ["DNS", "URI", "email", "IP Address"] as const;

/** `DNS:platform.example`: `undefined` if it is no alternative name that a credential can go by. */
export function parseAlternativeName(text: string): string | undefined {
  const colon = text.indexOf(":");
  const kind = kinds.find((candidate) => candidate.toLowerCase() === text.slice(0, colon).trim().toLowerCase());
  const value = text.slice(colon + 1).trim();
  return kind === undefined || value === "" ? undefined : normal(kind, value);
}

/**
 * The names in Node's `subjectAltName`. Node puts a name that holds anything unusual (a comma above all, which could pass for the end of
 * one name and the start of another) in JSON's quotes.
 */
export function readAlternativeNames(subjectAltName: string | undefined): readonly string[] {
  if (subjectAltName === undefined) return [];
  const names: string[] = [];
  const pattern = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?=, |$)/y;
  for (let match = pattern.exec(subjectAltName); match !== null; match = pattern.exec(subjectAltName)) {
    const [, kind = "", value = ""] = match;
    names.push(normal(kind, value.startsWith('"') ? (JSON.parse(value) as string) : value));
  }
  return names;
}

/** Names of hosts are the same in any case; others are not. */
function normal(kind: string, value: string): string {
  return `${kind}:${kind === "DNS" ? value.toLowerCase() : value}`;
}
