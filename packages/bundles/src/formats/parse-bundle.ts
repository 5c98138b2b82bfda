import type { ReadBundle } from "../sources/source.js";
import type { ParsedBundle } from "./bundle-spec.js";
import { parseApb } from "./parse-apb.js";
import { parseOsbertYaml } from "./parse-osbert-yaml.js";

/** Of how a bundle is read and judged: to be raised when the same text is read differently, or refused (F5-77). */
export const parserVersion = 3;

/** What a source has read, in either format. Pure, bounded, and never throws. */
export function parseBundle({
  format,
  text,
  runtime,
}: Pick<ReadBundle & { kind: "bundle" }, "format" | "text" | "runtime">): ParsedBundle {
  return format === "apb" ? parseApb(text, runtime) : parseOsbertYaml(text);
}
