import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Secret } from "@osbert/server/yaml";
import { describe, expect, test } from "vitest";
import type { Credentials } from "../src/sources/credentials.js";
import { dockerHubSource } from "../src/sources/dockerhub-source.js";
import { folderSource } from "../src/sources/folder-source.js";
import { type CredentialsPlace, openSource, type SourcePorts } from "../src/sources/open-source.js";
import { type PushedBundles, pushSource } from "../src/sources/push-source.js";
import { quaySource } from "../src/sources/quay-source.js";
import type { Digest, ReadBundle, Source } from "../src/sources/source.js";
import { defaultSourceLimits } from "../src/sources/source-limits.js";
import {
  apbImage,
  digestOf,
  failureOf,
  json,
  never,
  repositoriesOf,
  serve,
  serveContent,
  temporaryFolder,
  writeFiles,
} from "./registry-lab.js";

const limits = defaultSourceLimits;

describe("Docker Hub", () => {
  // The shapes are those that the API of Docker Hub answers with, written down here and served on loopback; the vendor itself is not asked.
  // Compared with its published reference: the token (`POST /v2/auth/token`, identifier and secret in, access_token out) and the path of a
  // namespace's repositories. The members of a page of them (count, next, results) are as they are known, and were not compared.
  const repository = (name: string) => ({
    name,
    namespace: "team",
    repository_type: "image",
    status: 1,
    is_private: false,
    pull_count: 7,
  });
  const pageOf = (results: readonly object[], count: number, next: string | null) => ({
    count,
    next,
    previous: null,
    results,
  });

  async function hub(
    pages: readonly (readonly string[])[],
    count: number,
    credentials: Credentials = { kind: "anonymous" },
  ) {
    const api = await serve((request, response, url) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
      if (pathname === "/v2/auth/token") return json(response, { access_token: "jwt-of-the-hub" });
      const at = Number(searchParams.get("page"));
      const next = at < pages.length ? `${url}${pathname}?page=${at + 1}` : null;
      json(response, pageOf((pages[at - 1] ?? []).map(repository), count, next));
    });
    const content = apbImage("name: from the hub");
    const registry = await serveContent([content]);
    const hosts = { api: api.url, registry: registry.url, tokens: "auth.example" };
    const source = dockerHubSource({ organization: "team", credentials: async () => credentials, limits, hosts });
    return { source, api, registry, content };
  }

  test("lists the repositories of an organisation over its pages, and reads them from its registry", async () => {
    const { source, api, content } = await hub([["a-apb", "b-apb"], ["c-apb"]], 3);
    expect(await repositoriesOf(source)).toEqual(["team/a-apb", "team/b-apb", "team/c-apb"]);
    expect(api.seen.map(({ url }) => url)).toEqual(
      [1, 2].map((page) => `/v2/namespaces/team/repositories?page_size=100&page=${page}`),
    );
    expect(await source.read("team/a-apb", content.digest, never)).toMatchObject({
      text: "name: from the hub",
      artifact: { image: "docker.io/team/a-apb" },
    });
  });

  test("logs in where credentials are given, and the registry sees nothing of that", async () => {
    const { source, api, registry } = await hub([["a"]], 1, {
      kind: "basic",
      username: "me",
      password: "hub-password",
    });
    await repositoriesOf(source);
    await source.probe(never);
    expect(api.seen.map(({ url, authorization }) => [url.split("?")[0], authorization])).toEqual([
      ["/v2/auth/token", undefined],
      ["/v2/namespaces/team/repositories", "Bearer jwt-of-the-hub"],
    ]);
    expect(JSON.stringify(registry.seen)).not.toMatch(/jwt-of-the-hub|hub-password/);
  });

  test("a list that lost something between its pages fails instead of being short", async () => {
    const { source } = await hub([["a", "b"], ["d"]], 4);
    expect((await failureOf(repositoriesOf(source))).failure).toBe("malformed");
  });

  test("an organisation that is not there, and documents that are no list, are never an empty list", async () => {
    for (const [status, body] of [
      [404, { message: "object not found" }],
      [200, { message: "maintenance" }],
      [200, { count: 0 }],
      [200, { count: 1, results: [{}] }],
      [500, pageOf([], 0, null)],
    ] as const) {
      const api = await serve((_, response) => json(response, body, {}, status));
      const hosts = { api: api.url, registry: api.url, tokens: "x" };
      const source = dockerHubSource({
        organization: "team",
        credentials: async () => ({ kind: "anonymous" }),
        limits,
        hosts,
      });
      expect(["not found", "malformed", "server error"]).toContain((await failureOf(repositoriesOf(source))).failure);
    }
  });

  test("a next page is never looked for on another host", async () => {
    const thief = await serve((_, response) => json(response, pageOf([repository("stolen")], 1, null)));
    const api = await serve((request, response) => {
      const page = new URL(request.url ?? "", "http://x").searchParams.get("page");
      json(
        response,
        page === "1" ? pageOf([repository("a")], 2, `${thief.url}/x`) : pageOf([repository("b")], 2, null),
      );
    });
    const hosts = { api: api.url, registry: api.url, tokens: "x" };
    const source = dockerHubSource({
      organization: "team",
      credentials: async () => ({ kind: "token", token: "t" }),
      limits,
      hosts,
    });
    expect(await repositoriesOf(source)).toEqual(["team/a", "team/b"]);
    expect(thief.seen).toEqual([]);
  });
});

