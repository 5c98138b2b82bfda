/** A fenced block of a page. The words after its language say what tests do with it; readers do not see them. */
export interface Snippet {
  readonly language: string;
  /** `run`, `file=broker.ts`: name and value; a word without a value has an empty one. */
  readonly marks: ReadonlyMap<string, string>;
  /** Of its first line of code. */
  readonly line: number;
  readonly code: string;
}

/** The fenced blocks of a page that name a language, in their order. */
export function snippetsOf(markdown: string): readonly Snippet[] {
  return [...markdown.matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm)].map(
    ([, language = "", marks = "", code = ""], at, all) => ({
      language,
      marks: new Map(
        marks
          .split(" ")
          .filter(Boolean)
          .map((mark) => pairOf(mark)),
      ),
      line: markdown.slice(0, all[at]?.index).split("\n").length + 1,
      code,
    }),
  );
}

function pairOf(mark: string): [name: string, value: string] {
  const [name = "", value = ""] = mark.split("=", 2);
  return [name, value];
}

/**
 * Whether `printed` has the lines that a page shows, in their order. Numbers stand for any number (ports, process ids), an ellipsis for
 * anything; lines that the page leaves out do not matter.
 */
export function shows(printed: string, shown: string): boolean {
  const lines = printed.split("\n");
  let from = 0;
  for (const line of shown.split("\n").filter((text) => text.trim() !== "")) {
    const found = lines.slice(from).findIndex((candidate) => patternOf(line).test(candidate));
    if (found < 0) return false;
    from += found + 1;
  }
  return true;
}

function patternOf(line: string): RegExp {
  const escaped = line.trimEnd().replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll(/\d+/g, String.raw`\d+`).replaceAll("…", ".*")}\\s*$`);
}
