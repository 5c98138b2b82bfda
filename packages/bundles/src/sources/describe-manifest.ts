import { bundleMediaTypes } from "./bundle-media-types.js";
import { asObject, parseJsonObject, textsOf } from "./json-object.js";
import { decodeUtf8, labelBundle } from "./label-bundle.js";
import type { Descriptor, Manifest } from "./manifest.js";
import type { Artifact, BundleFormat } from "./source.js";
import { SourceError } from "./source-error.js";
import type { SourceLimits } from "./source-limits.js";

/** What a manifest says of a bundle, before it is known what will run it. */
export type Described =
  | {
      readonly kind: "bundle";
      readonly format: BundleFormat;
      readonly text: string;
      readonly runtime: number | null;
      readonly runs: Artifact["kind"];
    }
  | { readonly kind: "invalid" | "not a bundle"; readonly why: string };

/** Reads what a manifest, which is no index, says of a bundle. `readBlob` gives the bytes that a digest names, and has checked them. */
export async function describeManifest(
  manifest: Manifest,
  { configBytes, specBytes }: Pick<SourceLimits, "configBytes" | "specBytes">,
  place: string,
  readBlob: (blob: Descriptor) => Promise<Buffer>,
): Promise<Described> {
  if (manifest.kind === "index") return { kind: "not a bundle", why: "an index in an index" };
  if (manifest.kind === "other")
    return { kind: "not a bundle", why: `a manifest of type ${shown(manifest.mediaType)}` };
  const { config, artifactType } = manifest;
  if (artifactType === bundleMediaTypes.artifact) {
    if (config.mediaType !== bundleMediaTypes.config)
      return {
        kind: "invalid",
        why: `its config is of type ${shown(config.mediaType)}, not ${bundleMediaTypes.config}`,
      };
    if (config.size > specBytes) return { kind: "invalid", why: `its config is larger than ${specBytes} bytes` };
    const text = decodeUtf8(await readBlob(config));
    if (text === undefined) return { kind: "invalid", why: "its config is not UTF-8" };
    return { kind: "bundle", format: "osbert", text, runtime: null, runs: "files" };
  }
  if (!imageConfigTypes.includes(config.mediaType))
    return { kind: "not a bundle", why: `an artifact of type ${shown(artifactType ?? config.mediaType)}` };
  if (config.size > configBytes) throw new SourceError("too large", place, `a config of ${config.size} bytes`);
  const document = parseJsonObject(await readBlob(config));
  if (document === undefined) throw new SourceError("malformed", place, "the config of an image that is not JSON");
  const labels = new Map([
    ...textsOf(asObject(document.container_config)?.Labels),
    ...textsOf(asObject(document.config)?.Labels),
  ]);
  const labelled = labelBundle(labels, specBytes);
  if (labelled === null) return { kind: "not a bundle", why: "an image without the label of a bundle" };
  return labelled.kind === "bundle" ? { ...labelled, runs: "image" } : labelled;
}

const imageConfigTypes = ["application/vnd.docker.container.image.v1+json", "application/vnd.oci.image.config.v1+json"];

/** A word of a source in a sentence for people: short, and of letters that cannot play tricks on a terminal. */
function shown(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9 ./+_-]/g, "?").slice(0, 100);
}
