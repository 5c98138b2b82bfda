import type { KeyObject } from "node:crypto";
import { bundleMediaTypes } from "./bundle-media-types.js";
import { type Described, describeManifest } from "./describe-manifest.js";
import { digestOf } from "./digest-of.js";
import { emptyFolder, extractBundle } from "./extract-files.js";
import type { HttpAnswer } from "./http-client.js";
import { writeLayout } from "./image-layout.js";
import { asObject, parseJsonObject } from "./json-object.js";
import { labelBundle } from "./label-bundle.js";
import { nextLink } from "./link-header.js";
import { type Page, readPages } from "./listing.js";
import { type Descriptor, isDigest, type Manifest, manifestAccept, parseManifest } from "./manifest.js";
import { isRepositoryName, isTag } from "./names.js";
import { RegistryClient, type RegistryOptions, statusError } from "./registry-client.js";
import { parseSignatureLayers, signatureTag } from "./signature-layers.js";
import type { Digest, ReadBundle, Ref, Source } from "./source.js";
import { SourceError } from "./source-error.js";
import { type Signature, verifySignatures } from "./verify-signatures.js";

export interface DistributionOptions extends RegistryOptions {
  /** What the names of its images begin with, for those who pull them: `registry.example:5000`. */
  readonly imageHost: string;
  /** Repositories that are there besides those that it lists, or instead of them. */
  readonly repositories: RepositoryList;
  /** Everything has to be signed by one of them (F5-38). `null`: nothing has to. */
  readonly signatureKeys?: readonly KeyObject[] | null;
}

/** Where the names of repositories come from. */
export type RepositoryList =
  | { readonly kind: "catalog"; readonly besides: readonly string[] }
  /** Of registries that do not list what they have. */
  | { readonly kind: "fixed"; readonly names: readonly string[] }
  /** By the API of a vendor. */
  | { readonly kind: "vendor"; readonly list: (signal: AbortSignal) => AsyncIterable<readonly string[]> };

/** Any registry that speaks the distribution protocol of OCI. */
export function distributionSource(options: DistributionOptions): Source {
  return new DistributionSource(options);
}

class DistributionSource implements Source {
  readonly #client: RegistryClient;
  readonly #imageHost: string;
  readonly #list: RepositoryList;
  readonly #signatureKeys: readonly KeyObject[] | null;
  /** What was found to be signed, as `repository@digest`. That stays true for as long as the keys are these, and they are the source's for ever. */
  readonly #signed = new Set<string>();

  constructor(options: DistributionOptions) {
    this.#client = new RegistryClient(options);
    this.#imageHost = options.imageHost;
    this.#list = options.repositories;
    this.#signatureKeys = options.signatureKeys ?? null;
  }

