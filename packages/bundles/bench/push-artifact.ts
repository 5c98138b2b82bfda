import { createHash } from "node:crypto";
import { bundleMediaTypes } from "@osbert/bundles";

/** Pushes a bundle without files, by HTTP, as any client does. */
export async function pushArtifact(registry: string, repository: string, yaml: string): Promise<void> {
  const begun = await fetch(`${registry}/v2/${repository}/blobs/uploads/`, { method: "POST" });
  const place = new URL(begun.headers.get("location") ?? "", registry);
  place.searchParams.set("digest", digestOf(yaml));
  await put(place, yaml, "application/octet-stream");
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    artifactType: bundleMediaTypes.artifact,
    config: { mediaType: bundleMediaTypes.config, digest: digestOf(yaml), size: Buffer.byteLength(yaml) },
    layers: [],
  };
  const at = new URL(`${registry}/v2/${repository}/manifests/latest`);
  await put(at, JSON.stringify(manifest), manifest.mediaType);
}

async function put(place: URL, body: string, type: string): Promise<void> {
  const { status } = await fetch(place, { method: "PUT", body, headers: { "content-type": type } });
  if (status !== 201) throw new Error(`PUT ${place.pathname}: ${status}`);
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
