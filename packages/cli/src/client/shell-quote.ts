/** A text as one word of a POSIX shell, whatever stands in it. NUL, which no shell can carry, is left out. */
export function shellQuote(text: string): string {
  const clean = text.replaceAll("\0", "");
  if (/^[A-Za-z0-9_./:@%+,-]+$/.test(clean)) return clean;
  if (!mustBeEscaped.test(clean)) return `'${clean.replaceAll("'", `'\\''`)}'`;
  // What a terminal would obey is written out, which takes a shell that knows $'…': bash, zsh, ksh.
  const escaped = Array.from(clean, (character) => {
    if (character === "\\" || character === "'") return `\\${character}`;
    if (!mustBeEscaped.test(character)) return character;
    return [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  });
  return `$'${escaped.join("")}'`;
}

// Line ends and tabs are harmless, and certificates are full of them.
const mustBeEscaped = /(?![\n\t])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;
