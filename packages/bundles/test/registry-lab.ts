import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create } from "tar";
import { onTestFinished } from "vitest";
import { bundleLabels, bundleMediaTypes } from "../src/sources/bundle-media-types.js";
import type { Credentials } from "../src/sources/credentials.js";
import { type DistributionOptions, distributionSource } from "../src/sources/distribution-source.js";
import type { Digest, Source } from "../src/sources/source.js";
import { SourceError, type SourceFailure } from "../src/sources/source-error.js";
import { defaultSourceLimits, type SourceLimits } from "../src/sources/source-limits.js";

export const never = new AbortController().signal;

export function digestOf(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

export type SourceUnderTest = Partial<Omit<DistributionOptions, "url" | "limits" | "credentials">> & {
  readonly credentials?: Credentials;
  readonly limits?: Partial<SourceLimits>;
};

export function sourceAt(url: string, { credentials, limits, ...options }: SourceUnderTest = {}): Source {
  return distributionSource({
    url: new URL(url),
    imageHost: new URL(url).host,
    repositories: { kind: "catalog", besides: [] },
    tokenHosts: [],
    tls: { ca: null, verify: true },
    ...options,
    credentials: async () => credentials ?? { kind: "anonymous" },
    limits: { ...defaultSourceLimits, ...limits },
  });
}

export async function repositoriesOf(source: Source): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of source.repositories(never)) found.push(...page);
  return found.sort();
}

/** The failure that something ends in, with the whole sentence. */
export async function failureOf(
  work: Promise<unknown>,
): Promise<{ failure: SourceFailure; message: string; error: SourceError }> {
  const error = await work.then(
    () => new Error("it went well"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof SourceError)) throw error;
  return { failure: error.failure, message: error.message, error };
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

export function descriptor(mediaType: string, bytes: Uint8Array | string): Descriptor {
  return { mediaType, digest: digestOf(bytes), size: Buffer.byteLength(bytes) };
}

/** Content of a registry: a manifest with the blobs that belong to it. */
export interface Content {
  readonly manifest: string;
  readonly mediaType: string;
  readonly digest: Digest;
  readonly blobs: readonly Uint8Array[];
}

function content(document: { readonly mediaType: string }, blobs: readonly Uint8Array[]): Content {
  const manifest = JSON.stringify(document);
  return { manifest, mediaType: document.mediaType, digest: digestOf(manifest), blobs };
}

export function image(
  labels: Readonly<Record<string, string>> | null,
  kind: "docker" | "oci" = "oci",
  extra = "",
): Content {
  const config = Buffer.from(
    JSON.stringify({
      architecture: "amd64",
      os: "linux",
      extra,
      config: { Labels: labels },
      rootfs: { type: "layers", diff_ids: [] },
    }),
  );
  const layer = Buffer.from("not read by anyone");
  const types =
    kind === "oci"
      ? [
          "application/vnd.oci.image.manifest.v1+json",
          "application/vnd.oci.image.config.v1+json",
          "application/vnd.oci.image.layer.v1.tar",
        ]
      : [
          "application/vnd.docker.distribution.manifest.v2+json",
          "application/vnd.docker.container.image.v1+json",
          "application/vnd.docker.image.rootfs.diff.tar.gzip",
        ];
  const [mediaType = "", configType = "", layerType = ""] = types;
  const document = {
    schemaVersion: 2,
    mediaType,
    config: descriptor(configType, config),
    layers: [descriptor(layerType, layer)],
  };
  return content(document, [config, layer]);
}

export function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

export function apbImage(spec: string, runtime?: string, kind?: "docker" | "oci"): Content {
  const labels = {
    [bundleLabels.apb]: base64(spec),
    ...(runtime === undefined ? {} : { [bundleLabels.apbRuntime[0]]: runtime }),
  };
  return image(labels, kind);
}

export function artifact(yaml: string, layers: readonly Uint8Array[]): Content {
  const config = Buffer.from(yaml);
  const document = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    artifactType: bundleMediaTypes.artifact,
    config: descriptor(bundleMediaTypes.config, config),
    layers: layers.map((layer) => descriptor(bundleMediaTypes.files, layer)),
  };
  return content(document, [config, ...layers]);
}

