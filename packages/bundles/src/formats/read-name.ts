import type { Fields } from "./spec-reader.js";

const longestName = 255;

/** A name of a bundle, a plan or a parameter: two forms of one letter are one name (F5-63). */
export function readName(fields: Fields, field: string, example: string): string | undefined {
  const name = fields.requiredText(field, example)?.normalize("NFC");
  return name === undefined ? undefined : checkName(name, (message) => fields.problem(field, message));
}

export function checkName(name: string, problem: (message: string) => undefined): string | undefined {
  if (name.length > longestName) return problem(`must have at most ${longestName} characters`);
  if (name === "__proto__" || !typed.test(name)) return problem("must have no blanks and no control characters in it");
  return name;
}

/** What is typed at a command line and is part of paths in messages. */
const typed = /^[^\s\p{C}]+$/u;
