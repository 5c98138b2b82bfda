import { isJsonObject, type JsonObject } from "@osbert/protocol";

/** What an answer holds, without believing that it is there: a broker's answer is input like any other. */
export function objectAt(from: JsonObject, name: string): JsonObject {
  const value = from[name];
  return isJsonObject(value) ? value : {};
}

export function listAt(from: JsonObject, name: string): readonly JsonObject[] {
  const value = from[name];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** A text, or a number or truth as one; "" for everything else. */
export function textAt(from: JsonObject, name: string): string {
  const value = from[name];
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** A service or plan by its name, or else its id. */
export function nameAt(from: JsonObject, name: string): string {
  const named = objectAt(from, name);
  return textAt(named, "name") || textAt(named, "id");
}
