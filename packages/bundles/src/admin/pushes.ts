import type { Attribution } from "@osbert/journal";
import { BrokerError, isJsonObject, type JsonObject } from "@osbert/protocol";
import { isDigest } from "../sources/manifest.js";
import { isRepositoryName, isTag } from "../sources/names.js";
import type { PushedContent } from "../sources/pushed-content.js";

/** A bundle that somebody wants to push. */
export interface NewPush {
  /** `null`: it is called as the bundle itself. */
  readonly repository: string | null;
  readonly tag: string;
  readonly ttlMs: number | null;
  readonly content: PushedContent;
}

/** What the admin API shows of a pushed bundle. */
export interface PushedView {
  readonly source: string;
  readonly spec: string;
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
  readonly pushed_at: string;
  readonly by: string;
  readonly expires_at: string | null;
}

/** What the routes of pushed bundles ask and do. Each throws a BrokerError that says no. */
export interface PushPorts {
  list(): Promise<readonly PushedView[]>;
  push(push: NewPush, by: Attribution): Promise<PushedView>;
  /** Answers how many there were. */
  remove(specs: readonly string[] | "all", force: boolean, by: Attribution & { readonly why: string }): Promise<number>;
}

/** Of the body: a bundle of 8 MiB in base64, and what is said about it. */
export const largestPush = 12 * 1_048_576;

const longestTtlSeconds = 10 * 365 * 86_400;
const mostBlobs = 33;
const longestImage = 512;

/** The body of a push, looked at. */
export function readPush(body: JsonObject): NewPush {
  const { repository = null, tag = "latest", ttl_seconds: ttl = null, artifact, image } = body;
  if (repository !== null && (typeof repository !== "string" || !isRepositoryName(repository)))
    throw bad("repository must be a name such as team/postgres");
  if (typeof tag !== "string" || !isTag(tag)) throw bad("tag must be letters, digits, dots, dashes and underscores");
  if (ttl !== null && !(typeof ttl === "number" && ttl >= 1 && ttl <= longestTtlSeconds))
    throw bad(`ttl_seconds must be a number from 1 to ${longestTtlSeconds}`);
  if ((artifact === undefined) === (image === undefined)) throw bad("there must be either artifact or image");
  const content = artifact === undefined ? readImage(image) : readArtifact(artifact);
  return { repository, tag, ttlMs: ttl === null ? null : ttl * 1_000, content };
}

/** `{ manifest, blobs }`, each in base64. */
function readArtifact(value: unknown): PushedContent {
  const { manifest, blobs } = isJsonObject(value) ? value : {};
  if (!Array.isArray(blobs) || blobs.length > mostBlobs)
    throw bad(`artifact.blobs must be a list of at most ${mostBlobs}`);
  return {
    kind: "artifact",
    manifest: bytesOf(manifest, "artifact.manifest"),
    blobs: blobs.map((blob, at) => bytesOf(blob, `artifact.blobs[${at}]`)),
  };
}

/** `{ reference, spec, runtime }`: an image by its digest, so that it is for ever the same, and the text of its apb.yml. */
function readImage(value: unknown): PushedContent {
  const { reference, spec, runtime = 1 } = isJsonObject(value) ? value : {};
  if (typeof reference !== "string" || reference.length > longestImage)
    throw bad("image.reference must be the name of an image");
  const at = reference.lastIndexOf("@");
  const [name, digest] = [reference.slice(0, Math.max(0, at)), reference.slice(at + 1)];
  if (!isDigest(digest))
    throw bad("image.reference must have a digest, NAME@sha256:…: a tag may be another image tomorrow");
  if (!isImageName(name)) throw bad("image.reference must be HOST/REPOSITORY@sha256:…, without a scheme and a tag");
  if (typeof spec !== "string" || spec === "") throw bad("image.spec must be the text of apb.yml");
  if (runtime !== 1 && runtime !== 2) throw bad("image.runtime must be 1, or 2 where bundles run as Jobs of a cluster");
  return { kind: "image", image: name, digest, runtime, text: spec };
}

function isImageName(name: string): boolean {
  const [, host, repository = ""] = /^((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?)\/(.+)$/.exec(name) ?? [];
  return host !== undefined && isRepositoryName(repository);
}

function bytesOf(value: unknown, name: string): Buffer {
  if (typeof value !== "string" || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) throw bad(`${name} must be base64`);
  return Buffer.from(value, "base64");
}

function bad(description: string): BrokerError {
  return new BrokerError("bad-request", description);
}
