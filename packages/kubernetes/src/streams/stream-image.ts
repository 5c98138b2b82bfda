import { type Digest, defaultSourceLimits, labelBundle, type ReadBundle } from "@osbert/bundles";
import { isJsonObject } from "@osbert/protocol";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";

/** An image of an image stream, by its digest: `NAME@sha256:…`. */
export const imageStreamImages: ObjectKind = {
  group: "image.openshift.io",
  version: "v1",
  kind: "ImageStreamImage",
  plural: "imagestreamimages",
  namespaced: true,
};

/** What an image of an image stream says of itself. `undefined`: it is another image than the one that was asked for, or none. */
export function readStreamImage({ image }: ClusterObject, digest: Digest): ReadBundle | undefined {
  if (!isJsonObject(image) || !isJsonObject(image.metadata) || image.metadata.name !== digest) return undefined;
  const labelled = labelBundle(labelsOf(image.dockerImageMetadata), defaultSourceLimits.specBytes);
  if (labelled === null) {
    // The cluster keeps the labels of images, and not those of an index: what is in it is not known, and not "no bundle".
    if (Array.isArray(image.dockerImageManifests) && image.dockerImageManifests.length > 0)
      return { kind: "invalid", why: indexProblem };
    return { kind: "not a bundle", why: "an image without the label of a bundle" };
  }
  if (labelled.kind === "invalid") return labelled;
  const name = imageName(image.dockerImageReference, digest);
  if (name === undefined)
    return { kind: "invalid", why: "the image stream does not say where the image can be pulled" };
  // Without a repository: each image of a stream may lie in another registry, and its own name is all that is known of that.
  return { ...labelled, artifact: { kind: "image", image: name, digest } };
}

const indexProblem =
  "it is an index of several platforms, of which an image stream does not tell the labels; import it with importMode: Legacy, or read its registry";

/** As the image was built, and, where that says nothing, as its container was. */
function labelsOf(metadata: unknown): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  if (!isJsonObject(metadata)) return labels;
  for (const config of [metadata.ContainerConfig, metadata.Config]) {
    const of: unknown = isJsonObject(config) ? config.Labels : undefined;
    if (!isJsonObject(of)) continue;
    for (const [name, value] of Object.entries(of)) if (typeof value === "string") labels.set(name, value);
  }
  return labels;
}

/** `HOST/REPOSITORY` of a reference, which may have a tag or a digest; that has to be the image's own. */
function imageName(reference: unknown, digest: Digest): string | undefined {
  if (typeof reference !== "string" || reference.length > longestReference) return undefined;
  const [name = "", own, ...more] = reference.split("@");
  if (more.length > 0 || (own !== undefined && own !== digest)) return undefined;
  return imageForm.exec(name)?.[1];
}

const longestReference = 512;
/** A host has a dot or a port, or is this machine; a name without one is some engine's guess. */
const imageForm =
  /^((?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|[A-Za-z0-9.-]+(?=:[0-9]))(?::[0-9]{1,5})?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+)(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$/;
