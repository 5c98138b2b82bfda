import { asObject, parseJsonObject, textsOf } from "./json-object.js";
import type { Digest } from "./source.js";

/** A manifest or an index, of Docker or OCI: what there is to know of it before anything else is read. */
export type Manifest =
  | {
      readonly kind: "index";
      readonly artifactType: string | null;
      readonly annotations: ReadonlyMap<string, string>;
      readonly manifests: readonly PlatformManifest[];
    }
  | {
      readonly kind: "manifest";
      readonly mediaType: string;
      readonly artifactType: string | null;
      readonly config: Descriptor;
      readonly layers: readonly Descriptor[];
    }
  | { readonly kind: "other"; readonly mediaType: string };

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

export interface PlatformManifest extends Descriptor {
  /** `linux/amd64`. `null`: it is for any, or does not say. */
  readonly platform: string | null;
}

const indexTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];
const ociManifestType = "application/vnd.oci.image.manifest.v1+json";
const manifestTypes = [ociManifestType, "application/vnd.docker.distribution.manifest.v2+json"];

/** All of them in every request: a registry answers 404 for what it has under a type that was not asked for. */
export const manifestAccept = [...indexTypes, ...manifestTypes].join(", ");

/** `undefined`: the bytes are no manifest. The media type in the bytes counts, which the digest covers, and not the one of a header. */
export function parseManifest(bytes: Uint8Array): Manifest | undefined {
  const document = parseJsonObject(bytes);
  if (document === undefined) return undefined;
  const { mediaType, manifests, config, layers } = document;
  // Bytes that are one thing to one reader and another to the next are nothing to this one.
  if (manifests !== undefined && (config !== undefined || layers !== undefined)) return undefined;
  const artifactType = typeof document.artifactType === "string" ? document.artifactType : null;
  if (typeof mediaType === "string" && ![...indexTypes, ...manifestTypes].includes(mediaType))
    return { kind: "other", mediaType };
  if (Array.isArray(manifests)) {
    const platforms = manifests.map(parsePlatformManifest);
    if (!areAll(platforms)) return undefined;
    return { kind: "index", artifactType, annotations: textsOf(document.annotations), manifests: platforms };
  }
  const configDescriptor = parseDescriptor(config);
  const layerDescriptors = Array.isArray(layers) ? layers.map(parseDescriptor) : undefined;
  if (configDescriptor === undefined || layerDescriptors === undefined || !areAll(layerDescriptors)) {
    // The first schema of Docker, and whatever else has a version and no config.
    return document.schemaVersion === 1 ? { kind: "other", mediaType: "schema 1 of Docker" } : undefined;
  }
  // Of OCI's own it may be left out.
  const type = typeof mediaType === "string" ? mediaType : ociManifestType;
  return { kind: "manifest", mediaType: type, artifactType, config: configDescriptor, layers: layerDescriptors };
}

export function isDigest(text: unknown): text is Digest {
  return typeof text === "string" && /^sha256:[0-9a-f]{64}$/.test(text);
}

/** `undefined`: it is none. */
export function parseDescriptor(value: unknown): Descriptor | undefined {
  const { mediaType, digest, size } = asObject(value) ?? {};
  if (typeof mediaType !== "string" || !isDigest(digest) || !Number.isSafeInteger(size)) return undefined;
  return { mediaType, digest, size: Number(size) };
}

function parsePlatformManifest(value: unknown): PlatformManifest | undefined {
  const descriptor = parseDescriptor(value);
  const { os, architecture } = asObject(asObject(value)?.platform) ?? {};
  const platform = typeof os === "string" && typeof architecture === "string" ? `${os}/${architecture}` : null;
  return descriptor && { ...descriptor, platform };
}

function areAll<T>(values: readonly (T | undefined)[]): values is readonly T[] {
  return values.every((value) => value !== undefined);
}
