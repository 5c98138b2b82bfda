import { execFileSync } from "node:child_process";
import { createPrivateKey, randomUUID, sign, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { required } from "../../../tools/required.js";
import { type LeftOut, type RunningServer, registryAccount, startRegistry } from "../../../tools/servers.js";
import { bundleLabels } from "../src/sources/bundle-media-types.js";
import { basicHeader } from "../src/sources/credentials.js";
import { readRef } from "../src/sources/read-ref.js";
import {
  apbImage,
  archive,
  artifact,
  base64,
  digestOf,
  failureOf,
  image,
  index,
  json,
  never,
  push,
  repositoriesOf,
  serve,
  sourceAt,
  temporaryFolder,
  uniqueRepository,
} from "./registry-lab.js";

// All of this is against Debian's docker-registry. Content is pushed to it by HTTP.

let registry: RunningServer | LeftOut;

beforeAll(async () => {
  registry = await startRegistry({ kind: "none" });
});

afterAll(async () => {
  if (!("leftOut" in registry)) await registry.stop();
});

const here = process.arch === "x64" ? "linux/amd64" : `linux/${process.arch}`;
const elsewhere = here === "linux/amd64" ? "linux/arm64" : "linux/amd64";

/** A test with the registry that all share, which other tests push to as well. */
function withRegistry(name: string, run: (url: string) => Promise<void>): void {
  test(name, async () => {
    const found = required("distribution against a real registry", registry);
    if (found !== undefined) await run(found.url);
  });
}

describe("a registry that asks nobody who comes", () => {
  withRegistry("lists repositories and tags over many pages", async (url) => {
    const fresh = required("a registry", await startRegistry({ kind: "none" }));
    if (fresh === undefined) return;
    onTestFinished(() => fresh.stop());
    expect(await repositoriesOf(sourceAt(fresh.url))).toEqual([]);
    const names = Array.from({ length: 120 }, (_, at) => `team/bundle-${String(at).padStart(3, "0")}`);
    const content = apbImage("name: x");
    for (const name of names) await push(fresh.url, name, "latest", content);
    const pages: number[] = [];
    for await (const page of sourceAt(fresh.url).repositories(never)) pages.push(page.length);
    expect(pages).toEqual([0, 100, 20]);
    expect(await repositoriesOf(sourceAt(fresh.url))).toEqual(names);
    const besides = sourceAt(fresh.url, {
      repositories: { kind: "catalog", besides: ["team/bundle-007", "not/listed"] },
    });
    expect(await repositoriesOf(besides)).toEqual(["not/listed", ...names]);
    const fixed = sourceAt(url, { repositories: { kind: "fixed", names: ["only/this"] } });
    expect(await repositoriesOf(fixed)).toEqual(["only/this"]);
  });

  withRegistry("F5-70: a registry that does not page tags is read all the same", async (url) => {
    const repository = uniqueRepository("team/many-tags");
    const content = apbImage("name: tagged");
    await push(url, repository, "v0", content);
    const tags = Array.from({ length: 120 }, (_, at) => `v${at}`);
    for (const tag of tags.slice(1)) await push(url, repository, tag, { ...content, blobs: [] });
    const source = sourceAt(url);
    expect(new Set(await source.tags(repository, never))).toEqual(new Set(tags));
    expect((await failureOf(sourceAt(url, { limits: { tags: 119 } }).tags(repository, never))).failure).toBe(
      "too large",
    );
  });

  withRegistry("a tag has a digest, and what is not there has none", async (url) => {
    const repository = uniqueRepository("team/resolved");
    const content = apbImage("name: resolved");
    await push(url, repository, "latest", content);
    const source = sourceAt(url);
    expect(await source.resolve({ repository, tag: "latest" }, never)).toBe(content.digest);
    expect(await source.resolve({ repository, tag: "other" }, never)).toBeNull();
    expect(await source.resolve({ repository: uniqueRepository("no"), tag: "latest" }, never)).toBeNull();
    expect(await source.tags(uniqueRepository("no"), never)).toBeNull();
    await source.probe(never);
    expect(await readRef(source, { repository, tag: "latest" }, never)).toMatchObject({
      digest: content.digest,
      bundle: { text: "name: resolved" },
    });
    expect(await readRef(source, { repository, tag: "other" }, never)).toBeNull();
  });

  withRegistry("F5-14: a repository whose manifests were all deleted has no tags", async (url) => {
    const repository = uniqueRepository("team/emptied");
    const content = apbImage("name: emptied");
    await push(url, repository, "latest", content);
    await fetch(`${url}/v2/${repository}/manifests/${content.digest}`, { method: "DELETE" });
    expect(await repositoriesOf(sourceAt(url))).toContain(repository);
    expect(await sourceAt(url).tags(repository, never)).toBeNull();
    expect(await sourceAt(url).resolve({ repository, tag: "latest" }, never)).toBeNull();
    expect((await failureOf(sourceAt(url).read(repository, content.digest, never))).failure).toBe("not found");
  });

  withRegistry("F5-7: a bundle whose parts the registry has lost is damaged, and not gone", async (url) => {
    const repository = uniqueRepository("team/damaged");
    const [content, child] = [apbImage("name: damaged"), apbImage("name: child")];
    await push(url, repository, "latest", content);
    await fetch(`${url}/v2/${repository}/blobs/${digestOf(content.blobs[0] ?? "")}`, { method: "DELETE" });
    expect(await sourceAt(url).resolve({ repository, tag: "latest" }, never)).toBe(content.digest);
    expect((await failureOf(sourceAt(url).read(repository, content.digest, never))).failure).toBe("malformed");
    await push(url, repository, child.digest, child);
    const parent = index([[here, child]]);
    await push(url, repository, "index", parent);
    await fetch(`${url}/v2/${repository}/manifests/${child.digest}`, { method: "DELETE" });
    expect((await failureOf(sourceAt(url).read(repository, parent.digest, never))).failure).toBe("malformed");
  });

  for (const kind of ["docker", "oci"] as const) {
    withRegistry(`reads a classic bundle from an image of ${kind}`, async (url) => {
      const repository = uniqueRepository("team/classic");
      const [plain, second] = [apbImage("name: classic", undefined, kind), apbImage("name: classic", "2", kind)];
      await push(url, repository, "v1", plain);
      await push(url, repository, "v2", second);
      const source = sourceAt(url, { imageHost: "registry.example" });
      expect(await source.read(repository, plain.digest, never)).toEqual({
        kind: "bundle",
        format: "apb",
        text: "name: classic",
        runtime: 1,
        artifact: { kind: "image", image: `registry.example/${repository}`, repository, digest: plain.digest },
      });
      expect(await source.read(repository, second.digest, never)).toMatchObject({ runtime: 2 });
    });

    withRegistry(
      `F5-37: an index of ${kind} is read when its platforms agree, and invalid when they differ`,
      async (url) => {
        const repository = uniqueRepository("team/index");
        const [one, same, other, none] = [
          apbImage("name: one", "2"),
          image({ [bundleLabels.apb]: base64("name: one"), [bundleLabels.apbRuntime[1]]: "2" }, "docker"),
          apbImage("name: other", "2"),
          image({ unrelated: "label" }),
        ];
        for (const each of [one, same, other, none]) await push(url, repository, each.digest, each);
        const read = async (content: ReturnType<typeof index>) => {
          await push(url, repository, "latest", content);
          return sourceAt(url).read(repository, content.digest, never);
        };
        const agree = index(
          [
            [here, one],
            [elsewhere, same],
            ["unknown/unknown", none],
          ],
          kind,
        );
        expect(await read(agree)).toMatchObject({
          kind: "bundle",
          text: "name: one",
          artifact: { digest: agree.digest },
        });
        expect(
          await read(
            index(
              [
                [here, one],
                [elsewhere, other],
              ],
              kind,
            ),
          ),
        ).toMatchObject({ kind: "invalid" });
        expect(
          await read(
            index(
              [
                [here, one],
                [elsewhere, none],
              ],
              kind,
            ),
          ),
        ).toMatchObject({ kind: "invalid" });
        expect(await read(index([[here, none]], kind))).toMatchObject({ kind: "not a bundle" });
        const annotations = { [bundleLabels.osbert]: base64("name: annotated") };
        const annotated = index(
          [
            [here, one],
            [elsewhere, other],
          ],
          "oci",
          annotations,
        );
        expect(await read(annotated)).toMatchObject({
          format: "osbert",
          text: "name: annotated",
          artifact: { kind: "image" },
        });
      },
    );
  }

  withRegistry("reads an image with Osbert's own label, and says what is no bundle", async (url) => {
    const repository = uniqueRepository("team/own");
    const [own, plain, empty] = [
      image({ [bundleLabels.osbert]: base64("name: own") }),
      image({ other: "x" }),
      image(null),
    ];
    for (const each of [own, plain, empty]) await push(url, repository, each.digest, each);
    const source = sourceAt(url);
    expect(await source.read(repository, own.digest, never)).toMatchObject({
      format: "osbert",
      text: "name: own",
      runtime: null,
    });
    expect(await source.read(repository, plain.digest, never)).toMatchObject({ kind: "not a bundle" });
    expect(await source.read(repository, empty.digest, never)).toMatchObject({ kind: "not a bundle" });
  });

  withRegistry("reads a bundle that is an artifact, and fetches its files", async (url) => {
    const repository = uniqueRepository("team/artifact");
    const layers = [
      await archive({ "osbert.yaml": "name: filed", "bin/run": "#!/bin/sh\n", "data/old": "old" }),
      await archive({ "data/old": "new" }),
    ];
    const content = artifact("name: filed # as written", layers);
    await push(url, repository, "latest", content);
    const source = sourceAt(url);
    const digest = await source.resolve({ repository, tag: "latest" }, never);
    expect(digest).toBe(content.digest);
    expect(await source.read(repository, content.digest, never)).toEqual({
      kind: "bundle",
      format: "osbert",
      text: "name: filed # as written",
      runtime: null,
      artifact: { kind: "files", repository, digest },
    });
    const folder = temporaryFolder();
    await source.fetch(repository, content.digest, folder, never);
    expect(readFileSync(join(folder, "osbert.yaml"), "utf8")).toBe("name: filed");
    expect(readFileSync(join(folder, "data/old"), "utf8")).toBe("new");
    expect(statSync(join(folder, "bin/run")).mode & 0o7000).toBe(0);
    expect((await failureOf(source.fetch(repository, apbImage("x").digest, temporaryFolder(), never))).failure).toBe(
      "not found",
    );
  });

  withRegistry("fetches the files of this machine's platform from an index", async (url) => {
    const repository = uniqueRepository("team/platforms");
    const [ours, theirs] = [
      artifact("name: both", [await archive({ which: "ours" })]),
      artifact("name: both", [await archive({ which: "theirs" })]),
    ];
    for (const each of [ours, theirs]) await push(url, repository, each.digest, each);
    const both = index([
      [elsewhere, theirs],
      [here, ours],
    ]);
    await push(url, repository, "latest", both);
    expect(await sourceAt(url).read(repository, both.digest, never)).toMatchObject({
      text: "name: both",
      artifact: { kind: "files" },
    });
    const folder = temporaryFolder();
    await sourceAt(url).fetch(repository, both.digest, folder, never);
    expect(readFileSync(join(folder, "which"), "utf8")).toBe("ours");
  });
});

test("a registry with passwords is read with them, and refuses others", async () => {
  const closed = required("a registry with htpasswd", await startRegistry({ kind: "htpasswd" }));
  if (closed === undefined) return;
  onTestFinished(() => closed.stop());
  const { username, password } = registryAccount;
  const content = apbImage("name: closed");
  await push(closed.url, "team/closed", "latest", content, { authorization: basicHeader(username, password) });
  const source = sourceAt(closed.url, { credentials: { kind: "basic", ...registryAccount } });
  await source.probe(never);
  expect(await repositoriesOf(source)).toEqual(["team/closed"]);
  expect(await source.resolve({ repository: "team/closed", tag: "latest" }, never)).toBe(content.digest);
  expect(await source.read("team/closed", content.digest, never)).toMatchObject({ text: "name: closed" });
  const wrong = sourceAt(closed.url, { credentials: { kind: "basic", username, password: "another-word" } });
  const refused = await failureOf(wrong.resolve({ repository: "team/closed", tag: "latest" }, never));
  expect(refused.failure).toBe("unauthorized");
  expect(refused.message).not.toContain("another-word");
  expect((await failureOf(repositoriesOf(wrong))).failure).toBe("unauthorized");
  expect((await failureOf(sourceAt(closed.url).probe(never))).failure).toBe("unauthorized");
});

test("a registry with tokens is read with those that its own server of tokens gives out", async () => {
  // The registry is Debian's; the server that signs tokens is written here and stands in for a vendor's.
  const folder = temporaryFolder();
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const subject = ["-subj", "/CN=tokens", "-days", "2", "-nodes", "-keyout", key, "-out", certificate];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", ...subject], {
    stdio: "ignore",
  });
  const pem = readFileSync(certificate, "utf8");
  const x5c = [new X509Certificate(pem).raw.toString("base64")];
  const account = { username: "reader", password: "tokens-for-me" };
  const tokens = await serve((request, response) => {
    if (request.headers.authorization !== basicHeader(account.username, account.password))
      return json(response, {}, {}, 401);
    const asked = new URL(request.url ?? "", "http://x").searchParams;
    const [type = "", name = "", actions = ""] = (asked.get("scope") ?? "::").split(":");
    const now = Math.floor(Date.now() / 1_000);
    const access = type === "" ? [] : [{ type, name, actions: actions.split(",") }];
    const claims = {
      iss: "test",
      sub: "",
      aud: asked.get("service"),
      exp: now + 300,
      nbf: now - 10,
      iat: now,
      jti: randomUUID(),
      access,
    };
    const text = [{ typ: "JWT", alg: "ES256", x5c }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    const signed = sign("sha256", Buffer.from(text), {
      key: createPrivateKey(readFileSync(key)),
      dsaEncoding: "ieee-p1363",
    });
    json(response, { token: `${text}.${signed.toString("base64url")}`, expires_in: 300 });
  });
  const started = await startRegistry({
    kind: "token",
    realm: `${tokens.url}/token`,
    service: "test-registry",
    certificate: pem,
  });
  const closed = required("a registry with tokens", started);
  if (closed === undefined) return;
  onTestFinished(() => closed.stop());

  const token = async (scope: string) => {
    const headers = { authorization: basicHeader(account.username, account.password) };
    const answer = await fetch(`${tokens.url}/token?service=test-registry&scope=${scope}`, { headers });
    return `Bearer ${((await answer.json()) as { token: string }).token}`;
  };
  const content = apbImage("name: by token");
  await push(closed.url, "team/tokens", "latest", content, {
    authorization: await token("repository:team/tokens:pull,push"),
  });

  const credentials = { kind: "basic", ...account } as const;
  const source = sourceAt(closed.url, { credentials, tokenHosts: [tokens.host] });
  await source.probe(never);
  expect(await repositoriesOf(source)).toEqual(["team/tokens"]);
  const before = tokens.seen.length;
  expect(await source.resolve({ repository: "team/tokens", tag: "latest" }, never)).toBe(content.digest);
  expect(await source.read("team/tokens", content.digest, never)).toMatchObject({ text: "name: by token" });
  expect(tokens.seen.slice(before).map(({ url }) => new URL(url, "http://x").searchParams.get("scope"))).toEqual([
    "repository:team/tokens:pull",
  ]);

  const careful = sourceAt(closed.url, { credentials });
  const asked = tokens.seen.length;
  const refused = await failureOf(careful.probe(never));
  expect(refused.failure).toBe("foreign host");
  expect(refused.message).toContain("tokenHosts");
  expect(tokens.seen.length).toBe(asked);
});