describe("Quay", () => {
  // The shapes are those of Quay's API, written down here and served on loopback; the vendor itself is not asked. Compared with the published
  // reference of `listRepos`: the parameters `public`, `namespace` and `next_page`, the token as a bearer.
  const quay = (url: string, credentials: Credentials) =>
    quaySource({
      url: new URL(url),
      namespace: "team",
      credentials: async () => credentials,
      tls: { ca: null, verify: true },
      limits,
    });

  test("lists a namespace over its pages with a token, which its registry takes as a password", async () => {
    const content = apbImage("name: from quay");
    const server = await serveContent([content], (request, response, url) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
      if (pathname === "/v2/auth") {
        json(response, { token: "registry-token" });
        return true;
      }
      if (pathname.startsWith("/v2/") && request.headers.authorization !== "Bearer registry-token") {
        json(response, {}, { "www-authenticate": `Bearer realm="${url}/v2/auth",service="quay"` }, 401);
        return true;
      }
      if (pathname !== "/api/v1/repository") return false;
      const names = searchParams.get("next_page") === "gAAA+/=" ? ["c"] : ["a", "b"];
      const repositories = names.map((name) => ({
        namespace: "team",
        name,
        is_public: true,
        kind: "image",
        state: "NORMAL",
      }));
      json(response, { repositories, ...(names.length > 1 && { next_page: "gAAA+/=" }) });
      return true;
    });
    const source = quay(server.url, { kind: "token", token: "oauth" });
    expect(await repositoriesOf(source)).toEqual(["team/a", "team/b", "team/c"]);
    expect(server.seen.every(({ authorization }) => authorization === "Bearer oauth")).toBe(true);
    expect(await source.read("team/a", content.digest, never)).toMatchObject({ text: "name: from quay" });
    const asked = server.seen.find(({ url }) => url.startsWith("/v2/auth"));
    expect(asked?.authorization).toBe(`Basic ${Buffer.from("$oauthtoken:oauth").toString("base64")}`);
  });

  test("a document about an error, and a page that comes again and again, are never a short list", async () => {
    for (const [status, body] of [
      [403, { error_message: "no" }],
      [200, { error_message: "no" }],
      [200, { repositories: [{ name: 1 }] }],
      [200, { repositories: [{ name: "a" }], next_page: "same" }],
    ] as const) {
      const server = await serve((_, response) => json(response, body, {}, status));
      const failed = await failureOf(repositoriesOf(quay(server.url, { kind: "anonymous" })));
      expect(["forbidden", "malformed", "endless pages"]).toContain(failed.failure);
    }
  });
});

