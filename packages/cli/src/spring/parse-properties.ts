import { type MapNode, toValueNode } from "@osbert/server/yaml";

/**
 * Reads a `.properties` file of Java: `key = value` on each line, with `#` and `!` for comments, escapes, and lines that go on after a
 * backslash. Returns its documents, which Spring separates by a comment of three dashes. Every text is one, so nothing is refused.
 */
export function parseProperties(text: string, file: string): readonly MapNode[] {
  const documents: Entries[] = [new Map()];
  // Put together once: a text that grows line by line would be copied as often.
  let parts: string[] = [];
  // With a line after the last one, which may end in a backslash.
  `${text}\n`.split(/\r\n|\n|\r/).forEach((raw, index) => {
    const line = raw.replace(/^[ \t\f]+/, "");
    if (parts.length === 0 && /^[#!]/.test(line)) {
      if (/^[#!]---\s*$/.test(line)) documents.push(new Map());
      return;
    }
    // An even number of them stands for half as many backslashes.
    if (backslashesAtEnd(line) % 2 === 1) {
      parts.push(line.slice(0, -1));
      return;
    }
    const property = split([...parts, line].join(""));
    parts = [];
    if (property === undefined) return;
    const place = { kind: "file", file, line: index + 1, column: 1 } as const;
    documents.at(-1)?.set(property.key, { place, written: toValueNode(property.value, place) });
  });
  const place = { kind: "file", file, line: 1, column: 1 } as const;
  return documents.filter(({ size }) => size > 0).map((entries) => ({ kind: "map", entries, place }));
}

function backslashesAtEnd(line: string): number {
  let count = 0;
  while (count < line.length && line[line.length - 1 - count] === "\\") count += 1;
  return count;
}

type Entries = Map<string, MapNode["entries"] extends ReadonlyMap<string, infer Entry> ? Entry : never>;

/** The key ends at the first `=`, `:` or space that has no backslash before it. */
function split(line: string): { readonly key: string; readonly value: string } | undefined {
  let end = 0;
  while (end < line.length && !/[=: \t\f]/.test(line[end] ?? "")) end += line[end] === "\\" ? 2 : 1;
  if (end === 0) return undefined;
  const value = line.slice(end).replace(/^[ \t\f]*[=:]?[ \t\f]*/, "");
  return { key: unescaped(line.slice(0, end)), value: unescaped(value) };
}

const escapes: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f" };

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([0-9a-fA-F]{4})|([\s\S]))/g, (_, code: string | undefined, other: string = "") =>
    code === undefined ? (escapes[other] ?? other) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
