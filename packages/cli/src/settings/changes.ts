import { bundleSources } from "./bundle-sources.js";
import { type InForce, inForce } from "./in-force.js";
import type { Loaded } from "./load.js";
import type { LoadedSettings } from "./read-settings-file.js";
import type { Field, Fields } from "./shape.js";
import { table } from "./table.js";

/** What another reading of the settings would change, by key. */
export interface Changes {
  /** Applied by a reload. */
  readonly live: readonly string[];
  /** Stay as they are until the next start. */
  readonly needRestart: readonly string[];
}

/** Compares what is in force with what was read anew. Beside bundles and events, what is in force decides, the catalog is not changed while it runs. */
export function changesBetween(before: Loaded, after: Loaded): Changes {
  const [hasBundles, willHaveBundles] = [before, after].map(
    ({ settings, places }) => bundleSources(settings, places).sources !== undefined,
  );
  const isApplied = (key: string) => {
    if (key.startsWith("catalog.") && (hasBundles || before.settings.events.enabled)) return false;
    // Whether there are sources at all decides what the broker is made of.
    if (key.startsWith("bundles.") && !(hasBundles && willHaveBundles)) return false;
    // The catalog as a whole, and single settings that say so.
    return key.startsWith("catalog.") || isLive(table, key);
  };
  return changesIn(table, before, after, isApplied);
}

/** The same for any table of settings. */
export function changesIn<Values extends Readonly<Record<string, unknown>>>(
  fields: Fields,
  before: LoadedSettings<Values>,
  after: LoadedSettings<Values>,
  isApplied = (key: string) => isLive(fields, key),
): Changes {
  const [old, now] = [entriesOf(fields, before), entriesOf(fields, after)];
  const keys = [...new Set([...old.keys(), ...now.keys()])].filter((key) => old.get(key) !== now.get(key));
  return { live: keys.filter(isApplied), needRestart: keys.filter((key) => !isApplied(key)) };
}

function entriesOf(
  fields: Fields,
  { settings, places }: LoadedSettings<Readonly<Record<string, unknown>>>,
): ReadonlyMap<string, string> {
  return new Map(inForce(fields, settings, places).map(({ key, exact }: InForce) => [key, exact]));
}

function isLive(table: Fields, key: string): boolean {
  let fields = table;
  let field: Field | undefined;
  for (const name of key.replaceAll(/\[\d+\]/g, "").split(".")) {
    field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field?.reloads) return true;
    const shape = field?.shape.kind === "list" ? field.shape.of : field?.shape;
    fields = shape?.kind === "group" ? shape.fields : {};
  }
  return false;
}