  async *repositories(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    const list = this.#list;
    if (list.kind === "vendor") return yield* list.list(signal);
    if (list.kind === "fixed") return yield list.names;
    yield list.besides;
    const besides = new Set(list.besides);
    for await (const page of this.#catalog(signal)) yield page.filter((name) => !besides.has(name));
  }

  async tags(repository: string, signal: AbortSignal): Promise<readonly string[] | null> {
    const place = this.#place(repository);
    const scope = pullScope(repository);
    const { pages, tags, pageBytes } = this.#client.limits;
    const found: string[] = [];
    let isThere = true;
    const read = async (path: string): Promise<Page> => {
      const answer = await this.#get(path, "application/json", scope, place, signal);
      if (answer.status === 404) {
        await confirmAbsent(answer, place);
        isThere = false;
        return { names: [], next: null };
      }
      if (answer.status !== 200) throw statusError(answer, place);
      return this.#page(answer, await answer.bytes(pageBytes), "tags", path, place);
    };
    const first = `/v2/${repository}/tags/list?n=${pageSize}`;
    for await (const page of readPages(first, { pages, names: tags }, place, read)) found.push(...page);
    return isThere && found.length > 0 ? found : null;
  }

  async resolve({ repository, tag }: Ref, signal: AbortSignal): Promise<Digest | null> {
    const place = this.#place(repository, `:${tag}`);
    if (!isTag(tag)) throw new SourceError("malformed", place, "not a tag");
    return this.#digestAt(repository, tag, place, signal);
  }

  async has(repository: string, digest: Digest, signal: AbortSignal): Promise<boolean> {
    return (await this.#digestAt(repository, digest, this.#place(repository, `@${digest}`), signal)) === digest;
  }

  /** `null`: the registry says that there is no such manifest. */
  async #digestAt(repository: string, reference: string, place: string, signal: AbortSignal): Promise<Digest | null> {
    const path = `/v2/${repository}/manifests/${reference}`;
    const request = {
      path,
      accept: manifestAccept,
      scope: pullScope(repository),
      place,
      isBlob: false,
      timeoutMs: this.#client.limits.requestMs,
    };
    const head = await this.#client.send({ ...request, method: "HEAD" }, signal);
    const digest = head.headers["docker-content-digest"];
    if (head.status === 200 && isDigest(digest)) {
      head.drop();
      return digest;
    }
    if (![200, 404, 405].includes(head.status)) throw statusError(head, place);
    head.drop();
    // A HEAD has no body that would say so: whether it is the registry that knows of none, or something before it that knows of nothing,
    // is told by a GET. It also has the bytes for a registry that does not tell digests.
    const answer = await this.#client.send({ ...request, method: "GET" }, signal);
    if (answer.status === 404) {
      await confirmAbsent(answer, place);
      return null;
    }
    if (answer.status !== 200) throw statusError(answer, place);
    return digestOf(await answer.bytes(this.#client.limits.manifestBytes));
  }

  async read(repository: string, digest: Digest, signal: AbortSignal): Promise<ReadBundle> {
    const place = this.#place(repository, `@${digest}`);
    const manifest = await this.#manifest(repository, digest, place, signal);
    const described =
      manifest.kind === "index"
        ? await this.#describeIndex(repository, manifest, place, signal)
        : await this.#describe(repository, manifest, place, signal);
    if (described.kind !== "bundle") return described;
    const { runs, ...bundle } = described;
    const image = this.imageOf(repository);
    return {
      ...bundle,
      artifact: runs === "files" ? { kind: "files", repository, digest } : { kind: "image", image, digest, repository },
    };
  }

  async signatureProblem(repository: string, digest: Digest, signal: AbortSignal): Promise<string | null> {
    const name = `${repository}@${digest}`;
    if (this.#signatureKeys === null || this.#signed.has(name)) return null;
    const signatures = await this.#signatures(repository, digest, signal);
    const why = verifySignatures(this.#signatureKeys, digest, signatures);
    if (why !== null) return why;
    if (this.#signed.size >= mostRemembered) this.#signed.clear();
    this.#signed.add(name);
    return null;
  }

  /** None, if the registry says that there are none. */
  async #signatures(repository: string, digest: Digest, signal: AbortSignal): Promise<readonly Signature[]> {
    const tag = signatureTag(digest);
    const place = this.#place(repository, `:${tag}`);
    const { manifestBytes, signatures: most, signatureBytes } = this.#client.limits;
    const path = `/v2/${repository}/manifests/${tag}`;
    const answer = await this.#get(path, manifestAccept, pullScope(repository), place, signal);
    if (answer.status === 404) {
      await confirmAbsent(answer, place);
      return [];
    }
    if (answer.status !== 200) throw statusError(answer, place);
    const layers = parseSignatureLayers(await answer.bytes(manifestBytes));
    if (layers === undefined) throw new SourceError("malformed", place, "no manifest of signatures");
    if (layers.length > most) throw new SourceError("too large", place, `more than ${most} signatures`);
    // Signatures of several keys are mostly of the same bytes.
    const payloads = new Map<Digest, Buffer>();
    for (const { payload } of layers) {
      if (payloads.has(payload.digest)) continue;
      if (payload.size > signatureBytes)
        throw new SourceError("too large", place, `a signature of more than ${signatureBytes} bytes`);
      payloads.set(payload.digest, await this.#smallBlob(repository, payload, place, signal));
    }
    return layers.flatMap(({ payload, signature }) => {
      const bytes = payloads.get(payload.digest);
      return bytes === undefined ? [] : [{ payload: bytes, signature }];
    });
  }

  imageOf(repository: string): string {
    return `${this.#imageHost}/${repository}`;
  }

  async fetchImage(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void> {
    const place = this.#place(repository, `@${digest}`);
    const { limits } = this.#client;
    const { manifest, own, bytes } = await this.#ownManifest(repository, digest, place, signal);
    if (manifest.kind !== "manifest") throw new SourceError("malformed", place, "not an image");
    const { config, layers, mediaType } = manifest;
    const blobs = [config, ...layers];
    if (layers.length > limits.imageLayers)
      throw new SourceError("too large", place, `more than ${limits.imageLayers} layers`);
    const size = blobs.reduce((sum, blob) => sum + blob.size, 0);
    if (size > limits.imageBytes) throw new SourceError("too large", place, `an image of ${size} bytes`);
    const described = { mediaType, digest: own, size: bytes.length };
    const blob = (each: Descriptor) => this.#blob(repository, each, place, limits.layerMs, signal).catch(asDamage);
    try {
      await writeLayout(folder, { manifest: described, manifestBytes: bytes, blobs }, blob, place);
    } catch (error) {
      await emptyFolder(folder);
      throw error;
    }
  }

  async fetch(repository: string, digest: Digest, folder: string, signal: AbortSignal): Promise<void> {
    const place = this.#place(repository, `@${digest}`);
    const { limits } = this.#client;
    const { manifest } = await this.#ownManifest(repository, digest, place, signal);
    await extractBundle(manifest, folder, limits, place, (layer) =>
      this.#blob(repository, layer, place, limits.layerMs, signal),
    );
  }

  async probe(signal: AbortSignal): Promise<void> {
    const place = this.#client.url.host;
    const answer = await this.#get("/v2/", "application/json", null, place, signal);
    if (answer.status !== 200) throw statusError(answer, place);
    answer.drop();
  }

  async *#catalog(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    const place = `${this.#client.url.host}/v2/_catalog`;
    const { pages, repositories, pageBytes } = this.#client.limits;
    yield* readPages(`/v2/_catalog?n=${pageSize}`, { pages, names: repositories }, place, async (path) => {
      const answer = await this.#get(path, "application/json", "registry:catalog:*", place, signal);
      if ([404, 405, 501].includes(answer.status)) {
        answer.drop();
        throw new SourceError("no catalog", place, `status ${answer.status}`);
      }
      if (answer.status === 401 || answer.status === 403)
        throw statusError(
          answer,
          place,
          "many registries list repositories for nobody: name them in the settings then",
        );
      if (answer.status !== 200) throw statusError(answer, place);
      return this.#page(answer, await answer.bytes(pageBytes), "repositories", path, place);
    });
  }

  #page(answer: HttpAnswer, bytes: Buffer, field: "repositories" | "tags", path: string, place: string): Page {
    // A list that is null is one without members; one that is not there is another document.
    const list = parseJsonObject(bytes)?.[field];
    const names = list === null ? [] : list;
    if (
      !Array.isArray(names) ||
      !names.every((name): name is string => typeof name === "string" && name.length <= 1_024)
    )
      throw new SourceError("malformed", place, `no list of ${field}`);
    const { link } = answer.headers;
    const target = link === undefined ? null : nextLink(Array.isArray(link) ? link.join(", ") : link);
    return { names, next: target === null ? null : this.#nextPath(target, path, place) };
  }

  /** The path of a next page. Another host, and another list of the same host, are refused. */
  #nextPath(target: string, path: string, place: string): string {
    const current = new URL(path, this.#client.url);
    if (!URL.canParse(target, current.href)) throw new SourceError("malformed", place, "a next page at no address");
    const next = new URL(target, current);
    if (next.origin !== current.origin)
      throw new SourceError("foreign host", place, `the next page is at ${next.host}`);
    if (next.pathname !== current.pathname)
      throw new SourceError("malformed", place, "the next page is of another list");
    return `${next.pathname}${next.search}`;
  }

  async #describeIndex(
    repository: string,
    { annotations, artifactType, manifests }: Manifest & { kind: "index" },
    place: string,
    signal: AbortSignal,
  ): Promise<Described> {
    const { specBytes, platforms: mostPlatforms } = this.#client.limits;
    const annotated = labelBundle(annotations, specBytes);
    const runs = artifactType === bundleMediaTypes.artifact ? "files" : "image";
    if (annotated !== null) return annotated.kind === "bundle" ? { ...annotated, runs } : annotated;
    // Attestations lie in an index as if they were for a platform that is not known.
    const platforms = manifests.filter(({ platform }) => platform !== "unknown/unknown");
    if (platforms.length > mostPlatforms)
      throw new SourceError("too large", place, `more than ${mostPlatforms} platforms`);
    let first: Described | undefined;
    for (const { digest } of platforms) {
      const manifest = await this.#manifest(repository, digest, place, signal).catch(asDamage);
      const described = await this.#describe(repository, manifest, place, signal);
      if (described.kind === "invalid") return described;
      first ??= described;
      if (!areAlike(first, described))
        return { kind: "invalid", why: "its platforms are different bundles; annotate the index, or build them alike" };
    }
    return first ?? { kind: "not a bundle", why: "an index without a platform" };
  }

  #describe(repository: string, manifest: Manifest, place: string, signal: AbortSignal): Promise<Described> {
    return describeManifest(manifest, this.#client.limits, place, (blob) =>
      this.#smallBlob(repository, blob, place, signal),
    );
  }

  /** What is at a digest, or, of an index, what there is for this machine. */
  async #ownManifest(
    repository: string,
    digest: Digest,
    place: string,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Manifest; readonly own: Digest; readonly bytes: Buffer }> {
    const read = await this.#manifestBytes(repository, digest, place, signal);
    if (read.manifest.kind !== "index") return { ...read, own: digest };
    const platform = ownPlatform(read.manifest.manifests);
    if (platform === undefined) throw new SourceError("not found", place, `nothing for ${platformHere}`);
    const own = platform.digest;
    return { ...(await this.#manifestBytes(repository, own, place, signal)), own };
  }

  async #manifest(repository: string, digest: Digest, place: string, signal: AbortSignal): Promise<Manifest> {
    return (await this.#manifestBytes(repository, digest, place, signal)).manifest;
  }

  async #manifestBytes(
    repository: string,
    digest: Digest,
    place: string,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Manifest; readonly bytes: Buffer }> {
    const path = `/v2/${repository}/manifests/${digest}`;
    const answer = await this.#get(path, manifestAccept, pullScope(repository), place, signal);
    if (answer.status !== 200) throw statusError(answer, place);
    const bytes = await answer.bytes(this.#client.limits.manifestBytes);
    if (digestOf(bytes) !== digest) throw new SourceError("digest mismatch", place, "the manifest");
    const manifest = parseManifest(bytes);
    if (manifest === undefined) throw new SourceError("malformed", place, "no manifest");
    return { manifest, bytes };
  }

  async #smallBlob(repository: string, descriptor: Descriptor, place: string, signal: AbortSignal): Promise<Buffer> {
    const answer = await this.#blob(repository, descriptor, place, this.#client.limits.requestMs, signal).catch(
      asDamage,
    );
    const bytes = await answer.bytes(descriptor.size);
    if (digestOf(bytes) !== descriptor.digest) throw new SourceError("digest mismatch", place, "a blob");
    return bytes;
  }

  async #blob(
    repository: string,
    { digest }: Descriptor,
    place: string,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const path = `/v2/${repository}/blobs/${digest}`;
    const scope = pullScope(repository);
    const request = { method: "GET", path, accept: "*/*", scope, place, isBlob: true, timeoutMs } as const;
    const answer = await this.#client.send(request, signal);
    if (answer.status !== 200) throw statusError(answer, place, "a blob");
    return answer;
  }

  #get(path: string, accept: string, scope: string | null, place: string, signal: AbortSignal): Promise<HttpAnswer> {
    const timeoutMs = this.#client.limits.requestMs;
    return this.#client.send({ method: "GET", path, accept, scope, place, isBlob: false, timeoutMs }, signal);
  }

  /** Every path is made of a repository whose name was looked at here. */
  #place(repository: string, rest = ""): string {
    const { host } = this.#client.url;
    if (!isRepositoryName(repository)) throw new SourceError("malformed", host, "a repository with an impossible name");
    return `${host}/${repository}${rest}`;
  }
}

