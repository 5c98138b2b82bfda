import type { Digest } from "@osbert/bundles";
import { isJsonObject } from "@osbert/protocol";
import type { ClusterObject, ObjectKind } from "../cluster/cluster-object.js";

/** OpenShift's names for images, whose tags are kept in the cluster. */
export const imageStreams: ObjectKind = {
  group: "image.openshift.io",
  version: "v1",
  kind: "ImageStream",
  plural: "imagestreams",
  namespaced: true,
};

/** What a tag of an image stream is. */
export type StreamTag =
  | { readonly kind: "image"; readonly digest: Digest }
  /** It has the tag, and no image for it: one that is still imported, or could not be. */
  | { readonly kind: "not imported"; readonly why: string }
  | { readonly kind: "malformed" }
  | { readonly kind: "none" };

/** The tags that have an image. Whatever the object holds, it answers. */
export function tagsOf(stream: ClusterObject): readonly string[] {
  return statusTags(stream).flatMap(({ tag, items }) =>
    typeof tag === "string" && Array.isArray(items) && items.length > 0 ? [tag] : [],
  );
}

/** Of the images that a tag had, the first one is the newest. */
export function streamTag(stream: ClusterObject, wanted: string): StreamTag {
  const found = statusTags(stream).find(({ tag }) => tag === wanted);
  const [newest] = Array.isArray(found?.items) ? found.items : [];
  if (newest !== undefined) {
    const image: unknown = isJsonObject(newest) ? newest.image : undefined;
    return isDigest(image) ? { kind: "image", digest: image } : { kind: "malformed" };
  }
  const isWanted = listOf(stream.spec, "tags").some(({ name }) => name === wanted);
  if (found === undefined && !isWanted) return { kind: "none" };
  const said = listOf(found, "conditions").find(({ type, status }) => type === "ImportSuccess" && status === "False");
  return { kind: "not imported", why: typeof said?.message === "string" ? shown(said.message) : "not yet" };
}

export function isDigest(value: unknown): value is Digest {
  return typeof value === "string" && /^sha256:[0-9a-f]{64}$/.test(value);
}

function statusTags({ status }: ClusterObject) {
  return listOf(status, "tags");
}

function listOf(value: unknown, field: string) {
  const list: unknown = isJsonObject(value) ? value[field] : undefined;
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

/** Words of a registry in a sentence for people: short, and of letters that cannot play tricks on a terminal. */
function shown(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 200);
}