export function index(
  platforms: readonly (readonly [platform: string, content: Content])[],
  kind: "docker" | "oci" = "oci",
  annotations?: Readonly<Record<string, string>>,
): Content {
  const mediaType =
    kind === "oci"
      ? "application/vnd.oci.image.index.v1+json"
      : "application/vnd.docker.distribution.manifest.list.v2+json";
  const manifests = platforms.map(([platform, each]) => {
    const [os, architecture] = platform.split("/");
    return { ...descriptor(each.mediaType, each.manifest), platform: { os, architecture } };
  });
  const document = { schemaVersion: 2, mediaType, manifests, ...(annotations && { annotations }) };
  return content(document, []);
}

/** Pushes as any client does, by HTTP. */
export async function push(
  registry: string,
  repository: string,
  reference: string,
  { manifest, mediaType, blobs }: Content,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const blob of blobs) {
    const begun = await fetch(`${registry}/v2/${repository}/blobs/uploads/`, { method: "POST", headers });
    const place = new URL(begun.headers.get("location") ?? "", registry);
    place.searchParams.set("digest", digestOf(blob));
    const type = { "content-type": "application/octet-stream" };
    const put = await fetch(place, { method: "PUT", body: Buffer.from(blob), headers: { ...headers, ...type } });
    if (put.status !== 201) throw new Error(`blob: ${put.status} ${await put.text()}`);
  }
  const put = await fetch(`${registry}/v2/${repository}/manifests/${reference}`, {
    method: "PUT",
    body: manifest,
    headers: { ...headers, "content-type": mediaType },
  });
  if (put.status !== 201) throw new Error(`manifest: ${put.status} ${await put.text()}`);
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "osbert-sources-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** A tar archive with gzip, of files. */
export async function archive(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const folder = temporaryFolder();
  writeFiles(folder, files);
  const chunks: Buffer[] = [];
  for await (const chunk of create({ cwd: folder, gzip: true, portable: true }, Object.keys(files)))
    chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly headers: IncomingMessage["headers"];
}

/** A server on loopback that a test plays a registry, a vendor or a thief with. All that was asked of it is kept. */
export async function serve(
  answer: (request: IncomingMessage, response: ServerResponse, url: string) => unknown,
): Promise<{ readonly url: string; readonly host: string; readonly seen: readonly Seen[] }> {
  const seen: Seen[] = [];
  let url = "";
  const server = createServer((request, response) => {
    const { method = "", headers } = request;
    seen.push({ method, url: request.url ?? "", authorization: headers.authorization, headers });
    answer(request, response, url);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, host: new URL(url).host, seen };
}

export function json(
  response: ServerResponse,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

/** A registry that holds one thing and lies about nothing, until `lie` answers in its stead. `true`: it has answered. */
export async function serveContent(
  contents: readonly Content[],
  lie: (request: IncomingMessage, response: ServerResponse, url: string) => boolean = () => false,
): ReturnType<typeof serve> {
  return serve((request, response, url) => {
    if (lie(request, response, url)) return;
    const [, kind, reference] = /^\/v2\/.+\/(manifests|blobs)\/([^/?]+)$/.exec(request.url ?? "") ?? [];
    if (kind === "manifests") {
      const found =
        contents.find(({ digest }) => digest === reference) ??
        (reference?.startsWith("sha256:") ? undefined : contents[0]);
      if (found === undefined) return json(response, { errors: [{ code: "MANIFEST_UNKNOWN" }] }, {}, 404);
      const headers = { "content-type": found.mediaType, "docker-content-digest": found.digest };
      return response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : found.manifest);
    }
    const blob = contents.flatMap(({ blobs }) => blobs).find((each) => digestOf(each) === reference);
    if (kind === "blobs" && blob !== undefined) return response.writeHead(200).end(blob);
    if (request.url === "/v2/") return json(response, {});
    return json(response, { errors: [{ code: "NOT_FOUND" }] }, {}, 404);
  });
}

export function uniqueRepository(name: string): string {
  return `${name}-${randomUUID().slice(0, 8)}`;
}
