import type { ValueNode } from "@osbert/server/yaml";
import { inline } from "./inline.js";
import type { Field, Fields } from "./shape.js";

/** What to write instead, on the line of the key itself. */
export function advice(key: string, { example, default: given, shape }: Field): string {
  const shown = example ?? given;
  const name = key.slice(key.lastIndexOf(".") + 1).replace(/\[\d+\]$/, "");
  return shown === undefined ? sayKind(shape.kind, name) : `write e.g. ${name}: ${inline(shown)}`;
}

/** Where there is no example. */
function sayKind(kind: Field["shape"]["kind"], name: string): string {
  return kind === "flag"
    ? `write e.g. ${name}: true`
    : `see ${name} in the reference of settings (osbert config --reference)`;
}

/** What was found instead. Never used where it may be a secret. */
export function not(written: ValueNode): string {
  if (written.kind !== "scalar") return `, not a ${written.kind === "list" ? "list" : "group of settings"}`;
  const text = written.text.length > 40 ? `${written.text.slice(0, 40)}…` : written.text;
  return `, not ${JSON.stringify(text)}`;
}

/** For what is not a group of settings. */
export function mustHave(fields: Fields): string {
  return `must be a group of settings: ${Object.keys(fields).join(", ")}`;
}

/** `a, b or c` */
export function oneOf(values: readonly string[]): string {
  return values.length < 2 ? values.join("") : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}
