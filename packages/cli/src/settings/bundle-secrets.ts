import { type OperatorSecret, secretProblem } from "@osbert/bundles";
import { didYouMean, type Fault, type Place } from "@osbert/server/yaml";
import { bundleSources, nearest } from "./bundle-sources.js";
import type { Settings } from "./table.js";

/** What bundles get of the operator, as the settings have it. */
export function bundleSecrets({ bundles }: Settings): readonly OperatorSecret[] {
  return Array.from(bundles?.secrets ?? [], ([name, { sources, services, values }]) => ({
    ...{ name, sources, services, values },
  }));
}

/** What is wrong with them beyond how they are written. A value that cannot be had is a fault long before. */
export function bundleSecretFaults(settings: Settings, places: ReadonlyMap<string, Place>): readonly Fault[] {
  const { sources, faults } = bundleSources(settings, places);
  // Of sources that are wrong nobody knows the names.
  const names = sources === undefined || faults.length > 0 ? null : sources.map(({ config }) => config.name);
  return bundleSecrets(settings).flatMap((secret) => {
    // What is wrong with how it is written has been told.
    if (secret.sources === undefined || secret.services === undefined || secret.values === undefined) return [];
    const problem = secretProblem(secret) ?? (names === null ? null : sourceProblem(secret, names));
    if (problem === null) return [];
    const key = ["bundles.secrets", secret.name, problem.path].filter((part) => part !== "").join(".");
    return [{ place: nearest(key, places), key, message: problem.message }];
  });
}

/** A name that is no source's gives nothing to anybody, and nobody is told. */
function sourceProblem(
  { sources }: OperatorSecret,
  names: readonly string[],
): { path: string; message: string } | null {
  const at = sources.findIndex((name) => !names.includes(name));
  if (at < 0) return null;
  return {
    path: `sources[${at}]`,
    message: `is none of the sources of bundles${didYouMean(sources[at] ?? "", names)}`,
  };
}
