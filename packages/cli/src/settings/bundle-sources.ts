import { parseSources, type SettingFault, type SourceConfig } from "@osbert/bundles";
import type { Fault, Place } from "@osbert/server/yaml";
import type { Settings } from "./table.js";

/** Sources of bundles, as the settings have them. */
export interface BundleSources {
  /** `undefined`: the settings do not speak of bundles. To be used only if there are no faults. */
  readonly sources: readonly PlacedSource[] | undefined;
  readonly faults: readonly Fault[];
  /** What works, but not as its writer may think. */
  readonly advice: readonly Fault[];
}

export interface PlacedSource {
  readonly config: SourceConfig;
  /** `bundles.sources[0]` */
  readonly key: string;
  readonly place: Place;
}

/** Checks the blocks `sources` and `registry`, and finds the place of all that is to be said of them. */
export function bundleSources({ bundles }: Settings, places: ReadonlyMap<string, Place>): BundleSources {
  const { sources, registry } = bundles ?? {};
  if (sources === undefined && registry === undefined) return { sources: undefined, faults: [], advice: [] };
  const parsed = parseSources({ sources, registry });
  const placed = ({ path, message }: SettingFault): Fault => {
    const key = `bundles.${path}`;
    return { place: nearest(key, places), key, message };
  };
  if (parsed.kind === "invalid") return { sources: [], faults: parsed.faults.map(placed), advice: [] };
  // Where all are valid, there is one for each item, those of the predecessor's form first.
  const ofRegistry = registry?.length ?? 0;
  const found = parsed.sources.map((config, at) => {
    const key = at < ofRegistry ? `bundles.registry[${at}]` : `bundles.sources[${at - ofRegistry}]`;
    return { config, key, place: nearest(key, places) };
  });
  return { sources: found, faults: [], advice: parsed.advice.map(placed) };
}

/** Of what is written there, or of what it would have to stand in. */
export function nearest(key: string, places: ReadonlyMap<string, Place>): Place {
  for (let at = key; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("."), at.lastIndexOf("[")))) {
    const place = places.get(at);
    if (place !== undefined) return place;
  }
  return { kind: "default" };
}