/** Of digests that are signed: as many as a source may have repositories. */
const mostRemembered = 100_000;

/** More than this is refused by some registries, and some do not look at it (F5-70). */
const pageSize = 100;

const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };
const platformHere = `linux/${architectures[process.arch] ?? process.arch}`;

function ownPlatform<T extends { readonly platform: string | null }>(manifests: readonly T[]): T | undefined {
  return (
    manifests.find(({ platform }) => platform === platformHere) ?? manifests.find(({ platform }) => platform === null)
  );
}

/**
 * That it is the registry which knows of no such thing. A proxy before it, or the page of a network that wants a login, also answers 404;
 * that is no evidence of anything.
 */
async function confirmAbsent(answer: HttpAnswer, place: string): Promise<void> {
  const errors = parseJsonObject(await answer.bytes(largestErrorBytes))?.errors;
  const isSaid = Array.isArray(errors) && errors.some((error) => typeof asObject(error)?.code === "string");
  if (!isSaid) throw new SourceError("malformed", place, "status 404, but not from a registry");
}

/** A manifest that is there, and names what is not: the registry is damaged, and that is no evidence that the bundle was taken away (F5-7). */
function asDamage(error: unknown): never {
  if (!(error instanceof SourceError) || error.failure !== "not found") throw error;
  throw new SourceError("malformed", error.place, "a part that its manifest names is not there", { cause: error });
}

const largestErrorBytes = 1024 * 1024;

function pullScope(repository: string): string {
  return `repository:${repository}:pull`;
}

function areAlike(one: Described, other: Described): boolean {
  if (one.kind !== "bundle" || other.kind !== "bundle") return one.kind === other.kind;
  const { format, text, runtime, runs } = one;
  return format === other.format && text === other.text && runtime === other.runtime && runs === other.runs;
}
