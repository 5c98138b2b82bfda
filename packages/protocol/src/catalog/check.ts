import { isJsonObject, type JsonObject } from "../json.js";

export interface Finding {
  readonly level: "error" | "warning";
  /** Where: `services[0].plans[2].id`. Empty: the whole. */
  readonly path: string;
  readonly message: string;
}

/** Collects what is wrong with a value; each method answers the value if it has the wanted shape. */
export class Check {
  readonly findings: Finding[] = [];

  error(path: string, message: string): void {
    this.findings.push({ level: "error", path, message });
  }

  warning(path: string, message: string): void {
    this.findings.push({ level: "warning", path, message });
  }

  object(path: string, value: unknown): JsonObject | undefined {
    if (isJsonObject(value)) return value;
    this.error(path, value === undefined ? "is missing" : "must be an object");
    return undefined;
  }

  objects(
    path: string,
    value: unknown,
    { required = false, notEmpty = false } = {},
  ): readonly (readonly [path: string, item: JsonObject])[] {
    if (value === undefined && !required) return [];
    if (!Array.isArray(value)) {
      this.error(path, value === undefined ? "is missing" : "must be a list");
      return [];
    }
    if (notEmpty && value.length === 0) this.error(path, "must not be empty");
    return value.flatMap((item: unknown, index) => {
      const at = `${path}[${index}]`;
      const object = this.object(at, item);
      return object === undefined ? [] : [[at, object] as const];
    });
  }

  text(path: string, value: unknown, { required = false } = {}): string | undefined {
    if (value === undefined && !required) return undefined;
    if (typeof value === "string" && (value !== "" || !required)) return value;
    this.error(path, value === undefined ? "is missing" : value === "" ? "must not be empty" : "must be a text");
    return undefined;
  }

  strings(path: string, value: unknown): readonly (readonly [path: string, text: string])[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.error(path, "must be a list of texts");
      return [];
    }
    return value.flatMap((item: unknown, index) => {
      if (typeof item === "string") return [[`${path}[${index}]`, item] as const];
      this.error(`${path}[${index}]`, "must be a text");
      return [];
    });
  }

  boolean(path: string, value: unknown, { required = false } = {}): void {
    if (typeof value === "boolean" || (value === undefined && !required)) return;
    this.error(path, value === undefined ? "is missing" : "must be true or false");
  }

  /** The first one to say a text keeps it; the next one is told where. */
  unique(seen: Map<string, string>, path: string, value: unknown, what: string): void {
    if (typeof value !== "string" || value === "") return;
    const first = seen.get(value);
    if (first === undefined) seen.set(value, path);
    else this.error(path, `the ${what} ${JSON.stringify(value)} is used by ${first} already`);
  }
}
