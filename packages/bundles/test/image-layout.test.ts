import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readLayoutManifest } from "../src/sources/image-layout.js";
import {
  apbImage,
  type Content,
  digestOf,
  failureOf,
  image,
  index,
  never,
  serveContent,
  sourceAt,
  temporaryFolder,
} from "./registry-lab.js";

const platform = `linux/${process.arch === "x64" ? "amd64" : process.arch}`;

async function fetchInto(
  contents: readonly Content[],
  digest = contents[0]?.digest,
  lie?: Parameters<typeof serveContent>[1],
) {
  const { url } = await serveContent(contents, lie);
  const folder = temporaryFolder();
  const fetching = sourceAt(url, { limits: { imageBytes: 10_000 } }).fetchImage?.(
    "team/a",
    digest ?? digestOf(""),
    folder,
    never,
  );
  return { folder, fetching: fetching ?? Promise.reject(new Error("it has no images")) };
}

test.each(["oci", "docker"] as const)(
  "an image of %s is written as a layout, every blob under its digest",
  async (kind) => {
    const content = apbImage("name: a", "1", kind);
    const { folder, fetching } = await fetchInto([content]);
    await fetching;
    const [config] = content.blobs;
    expect((await readLayoutManifest(folder))?.config.digest).toBe(digestOf(config ?? ""));
    const digests = [content.manifest, ...content.blobs].map((bytes) => digestOf(bytes));
    const names = await readdir(join(folder, "blobs", "sha256"));
    expect(names.sort()).toEqual(digests.map((digest) => digest.slice(7)).sort());
    for (const name of names)
      expect(digestOf(await readFile(join(folder, "blobs", "sha256", name)))).toBe(`sha256:${name}`);
    const { manifests } = JSON.parse(await readFile(join(folder, "index.json"), "utf8"));
    expect(manifests).toEqual([
      { mediaType: content.mediaType, digest: content.digest, size: Buffer.byteLength(content.manifest) },
    ]);
  },
);

test("of an index, the image for this machine is written", async () => {
  const [own, other] = [image(null, "oci", "own"), image(null, "oci", "other")];
  const both = index([
    ["linux/s390x", other],
    [platform, own],
  ]);
  const { folder, fetching } = await fetchInto([both, own, other]);
  await fetching;
  expect((await readLayoutManifest(folder))?.config.digest).toBe(digestOf(own.blobs[0] ?? ""));
});

test("a blob that is damaged, missing or longer, and an image that is too large, leave nothing behind", async () => {
  const content = image(null);
  const layer = digestOf(content.blobs[1] ?? "");
  const lies: Readonly<Record<string, (end: (status: number, body?: string) => void) => void>> = {
    "digest mismatch": (end) => end(200, "not READ by anyone"),
    malformed: (end) => end(404),
  };
  for (const [failure, lie] of Object.entries(lies)) {
    const { folder, fetching } = await fetchInto([content], content.digest, (request, response) => {
      if (request.url?.endsWith(layer) !== true) return false;
      lie((status, body) => void response.writeHead(status).end(body));
      return true;
    });
    expect((await failureOf(fetching)).failure).toBe(failure);
    expect(await readdir(folder)).toEqual([]);
  }
  const longer = await fetchInto([content], content.digest, (request, response) => {
    if (request.url?.endsWith(layer) !== true) return false;
    response.writeHead(200).end("not read by anyone".repeat(100));
    return true;
  });
  expect((await failureOf(longer.fetching)).failure).toBe("digest mismatch");
  const large = await fetchInto([image(null, "oci", "x".repeat(20_000))]);
  expect((await failureOf(large.fetching)).failure).toBe("too large");
});

test("a folder that is no layout has no image", async () => {
  expect(await readLayoutManifest(temporaryFolder())).toBeNull();
});