describe("a folder", () => {
  const bundles = {
    "one/osbert.yaml": "name: one",
    "one/bin/run": "#!/bin/sh\n",
    "two/apb.yml": "name: two",
    "three/readme": "none",
    "file.txt": "x",
  };

  function folder(files: Readonly<Record<string, string>> = bundles): {
    readonly path: string;
    readonly source: Source;
  } {
    const path = temporaryFolder();
    writeFiles(path, files);
    return { path, source: folderSource(path, limits) };
  }

  async function digestIn(source: Source, repository: string): Promise<Digest> {
    const digest = await source.resolve({ repository, tag: "latest" }, never);
    if (digest === null) throw new Error(`no ${repository}`);
    return digest;
  }

  test("each folder in it with a description is a bundle, and is read and fetched at its digest", async () => {
    const { path, source } = folder();
    chmodSync(join(path, "one/bin/run"), 0o755);
    expect(await repositoriesOf(source)).toEqual(["one", "two"]);
    expect([await source.tags("one", never), await source.tags("three", never)]).toEqual([["latest"], null]);
    const digest = await digestIn(source, "one");
    expect(await source.read("one", digest, never)).toEqual({
      kind: "bundle",
      format: "osbert",
      text: "name: one",
      runtime: null,
      artifact: { kind: "files", repository: "one", digest },
    });
    expect(await source.read("two", await digestIn(source, "two"), never)).toMatchObject({
      format: "apb",
      text: "name: two",
      runtime: null,
    });
    const into = temporaryFolder();
    await source.fetch("one", digest, into, never);
    expect(readFileSync(join(into, "osbert.yaml"), "utf8")).toBe("name: one");
    expect(statSync(join(into, "bin/run")).mode & 0o111).not.toBe(0);
    expect(await source.resolve({ repository: "one", tag: "v1" }, never)).toBeNull();
    expect(await source.resolve({ repository: "gone", tag: "latest" }, never)).toBeNull();
  });

  test("the digest is of names, of who can be run and of bytes, and of nothing else", async () => {
    const digests = new Map<string, Digest>();
    const change = async (name: string, act: (path: string) => void) => {
      const { path, source } = folder();
      act(join(path, "one"));
      digests.set(name, await digestIn(source, "one"));
    };
    await change("plain", () => undefined);
    await change("touched", (path) => utimesSync(join(path, "osbert.yaml"), 1, 1));
    await change("other rights", (path) => chmodSync(join(path, "osbert.yaml"), 0o600));
    await change("bytes", (path) => writeFileSync(join(path, "osbert.yaml"), "name: One"));
    await change("name", (path) => renameSync(join(path, "bin/run"), join(path, "bin/rum")));
    await change("can be run", (path) => chmodSync(join(path, "bin/run"), 0o755));
    await change("an empty folder", (path) => mkdirSync(join(path, "empty")));
    await change("a link", (path) => symlinkSync("bin/run", join(path, "link")));
    const { plain, touched, "other rights": rights, ...rest } = Object.fromEntries(digests);
    expect([touched, rights]).toEqual([plain, plain]);
    expect(new Set([plain, ...Object.values(rest)]).size).toBe(6);
  });

  test("a folder that changes meanwhile is not taken for what it was", async () => {
    const { path, source } = folder();
    const digest = await digestIn(source, "one");
    writeFileSync(join(path, "one/osbert.yaml"), "name: changed");
    expect((await failureOf(source.read("one", digest, never))).failure).toBe("digest mismatch");
    expect((await failureOf(source.fetch("one", digest, temporaryFolder(), never))).failure).toBe("not found");
  });

  test("links that lead out make it invalid, are never followed, and are never fetched", async () => {
    for (const [name, target] of Object.entries({
      up: "../../secret",
      absolute: "/etc/passwd",
      nowhere: "not-there",
    })) {
      const { path, source } = folder({ ...bundles, secret: "top secret" });
      symlinkSync(target, join(path, "one", name));
      const digest = await digestIn(source, "one");
      expect(await source.read("one", digest, never)).toMatchObject({
        kind: "invalid",
        why: expect.stringContaining(`the link ${name} `),
      });
      expect((await failureOf(source.fetch("one", digest, temporaryFolder(), never))).failure).toBe("malformed");
    }
  });

  test("a pipe in it is not waited for, and too much in it is too much", async () => {
    const { path, source } = folder();
    execFileSync("mkfifo", [join(path, "one/pipe")]);
    expect((await failureOf(digestIn(source, "one"))).failure).toBe("malformed");
    const small = folderSource(path, { ...limits, filesBytes: 5 });
    expect((await failureOf(digestIn(small, "two"))).failure).toBe("too large");
    const few = folderSource(path, { ...limits, files: 0 });
    expect((await failureOf(digestIn(few, "two"))).failure).toBe("too large");
    const { source: large } = folder({ "big/osbert.yaml": "x".repeat(limits.specBytes + 1) });
    expect(await large.read("big", await digestIn(large, "big"), never)).toMatchObject({ kind: "invalid" });
  });

  test("a folder that is not there removes nothing from the catalog", async () => {
    const { path, source } = folder();
    await source.probe(never);
    rmSync(path, { recursive: true });
    for (const work of [
      () => source.probe(never),
      () => repositoriesOf(source),
      () => source.tags("one", never),
      () => digestIn(source, "one"),
    ])
      expect((await failureOf(work())).failure).toBe("unreachable");
  });

  test("names that lead out of it are not looked at", async () => {
    const { source } = folder();
    for (const name of ["..", "../one", "/etc", "one/../two", "."])
      expect((await failureOf(source.tags(name, never))).failure).toBe("malformed");
  });
});

