/** Where a value was written. */
export type Place =
  | { readonly kind: "file"; readonly file: string; readonly line: number; readonly column: number }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "default" };

/** What was written, whether in a file, the environment or the table of settings, and where. */
export type ValueNode = ScalarNode | ListNode | MapNode;

export interface ScalarNode {
  readonly kind: "scalar";
  readonly value: string | number | boolean | null;
  /** As it was typed: `2.10` is not 2.1 to someone who means a version. */
  readonly text: string;
  readonly place: Place;
}

export interface ListNode {
  readonly kind: "list";
  readonly items: readonly ValueNode[];
  readonly place: Place;
}

export interface MapNode {
  readonly kind: "map";
  /** A Map: no name that anyone can write, `__proto__` included, means anything to it. */
  readonly entries: ReadonlyMap<string, { readonly place: Place; readonly written: ValueNode }>;
  readonly place: Place;
}

/** A plain value as if it had been written at this place. */
export function toValueNode(value: unknown, place: Place): ValueNode {
  if (Array.isArray(value)) return { kind: "list", items: value.map((item) => toValueNode(item, place)), place };
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(
      ([name, item]) => [name, { place, written: toValueNode(item, place) }] as const,
    );
    return { kind: "map", entries: new Map(entries), place };
  }
  const scalar = value as string | number | boolean | null;
  return { kind: "scalar", value: scalar, text: scalar === null ? "" : String(scalar), place };
}

/** For people: `osbert.yaml:12:5`, `$OSBERT_STORE`, `default`. */
export function placeName(place: Place): string {
  switch (place.kind) {
    case "file":
      return `${place.file}:${place.line}:${place.column}`;
    case "environment":
      return `$${place.name}`;
    case "default":
      return "default";
  }
}
