import type { CatalogError, Service } from "@osbert/broker";
import type { Fault, Place } from "@osbert/server/yaml";

/** Faults of the catalog, each with the place in the file that is nearest to it; what the file does not speak of is the module's. */
export function catalogFaults(
  { findings }: CatalogError,
  services: readonly Service[],
  places: ReadonlyMap<string, Place>,
  module = "the services",
): readonly Fault[] {
  return findings.map(({ path, message }) => {
    const key = keyOf(path, services);
    const place = nearest(key, places);
    const inFile = () =>
      message.replaceAll(/services\[\d+\](\.plans\[\d+\])?\.\w+/g, (other) => keyOf(other, services));
    if (place !== undefined) return { place, key, message: inFile() };
    return { place: { kind: "default" }, key: `${module}: ${path || "the catalog"}`, message };
  });
}

/** `services[0].plans[1].id` is `catalog.services.database.plans.small.id` in the file. */
function keyOf(path: string, services: readonly Service[]): string {
  const match = /^services\[(\d+)\](?:\.plans\[(\d+)\])?(.*)$/.exec(path);
  const service = services[Number(match?.[1] ?? -1)];
  if (match === null || service === undefined) return "catalog";
  const plan = match[2] === undefined ? undefined : Object.keys(service.plans ?? {})[Number(match[2])];
  const rest = (match[3] ?? "")
    .replace(/^\.metadata\.imageUrl/, ".image")
    .replace(/^\.metadata\.costs/, ".costs")
    .replace(/^\.schemas\.service_instance\.create\.parameters/, ".schemas.provision")
    .replace(/^\.schemas\.service_instance\.update\.parameters/, ".schemas.update")
    .replace(/^\.schemas\.service_binding\.create\.parameters/, ".schemas.bind");
  return `catalog.services.${service.name}${plan === undefined ? "" : `.plans.${plan}`}${rest}`;
}

/** As deep as the file goes, at least to the service: there it can be mended, even where it is the code that is wrong. */
function nearest(key: string, places: ReadonlyMap<string, Place>): Place | undefined {
  for (let at = key; at.split(".").length > 2; at = at.slice(0, at.lastIndexOf("."))) {
    const place = places.get(at);
    if (place?.kind === "file") return place;
  }
  return undefined;
}