test("F5-64: what was pushed is a source of its own, and goes only when it is removed", async () => {
  const digest = digestOf("pushed");
  const bundle: ReadBundle = {
    kind: "bundle",
    format: "apb",
    text: "name: pushed",
    runtime: 2,
    artifact: { kind: "image", image: "x/y", digest },
  };
  const kept = new Map([["team/pushed", bundle]]);
  const pushed: PushedBundles = {
    list: async () => [...kept.keys()].map((repository) => ({ ref: { repository, tag: "latest" }, digest })),
    read: async (repository) => kept.get(repository) ?? null,
    fetch: async () => undefined,
  };
  const source = pushSource(pushed);
  expect(await repositoriesOf(source)).toEqual(["team/pushed"]);
  expect(await source.tags("team/pushed", never)).toEqual(["latest"]);
  expect(await source.resolve({ repository: "team/pushed", tag: "latest" }, never)).toBe(digest);
  expect(await source.read("team/pushed", digest, never)).toEqual(bundle);
  kept.clear();
  expect(await source.resolve({ repository: "team/pushed", tag: "latest" }, never)).toBeNull();
  expect((await failureOf(source.read("team/pushed", digest, never))).failure).toBe("not found");
});

describe("opening a source", () => {
  const nothing: PushedBundles = { list: async () => [], read: async () => null, fetch: async () => undefined };
  const ports = (folder: string, environment: Readonly<Record<string, string>> = {}): SourcePorts => ({
    readFile: (path) => readFile(path, "utf8"),
    environment: (name) => environment[name],
    pushed: nothing,
    folder,
  });

  async function authorizationWith(credentials: CredentialsPlace, given: SourcePorts): Promise<string | undefined> {
    const server = await serve((request, response) => {
      const isAsking = request.headers.authorization === undefined;
      json(response, {}, { "www-authenticate": "Basic realm=x" }, isAsking ? 401 : 200);
    });
    const connection = {
      kind: "distribution",
      url: server.url,
      repositories: { kind: "fixed", names: [] },
      credentials,
      tokenHosts: [],
      tls: { ca: null, verify: true },
    } as const;
    await (await openSource(connection, given)).probe(never);
    return server.seen.at(-1)?.authorization;
  }

  test("credentials come from texts, files and the environment", async () => {
    const folder = temporaryFolder();
    writeFiles(folder, { password: "from-a-file\n", both: "username: me\npassword: '7'\n", token: "token: t0k" });
    const me = { kind: "text", text: new Secret("me") } as const;
    const basic = (password: string) => `Basic ${Buffer.from(`me:${password}`).toString("base64")}`;
    const file = { kind: "basic", username: me, password: { kind: "file", path: "password" } } as const;
    expect(await authorizationWith(file, ports(folder))).toBe(basic("from-a-file"));
    const environment = { kind: "basic", username: me, password: { kind: "environment", name: "P" } } as const;
    expect(await authorizationWith(environment, ports(folder, { P: "from-the-environment" }))).toBe(
      basic("from-the-environment"),
    );
    expect(await authorizationWith({ kind: "file", path: "both" }, ports(folder))).toBe(basic("7"));
    expect(await authorizationWith({ kind: "file", path: "token" }, ports(folder))).toBe("Bearer t0k");
  });

  test("credentials that cannot be had are a failure of the source that tells what is wrong and nothing else", async () => {
    const folder = temporaryFolder();
    writeFiles(folder, {
      half: "username: very-secret",
      rubbish: "password: [very-secret",
      lines: "token: 'very\n\n  secret'",
    });
    const places: readonly CredentialsPlace[] = [
      ...["half", "rubbish", "lines", "not-there"].map((path) => ({ kind: "file", path }) as const),
      { kind: "token", token: { kind: "environment", name: "NOT_SET" } },
    ];
    for (const place of places) {
      const failed = await failureOf(authorizationWith(place, ports(folder)));
      expect(failed.failure).toBe("unauthorized");
      expect(`${failed.message} ${String(failed.error.cause)}`).not.toMatch(/very.*secret/s);
    }
  });

  test("every kind of connection opens", async () => {
    const folder = temporaryFolder();
    writeFiles(folder, { "bundles/one/osbert.yaml": "name: one" });
    const credentials = { kind: "anonymous" } as const;
    expect(await repositoriesOf(await openSource({ kind: "folder", path: "bundles" }, ports(folder)))).toEqual(["one"]);
    expect(await repositoriesOf(await openSource({ kind: "push" }, ports(folder)))).toEqual([]);
    await openSource({ kind: "dockerhub", organization: "team", credentials }, ports(folder));
    const tls = { ca: "missing.pem", verify: true };
    await expect(
      openSource({ kind: "quay", url: "https://quay.example", namespace: "a", credentials, tls }, ports(folder)),
    ).rejects.toThrow("ENOENT");
  });
});
