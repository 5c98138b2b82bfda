import { findProxy } from "../sources/find-proxy.js";
import { isRepositoryName, isTag } from "../sources/names.js";
import {
  type CredentialsPlace,
  credentialsReader,
  readTls,
  type SourcePorts,
  type TlsPlace,
} from "../sources/open-source.js";
import { RegistryClient, type RegistryRequest, statusError } from "../sources/registry-client.js";
import type { Digest } from "../sources/source.js";
import { SourceError } from "../sources/source-error.js";
import { defaultSourceLimits } from "../sources/source-limits.js";
import { AuthorError } from "./author-error.js";
import type { Blob, BuiltBundle } from "./build-bundle.js";

/** Where a bundle is pushed to. */
export interface PushTarget {
  /** With its port, if it is not the usual one. */
  readonly host: string;
  readonly repository: string;
  readonly tag: string;
}

export interface PushOptions {
  /** Without TLS. */
  readonly plainHttp: boolean;
  readonly credentials: CredentialsPlace;
  readonly tokenHosts: readonly string[];
  readonly tls: TlsPlace;
}

/** Reads `REGISTRY/REPO:TAG`. */
export function parsePushTarget(text: string): PushTarget {
  const [, host = "", repository = "", tag = ""] =
    /^((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?)\/([^:@]+):([^:@/]+)$/.exec(text) ?? [];
  if (!URL.canParse(`https://${host}`) || !isRepositoryName(repository) || !isTag(tag))
    throw new AuthorError(
      `${quoted(text)} is not a target: it must look like registry.example/team/name:1.0.0, without https:// and credentials`,
    );
  return { host, repository, tag };
}

/** What was taken for the target; never with the credentials that may stand before an @. */
function quoted(text: string): string {
  return JSON.stringify(text.replace(/^.*@(?!sha256:)/s, "***@").slice(0, 200));
}

/**
 * Pushes a built bundle. First the blobs that the registry does not have, then the manifest under its tag: killed at any moment, the tag
 * names what it named before, or the whole bundle. To push twice changes nothing.
 */
export async function pushBundle(
  built: BuiltBundle,
  target: PushTarget,
  options: PushOptions,
  ports: Omit<SourcePorts, "pushed">,
  signal: AbortSignal,
): Promise<Digest> {
  const limits = { ...defaultSourceLimits, ...ports.limits };
  const url = new URL(`${options.plainHttp ? "http" : "https"}://${target.host}`);
  const client = new RegistryClient({
    ...{ url, limits, tokenHosts: options.tokenHosts, findProxy: findProxy(ports.environment) },
    credentials: credentialsReader(options.credentials, url.host, ports),
    tls: await readTls(options.tls, ports),
  });
  const pushing = new Push(client, target, signal);
  for (const blob of built.blobs) await pushing.blob(blob);
  await pushing.manifest(built.manifest);
  return built.manifest.digest;
}

class Push {
  readonly #client: RegistryClient;
  readonly #target: PushTarget;
  readonly #place: string;
  readonly #signal: AbortSignal;

  constructor(client: RegistryClient, target: PushTarget, signal: AbortSignal) {
    this.#client = client;
    this.#target = target;
    this.#place = `${target.host}/${target.repository}:${target.tag}`;
    this.#signal = signal;
  }

  async blob({ digest, bytes }: Blob): Promise<void> {
    const blobs = `/v2/${this.#target.repository}/blobs`;
    const there = await this.#send({ method: "HEAD", path: `${blobs}/${digest}`, isBlob: true });
    there.drop();
    if (there.status === 200) return;
    if (there.status !== 404) throw statusError(there, this.#place);
    const begun = await this.#send({ method: "POST", path: `${blobs}/uploads/`, body: Buffer.alloc(0) });
    if (begun.status !== 202) throw statusError(begun, this.#place, "no upload could be begun");
    begun.drop();
    const path = this.#uploadPath(begun.headers.location, digest);
    const put = await this.#send({ method: "PUT", path, body: bytes, timeoutMs: this.#client.limits.layerMs });
    if (put.status !== 201) throw statusError(put, this.#place, "a blob was not taken");
    put.drop();
  }

  async manifest({ mediaType, digest, bytes }: Blob): Promise<void> {
    const path = `/v2/${this.#target.repository}/manifests/${this.#target.tag}`;
    const put = await this.#send({ method: "PUT", path, body: bytes, contentType: mediaType });
    if (put.status !== 201) throw statusError(put, this.#place, "the manifest was not taken");
    put.drop();
    const told = put.headers["docker-content-digest"];
    if (told !== undefined && told !== digest) throw new SourceError("digest mismatch", this.#place, "the manifest");
  }

  /** Where a registry wants the bytes. With them go the credentials, so it is a place of its own. */
  #uploadPath(location: string | undefined, digest: Digest): string {
    const { url } = this.#client;
    if (location === undefined || !URL.canParse(location, url.href))
      throw new SourceError("malformed", this.#place, "an upload without an address");
    const target = new URL(location, url);
    if (target.origin !== url.origin)
      throw new SourceError("foreign host", this.#place, `the upload is at ${target.host}`);
    target.searchParams.set("digest", digest);
    return `${target.pathname}${target.search}`;
  }

  #send(request: Pick<RegistryRequest, "method" | "path"> & Partial<RegistryRequest>) {
    const scope = `repository:${this.#target.repository}:pull,push`;
    const usual = { accept: "*/*", scope, place: this.#place, isBlob: false, timeoutMs: this.#client.limits.requestMs };
    return this.#client.send({ ...usual, ...request }, this.#signal);
  }
}
