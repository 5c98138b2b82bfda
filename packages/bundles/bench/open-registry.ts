import { type BundleSource, openBundleSource, parseSources } from "@osbert/bundles";

/** A source of all that a registry has. */
export async function openRegistry(url: string): Promise<BundleSource> {
  const parsed = parseSources({ sources: [{ name: "hub", type: "distribution", url, default: "allow" }] });
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.faults));
  const [config] = parsed.sources;
  if (config === undefined) throw new Error("no source");
  return openBundleSource(config, {
    readFile: async () => "",
    environment: () => undefined,
    folder: ".",
    pushed: { list: async () => [], read: async () => null, fetch: async () => undefined },
  });
}
