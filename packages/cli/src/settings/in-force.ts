import { type Place, placeName, Secret } from "@osbert/server/yaml";
import { formatDurationMs } from "../duration.js";
import type { Contents, Fields, JsonValue, Picture, Shape } from "./shape.js";

/** One value, as it may be shown. */
export interface InForce {
  readonly key: string;
  /** Secrets are masked. */
  readonly value: JsonValue;
  /** `default`, `$OSBERT_STORE`, `osbert.yaml:3:8`. */
  readonly from: string;
  /** The very value, for comparing alone. Secrets are in it. */
  readonly exact: string;
}

/** Every value that is in force, one by one, in the order of the table. What has none is left out. */
export function inForce(
  fields: Fields,
  values: Readonly<Record<string, unknown>>,
  places: ReadonlyMap<string, Place>,
): readonly InForce[] {
  return Object.entries(fields).flatMap(([name, { shape }]) =>
    flat(shape, values[name], name, { kind: "default" }, places),
  );
}

function flat(
  shape: Shape,
  value: unknown,
  key: string,
  outer: Place,
  places: ReadonlyMap<string, Place>,
): readonly InForce[] {
  if (value === undefined) return [];
  const place = places.get(key) ?? outer;
  if (shape.kind === "group") {
    return Object.entries(shape.fields).flatMap(([name, field]) =>
      flat(field.shape, (value as Record<string, unknown>)[name], `${key}.${name}`, place, places),
    );
  }
  if (shape.kind === "map") {
    return [...(value as ReadonlyMap<string, unknown>)].flatMap(([name, item]) =>
      flat(shape.of, item, `${key}.${name}`, place, places),
    );
  }
  if (shape.kind === "list" && !isSimple(shape.of)) {
    return (value as readonly unknown[]).flatMap((item, index) =>
      flat(shape.of, item, `${key}[${index}]`, place, places),
    );
  }
  return [{ key, value: shown(shape, value), from: placeName(place), exact: exactly(value) }];
}

function isSimple(shape: Shape): boolean {
  return shape.kind !== "group" && shape.kind !== "map" && shape.kind !== "list";
}

function shown(shape: Shape, value: unknown): JsonValue {
  if (value instanceof Secret) return value.toString();
  if (shape.kind === "duration") return value === null ? "forever" : formatDurationMs(value as number);
  if (shape.kind === "image" || shape.kind === "contents") return (value as Picture | Contents).path;
  if (shape.kind === "documents") return (value as readonly JsonValue[]).map(nameAndType);
  return value as JsonValue;
}

/** Anything else in it may be a secret. */
function nameAndType(document: JsonValue): JsonValue {
  const { name, type } = (document ?? {}) as Readonly<Record<string, JsonValue>>;
  return { ...(name !== undefined && { name }), ...(type !== undefined && { type }) };
}

function exactly(value: unknown): string {
  return value instanceof Secret ? value.reveal() : JSON.stringify(value);
}
