import type { JsonObject } from "@osbert/protocol";

/** A text that is JSON already, inside of a body. */
class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON that goes into a body as it is written: numbers beyond 2^53 stay whole. To its reader it is what the text says. */
export function jsonText<Value = JsonObject>(text: string): Value {
  return new JsonText(text) as Value;
}

/** A body with such texts in it. It recurses: bodies are made by this room, and the texts in them are not looked into. */
export function writeJson(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map((item) => writeJson(item ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member)}`).join(",")}}`;
}
