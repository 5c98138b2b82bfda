/**
 * A text from outside as it may be shown on a terminal: one line, without escape sequences, control characters or marks that turn the
 * direction of writing, and not endless. A broker must not be able to clear the screen, set its title or fake a prompt.
 */
export function plainText(text: string, longest = 2_000): string {
  const line = text
    .slice(0, longest * 4)
    .replaceAll(escapeSequence, "")
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .replaceAll(directionMark, "")
    .trim();
  return line.length <= longest ? line : `${line.slice(0, longest - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** JSON with every character that a terminal might obey written as an escape: the same value, and harmless to look at. */
export function plainJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** How many columns a text takes on a terminal, near enough to cut a line. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += /\p{M}|\u200d/u.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return columns;
}

/** Cut to so many columns. */
export function fitting(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  let cut = "";
  let used = 0;
  for (const character of text) {
    used += columnsOf(character);
    if (used > columns - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

// Operating system commands and the like up to their end, control sequences, and every other escape with its one character.
const escapeSequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
  /(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g;
const directionMark = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;
