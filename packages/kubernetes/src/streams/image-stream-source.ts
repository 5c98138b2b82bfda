import { type Digest, defaultSourceLimits, type ReadBundle, type Ref, type Source, SourceError } from "@osbert/bundles";
import type { Cluster } from "../cluster/cluster.js";
import { ClusterError, type ClusterFailure } from "../cluster/cluster-error.js";
import type { ClusterObject } from "../cluster/cluster-object.js";
import { imageStreams, isDigest, type StreamTag, streamTag, tagsOf } from "./image-stream.js";
import { imageStreamImages, readStreamImage } from "./stream-image.js";

/**
 * Image streams of OpenShift as a source of bundles: `NAMESPACE/STREAM` is a repository. Tags and labels are what the cluster's API says,
 * which has read the images: nothing is asked of a registry, so that no byte is checked here but by the cluster. It needs `get` and `list` of
 * `imagestreams` and `get` of `imagestreamimages` in the namespaces. One namespace that cannot be listed fails the whole list.
 */
export function imageStreamSource(cluster: Cluster, namespaces: readonly string[]): Source {
  return new ImageStreamSource(cluster, namespaces);
}

const timeoutMs = defaultSourceLimits.requestMs;
const namesOfPage = 500;

class ImageStreamSource implements Source {
  readonly #cluster: Cluster;
  readonly #namespaces: readonly string[];

  constructor(cluster: Cluster, namespaces: readonly string[]) {
    this.#cluster = cluster;
    this.#namespaces = namespaces;
  }

  async *repositories(signal: AbortSignal): AsyncGenerator<readonly string[]> {
    for (const namespace of this.#namespaces) {
      let page: string[] = [];
      for await (const name of this.#names(namespace, signal)) {
        page.push(`${namespace}/${name}`);
        if (page.length < namesOfPage) continue;
        yield page;
        page = [];
      }
      yield page;
    }
  }

  async tags(repository: string, signal: AbortSignal): Promise<readonly string[] | null> {
    const stream = await this.#stream(repository, signal);
    const tags = stream === undefined ? [] : tagsOf(stream);
    return tags.length === 0 ? null : tags;
  }

  async resolve({ repository, tag }: Ref, signal: AbortSignal): Promise<Digest | null> {
    const stream = await this.#stream(repository, signal);
    const place = `${placeOf(repository)}:${tag}`;
    const found: StreamTag = stream === undefined ? { kind: "none" } : streamTag(stream, tag);
    switch (found.kind) {
      case "image":
        return found.digest;
      case "none":
        return null;
      case "malformed":
        throw new SourceError("malformed", place, "its image has no digest");
      case "not imported":
        throw new SourceError("server error", place, `its image was not imported: ${found.why}`);
    }
  }

  async has(repository: string, digest: Digest, signal: AbortSignal): Promise<boolean> {
    return (await this.#image(repository, digest, signal)) !== undefined;
  }

  async read(repository: string, digest: Digest, signal: AbortSignal): Promise<ReadBundle> {
    const place = `${placeOf(repository)}@${digest}`;
    const object = await this.#image(repository, digest, signal);
    if (object === undefined) throw new SourceError("not found", place);
    const read = readStreamImage(object, digest);
    if (read === undefined) throw new SourceError("digest mismatch", place, "the cluster told of another image");
    return read;
  }

  async fetch(repository: string, digest: Digest): Promise<void> {
    throw new SourceError("malformed", `${placeOf(repository)}@${digest}`, "an image, which has no files to fetch");
  }

  /** What is looked for is whether the list can be had, not what is in it. */
  async probe(signal: AbortSignal): Promise<void> {
    for (const namespace of this.#namespaces.slice(0, 1))
      for await (const _name of this.#names(namespace, signal)) return;
  }

  async *#names(namespace: string, signal: AbortSignal): AsyncGenerator<string> {
    try {
      const list = this.#cluster.list(imageStreams, { namespace, signal, timeoutMs });
      for await (const { metadata } of list) yield metadata.name;
    } catch (error) {
      throw asSourceError(error, `image streams of ${namespace}`);
    }
  }

  async #stream(repository: string, signal: AbortSignal): Promise<ClusterObject | undefined> {
    const place = this.#objectPlace(repository);
    try {
      return await this.#cluster.read(imageStreams, place, { signal, timeoutMs });
    } catch (error) {
      throw asSourceError(error, placeOf(repository));
    }
  }

  async #image(repository: string, digest: Digest, signal: AbortSignal): Promise<ClusterObject | undefined> {
    const { namespace, name } = this.#objectPlace(repository);
    const place = `${placeOf(repository)}@${digest}`;
    if (!isDigest(digest)) throw new SourceError("malformed", place, "not a digest");
    try {
      return await this.#cluster.read(
        imageStreamImages,
        { namespace, name: `${name}@${digest}` },
        { signal, timeoutMs },
      );
    } catch (error) {
      throw asSourceError(error, place);
    }
  }

  /** Only what lies in its namespaces, whoever asks. */
  #objectPlace(repository: string): { readonly namespace: string; readonly name: string } {
    const [namespace = "", name = "", ...more] = repository.split("/");
    if (!this.#namespaces.includes(namespace) || name === "" || more.length > 0)
      throw new SourceError("not found", placeOf(repository), "it is NAMESPACE/STREAM, of a namespace that is read");
    return { namespace, name };
  }
}

function placeOf(repository: string): string {
  return `image stream ${repository}`;
}

const failures: Readonly<Record<ClusterFailure, ConstructorParameters<typeof SourceError>[0]>> = {
  conflict: "server error",
  "not found": "not found",
  "no such kind": "not found",
  forbidden: "forbidden",
  unauthorized: "unauthorized",
  invalid: "malformed",
  "too busy": "rate limited",
  "webhook unavailable": "server error",
  unavailable: "unreachable",
};

/** What the cluster said, in the words of sources. None of it says that a tag is gone. */
function asSourceError(error: unknown, place: string): unknown {
  if (!(error instanceof ClusterError)) return error;
  const { failure, retryAfterMs } = error;
  const detail = failure === "no such kind" ? "the cluster has no image streams; only OpenShift does" : error.message;
  const cause = { cause: error, ...(retryAfterMs !== null && { retryAfterMs }) };
  return new SourceError(failures[failure], place, detail, cause);
}
