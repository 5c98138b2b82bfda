import { type InForce, inForce } from "./in-force.js";
import type { Loaded } from "./load.js";
import type { Field, Fields } from "./shape.js";
import { table } from "./table.js";

/** What another reading of the settings would change, by key. */
export interface Changes {
  /** Applied by a reload. */
  readonly live: readonly string[];
  /** Stay as they are until the next start. */
  readonly needRestart: readonly string[];
}

/** Compares what is in force with what was read anew. */
export function changesBetween(before: Loaded, after: Loaded): Changes {
  const [old, now] = [entriesOf(before), entriesOf(after)];
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter((key) => old.get(key) !== now.get(key));
  return { live: keys.filter(isLive), needRestart: keys.filter((key) => !isLive(key)) };
}

function entriesOf({ settings, places }: Loaded): ReadonlyMap<string, string> {
  return new Map(inForce(table, settings, places).map(({ key, exact }: InForce) => [key, exact]));
}

/** The catalog as a whole, and single settings that say so. */
function isLive(key: string): boolean {
  if (key.startsWith("catalog.")) return true;
  let fields: Fields = table;
  let field: Field | undefined;
  for (const name of key.replaceAll(/\[\d+\]/g, "").split(".")) {
    field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field?.reloads) return true;
    const shape = field?.shape.kind === "list" ? field.shape.of : field?.shape;
    fields = shape?.kind === "group" ? shape.fields : {};
  }
  return false;
}
