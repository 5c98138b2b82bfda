import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Header, type HeaderData } from "tar";
import { describe, expect, onTestFinished, test } from "vitest";
import { bundleLabels } from "../src/sources/bundle-media-types.js";
import type { Credentials } from "../src/sources/credentials.js";
import type { SourceFailure } from "../src/sources/source-error.js";
import {
  apbImage,
  artifact,
  base64,
  digestOf,
  failureOf,
  image,
  index,
  json,
  never,
  repositoriesOf,
  type Seen,
  serve,
  serveContent,
  sourceAt,
  temporaryFolder,
} from "./registry-lab.js";

// Registries that lie, written here and served on loopback. None of it may take memory, time or credentials, and nothing of it may look like
// something that is gone.

const password = "never-to-be-seen";
const credentials: Credentials = { kind: "basic", username: "osbert", password };
const repository = "team/bundle";
const digest = digestOf("anything");

/** That nothing that a host was sent holds the password, in any form that it is sent in. */
function expectNoCredentials(seen: readonly Seen[]): void {
  const all = JSON.stringify(seen);
  for (const secret of [password, base64(`osbert:${password}`), "a-token"]) expect(all).not.toContain(secret);
  for (const { authorization } of seen) expect(authorization).toBeUndefined();
}

describe("lists", () => {
  const page = (names: readonly string[], next?: string) =>
    serve((_, response) =>
      json(response, { repositories: names }, next === undefined ? {} : { link: `<${next}>; rel="next"` }),
    );

  test("F5-12: a page that leads back to itself, or to an earlier one, is no end", async () => {
    const loop = await page(["a"], "/v2/_catalog?n=100");
    expect((await failureOf(repositoriesOf(sourceAt(loop.url)))).failure).toBe("endless pages");
    const repeated = await serve((request, response) => {
      const at = Number(new URL(request.url ?? "", "http://x").searchParams.get("last") ?? 0);
      json(response, { repositories: ["a", "b"] }, { link: `</v2/_catalog?last=${at + 1}>; rel="next"` });
    });
    expect((await failureOf(repositoriesOf(sourceAt(repeated.url)))).failure).toBe("endless pages");
    expect(repeated.seen.length).toBe(2);
  });

  test("pages without end, with new names or with none, end at the limits", async () => {
    const endless = (names: (at: number) => readonly string[]) =>
      serve((request, response) => {
        const at = Number(new URL(request.url ?? "", "http://x").searchParams.get("last") ?? 0);
        json(response, { repositories: names(at) }, { link: `</v2/_catalog?last=${at + 1}>; rel="next"` });
      });
    const fresh = await endless((at) => [`a${at}`]);
    expect((await failureOf(repositoriesOf(sourceAt(fresh.url, { limits: { pages: 20 } })))).failure).toBe(
      "endless pages",
    );
    expect(fresh.seen.length).toBe(20);
    const empty = await endless(() => []);
    expect((await failureOf(repositoriesOf(sourceAt(empty.url, { limits: { pages: 20 } })))).failure).toBe(
      "endless pages",
    );
    const many = await endless((at) => Array.from({ length: 100 }, (_, each) => `a${at}-${each}`));
    expect((await failureOf(repositoriesOf(sourceAt(many.url, { limits: { repositories: 250 } })))).failure).toBe(
      "too large",
    );
    expect(many.seen.length).toBe(3);
  });

  test("F5-12: a next page on another host is refused, and nobody is asked there", async () => {
    const thief = await serve((_, response) => json(response, { repositories: ["stolen"] }));
    const source = await serve((request, response) => {
      if (request.headers.authorization === undefined)
        return json(response, {}, { "www-authenticate": 'Basic realm="x"' }, 401);
      json(response, { repositories: ["a"] }, { link: `<${thief.url}/v2/_catalog?last=a>; rel="next"` });
    });
    const failed = await failureOf(repositoriesOf(sourceAt(source.url, { credentials })));
    expect(failed.failure).toBe("foreign host");
    expect(thief.seen).toEqual([]);
    const elsewhere = await page(["a"], "/admin/delete-all");
    expect((await failureOf(repositoriesOf(sourceAt(elsewhere.url)))).failure).toBe("malformed");
    expect(elsewhere.seen.length).toBe(1);
  });

  test("F5-11: a list that breaks off at a page gives the pages before it, and then fails", async () => {
    const source = await serve((request, response) => {
      if (request.url?.includes("last") === true) return json(response, {}, {}, 500);
      json(response, { repositories: ["a", "b"] }, { link: '</v2/_catalog?last=b>; rel="next"' });
    });
    const seen: string[] = [];
    const read = async () => {
      for await (const names of sourceAt(source.url).repositories(never)) seen.push(...names);
    };
    expect((await failureOf(read())).failure).toBe("server error");
    expect(seen).toEqual(["a", "b"]);
  });

  test("F5-13: 200 with an empty list is an empty list, for the guard to judge; other documents are none", async () => {
    expect(await repositoriesOf(sourceAt((await page([])).url))).toEqual([]);
    const documents = [
      "{}",
      "[]",
      "null",
      '{"errors":[]}',
      '{"repositories":{}}',
      '{"repositories":[1]}',
      "<html>",
      "",
      '{"repositories":["a"',
    ];
    for (const document of [...documents, `{"repositories":["${"a".repeat(5_000)}"]}`]) {
      const source = await serve((_, response) => response.end(document));
      expect((await failureOf(repositoriesOf(sourceAt(source.url)))).failure).toBe("malformed");
    }
  });

  test("F5-15, F5-16: a list that is refused, or not offered, is said to be that", async () => {
    const failures: Readonly<Record<number, SourceFailure>> = {
      403: "forbidden",
      404: "no catalog",
      405: "no catalog",
      500: "server error",
      302: "malformed",
    };
    for (const [status, failure] of Object.entries(failures)) {
      const source = await serve((_, response) => json(response, { repositories: [] }, {}, Number(status)));
      expect((await failureOf(repositoriesOf(sourceAt(source.url)))).failure).toBe(failure);
    }
  });

  test("names in other alphabets come through as they are, and cannot be asked for", async () => {
    const names = ["команда/бд", "../../etc", "a/b", "Ａ"];
    const source = await page(names);
    expect(await repositoriesOf(sourceAt(source.url))).toEqual([...names].sort());
    const asked = source.seen.length;
    for (const name of ["команда/бд", "../../etc", "a/../b", "a?x=", "a#", "", "a/"]) {
      expect((await failureOf(sourceAt(source.url).tags(name, never))).failure).toBe("malformed");
      expect((await failureOf(sourceAt(source.url).read(name, digest, never))).failure).toBe("malformed");
    }
    expect((await failureOf(sourceAt(source.url).resolve({ repository: "a", tag: "../x" }, never))).failure).toBe(
      "malformed",
    );
    expect(source.seen.length).toBe(asked);
  });
});

describe("what is not there", () => {
  test("404 makes a ref absent only when a registry says it", async () => {
    const proxy = await serve((_, response) => response.writeHead(404).end("<html>404 backend not found</html>"));
    const ref = { repository, tag: "latest" };
    expect((await failureOf(sourceAt(proxy.url).resolve(ref, never))).failure).toBe("malformed");
    expect((await failureOf(sourceAt(proxy.url).tags(repository, never))).failure).toBe("malformed");
    const registry = await serve((_, response) => json(response, { errors: [{ code: "MANIFEST_UNKNOWN" }] }, {}, 404));
    expect(await sourceAt(registry.url).resolve(ref, never)).toBeNull();
    expect(await sourceAt(registry.url).tags(repository, never)).toBeNull();
    expect((await failureOf(sourceAt(registry.url).read(repository, digest, never))).failure).toBe("not found");
  });

  test("F5-15: 401, 403, 429 and 5xx are failures, whatever stands in them", async () => {
    const failures: Readonly<Record<number, SourceFailure>> = {
      401: "unauthorized",
      403: "forbidden",
      429: "rate limited",
      500: "server error",
      503: "server error",
      418: "malformed",
    };
    for (const [status, failure] of Object.entries(failures)) {
      const headers = { "retry-after": "7200", "www-authenticate": 'Basic realm="x"' };
      const source = await serve((_, response) =>
        json(response, { errors: [{ code: "MANIFEST_UNKNOWN" }] }, headers, Number(status)),
      );
      const failed = await failureOf(
        sourceAt(source.url, { credentials }).resolve({ repository, tag: "latest" }, never),
      );
      expect(failed.failure).toBe(failure);
      expect(failed.error.retryAfterMs).toBe(3_600_000);
      expect(failed.message).not.toContain(password);
    }
  });

  test("a source that asks to come again soon is waited for, twice and no longer", async () => {
    const content = apbImage("name: x");
    let refusals = 2;
    const busy = await serveContent([content], (_, response) => {
      if (refusals-- <= 0) return false;
      json(response, {}, { "retry-after": "0" }, 429);
      return true;
    });
    expect(await sourceAt(busy.url).resolve({ repository, tag: "latest" }, never)).toBe(content.digest);
    const always = await serve((_, response) => json(response, {}, { "retry-after": "0" }, 429));
    expect((await failureOf(sourceAt(always.url).probe(never))).failure).toBe("rate limited");
    expect(always.seen.length).toBe(3);
  });

  test("nobody there, something else there, and nothing but silence are told apart", async () => {
    const gone = createTcpServer().listen(0, "127.0.0.1");
    await once(gone, "listening");
    const { port } = gone.address() as AddressInfo;
    gone.close();
    await once(gone, "close");
    expect((await failureOf(sourceAt(`http://127.0.0.1:${port}`).probe(never))).failure).toBe("unreachable");
    const other = createTcpServer((socket) =>
      socket.on("error", () => undefined).end("220 mail.example ESMTP\r\n"),
    ).listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    expect(
      (await failureOf(sourceAt(`http://127.0.0.1:${(other.address() as AddressInfo).port}`).probe(never))).failure,
    ).toBe("malformed");
    const silent = await serve(() => undefined);
    expect((await failureOf(sourceAt(silent.url, { limits: { requestMs: 200 } }).probe(never))).failure).toBe(
      "timeout",
    );
  });

  test("who calls it off is not kept waiting, and it is no failure of the source", async () => {
    const controller = new AbortController();
    const silent = await serve(() => controller.abort(new Error("enough")));
    await expect(sourceAt(silent.url).probe(controller.signal)).rejects.toThrow("enough");
    await expect(sourceAt(silent.url).probe(AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
  });

  test("a certificate that nobody vouches for is refused, one of a given authority is not, and one that is not looked at neither", async () => {
    const folder = temporaryFolder();
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const options = [
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=registry",
      "-addext",
      "subjectAltName=IP:127.0.0.1",
      "-keyout",
      key,
      "-out",
      cert,
    ];
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", ...options], {
      stdio: "ignore",
    });
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) =>
      json(response, {}),
    );
    onTestFinished(() => void server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await failureOf(sourceAt(url).probe(never))).failure).toBe("tls");
    await sourceAt(url, { tls: { ca: readFileSync(cert, "utf8"), verify: true } }).probe(never);
    await sourceAt(url, { tls: { ca: null, verify: false } }).probe(never);
    server.closeAllConnections();
  });
});

describe("bytes", () => {
  const answering = (
    path: RegExp,
    body: (response: import("node:http").ServerResponse) => void,
    contents = [apbImage("name: x")],
  ) =>
    serveContent(contents, (request, response) => {
      if (request.method !== "GET" || !path.test(request.url ?? "")) return false;
      body(response);
      return true;
    });
  const content = apbImage("name: x");

  test("F3, F5-7: a manifest and a blob that are not what their digest says are damaged", async () => {
    const other = apbImage("name: other");
    const manifest = await answering(/manifests/, (response) => response.end(other.manifest));
    expect((await failureOf(sourceAt(manifest.url).read(repository, content.digest, never))).failure).toBe(
      "digest mismatch",
    );
    const flipped = Buffer.from(content.blobs[0] ?? []);
    flipped[0] = (flipped[0] ?? 0) ^ 1;
    for (const [bytes, failure] of [
      [flipped, "digest mismatch"],
      [flipped.subarray(1), "digest mismatch"],
      [Buffer.concat([flipped, flipped]), "too large"],
    ] as const) {
      const blob = await answering(/blobs/, (response) => response.end(bytes));
      expect((await failureOf(sourceAt(blob.url).read(repository, content.digest, never))).failure).toBe(failure);
    }
  });

  test("a digest in a header that is none is not believed, and the bytes are asked instead", async () => {
    for (const lie of ["sha256:abc", "md5:x", "", "sha256:../../x"]) {
      const source = await serveContent([content], (request, response) => {
        if (request.method !== "HEAD") return false;
        response.writeHead(200, { "docker-content-digest": lie }).end();
        return true;
      });
      expect(await sourceAt(source.url).resolve({ repository, tag: "latest" }, never)).toBe(content.digest);
    }
  });

  test("F3: a manifest of a gigabyte is not read, whether it says its size or not", async () => {
    const said = await answering(/manifests/, (response) =>
      response.writeHead(200, { "content-length": String(2 ** 30) }).write("x"),
    );
    expect((await failureOf(sourceAt(said.url).read(repository, digest, never))).failure).toBe("too large");
    let sent = 0;
    const unsaid = await answering(/manifests/, (response) => {
      const chunk = Buffer.alloc(65_536, " ");
      const more = () => {
        while (!response.destroyed && sent < 2 ** 30) {
          sent += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", more);
        }
      };
      more();
    });
    expect((await failureOf(sourceAt(unsaid.url).read(repository, digest, never))).failure).toBe("too large");
    expect(sent).toBeLessThan(2 ** 26);
  });

  test("a gzip bomb in the place of an answer is not unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const source = await answering(/manifests/, (response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb),
    );
    expect((await failureOf(sourceAt(source.url).read(repository, digest, never))).failure).toBe("malformed");
    expect(source.seen.every(({ headers }) => headers["accept-encoding"] === "identity")).toBe(true);
  });

  test("F3: bytes that come one by one end in their time, as do those that stop coming", async () => {
    const slow = await answering(/manifests/, (response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(" "), 10);
      response.once("close", () => clearInterval(timer));
    });
    expect(
      (await failureOf(sourceAt(slow.url, { limits: { requestMs: 300 } }).read(repository, digest, never))).failure,
    ).toBe("timeout");
    const blob = await answering(/blobs/, (response) => response.writeHead(200).write("{"));
    expect(
      (await failureOf(sourceAt(blob.url, { limits: { requestMs: 300 } }).read(repository, content.digest, never)))
        .failure,
    ).toBe("timeout");
    const cut = await answering(/manifests/, (response) => {
      response.writeHead(200, { "content-length": "500" });
      response.write("{");
      response.socket?.destroy();
    });
    expect((await failureOf(sourceAt(cut.url).read(repository, digest, never))).failure).toBe("unreachable");
    const headers = await serve((_, response) => response.writeHead(200, { "x-much": "x".repeat(100_000) }).end());
    expect((await failureOf(sourceAt(headers.url).probe(never))).failure).toBe("malformed");
  });

  test("what has the right digest and makes no sense removes nothing", async () => {
    const config = content.manifest.replace(/.*("config":\{[^}]*\}).*/, "$1");
    const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const rubbish = [
      "{}",
      "[]",
      "null",
      "",
      "\u0000",
      nested,
      `{"manifests":[1]}`,
      `{"manifests":[],${config},"layers":[]}`,
      `{${config}}`,
      `{${config},"layers":[{}]}`,
      '{"schemaVersion":2,"config":{"mediaType":"x","digest":"sha512:x","size":1},"layers":[]}',
    ];
    for (const manifest of rubbish) {
      const source = await serveContent([{ ...content, manifest, digest: digestOf(manifest) }]);
      expect((await failureOf(sourceAt(source.url).read(repository, digestOf(manifest), never))).failure).toBe(
        "malformed",
      );
    }
  });

  test("other things that registries hold are no bundles", async () => {
    for (const [name, document] of Object.entries({
      "schema 1": { schemaVersion: 1, name: "x", fsLayers: [] },
      "another type": { mediaType: "application/vnd.example+json" },
      "a chart": {
        ...JSON.parse(content.manifest),
        config: { mediaType: "application/vnd.cncf.helm.config.v1+json", digest, size: 2 },
      },
    })) {
      const manifest = JSON.stringify(document);
      const source = await serveContent([{ ...content, manifest, digest: digestOf(manifest) }]);
      expect([name, await sourceAt(source.url).read(repository, digestOf(manifest), never)]).toMatchObject([
        name,
        { kind: "not a bundle" },
      ]);
    }
  });

  test("labels that are not base64, not UTF-8, too large, or of an impossible runtime are invalid, and say why", async () => {
    const runtime = { [bundleLabels.apb]: base64("name: x"), [bundleLabels.apbRuntime[0]]: "two" };
    const labels = [
      { [bundleLabels.apb]: "*** not base64 ***" },
      { [bundleLabels.apb]: "" },
      { [bundleLabels.osbert]: "abcde" },
      { [bundleLabels.apb]: Buffer.from([0xff, 0xfe, 0x00]).toString("base64") },
      { [bundleLabels.osbert]: base64("x".repeat(1_200_000)) },
      runtime,
    ];
    for (const each of labels) {
      const invalid = image(each);
      const read = await sourceAt((await serveContent([invalid])).url).read(repository, invalid.digest, never);
      expect(read).toMatchObject({ kind: "invalid", why: expect.stringContaining("the label ") });
    }
    const lines = image({ [bundleLabels.apb]: `${base64("name: in lines").replaceAll(/(.{8})/g, "$1\n")}` });
    expect(await sourceAt((await serveContent([lines])).url).read(repository, lines.digest, never)).toMatchObject({
      text: "name: in lines",
    });
  });

  test("an index of a thousand platforms, and one that holds itself, are bounded", async () => {
    const many = index(Array.from({ length: 1_000 }, () => ["linux/amd64", content] as const));
    const crowded = await serveContent([many, content]);
    expect((await failureOf(sourceAt(crowded.url).read(repository, many.digest, never))).failure).toBe("too large");
    const inner = index([["linux/amd64", content]]);
    const outer = index([["linux/amd64", inner]]);
    const nested = await serveContent([outer, inner, content]);
    expect(await sourceAt(nested.url).read(repository, outer.digest, never)).toMatchObject({ kind: "not a bundle" });
  });
});

describe("redirects and credentials", () => {
  const content = apbImage("name: led elsewhere");
  const asking = (request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => {
    if (request.headers.authorization !== undefined) return false;
    json(response, {}, { "www-authenticate": 'Basic realm="x"' }, 401);
    return true;
  };

  test("a blob is followed to another host, without credentials", async () => {
    const store = await serve((request, response) => {
      response.end(content.blobs.find((blob) => request.url?.endsWith(digestOf(blob).slice(7))));
    });
    const source = await serveContent([content], (request, response) => {
      if (asking(request, response)) return true;
      const [, hex] = /blobs\/sha256:(.*)/.exec(request.url ?? "") ?? [];
      if (hex === undefined) return false;
      response.writeHead(307, { location: `${store.url}/signed/${hex}` }).end();
      return true;
    });
    expect(await sourceAt(source.url, { credentials }).read(repository, content.digest, never)).toMatchObject({
      text: "name: led elsewhere",
    });
    expect(store.seen.length).toBe(1);
    expectNoCredentials(store.seen);
    expect(source.seen.some(({ authorization }) => authorization?.startsWith("Basic "))).toBe(true);
  });

  test("nothing but a blob is followed to another host, and nobody is asked there", async () => {
    const thief = await serve((_, response) =>
      json(response, { repositories: ["stolen"], tags: ["stolen"] }, { "docker-content-digest": content.digest }),
    );
    const source = await serve((request, response) => {
      if (!asking(request, response)) response.writeHead(302, { location: `${thief.url}${request.url}` }).end();
    });
    const open = sourceAt(source.url, { credentials });
    const works = [
      () => open.probe(never),
      () => repositoriesOf(open),
      () => open.tags(repository, never),
      () => open.resolve({ repository, tag: "a" }, never),
      () => open.read(repository, digest, never),
    ];
    for (const work of works) expect((await failureOf(work())).failure).toBe("foreign host");
    expect(thief.seen).toEqual([]);
  });

  test("a redirect that stays is followed with credentials, one that turns in a circle is not for ever, one that lies about its place is not at all", async () => {
    const moved = await serveContent([content], (request, response) => {
      if (asking(request, response)) return true;
      if (request.url?.startsWith("/v2/") !== true || request.url.includes("?moved")) return false;
      response.writeHead(308, { location: `${request.url}?moved` }).end();
      return true;
    });
    await failureOf(sourceAt(moved.url, { credentials }).probe(never));
    expect(moved.seen.at(-1)).toMatchObject({ url: "/v2/?moved", authorization: expect.stringContaining("Basic ") });
    const circle = await serve((request, response) => response.writeHead(302, { location: request.url }).end());
    expect((await failureOf(sourceAt(circle.url).probe(never))).failure).toBe("malformed");
    expect(circle.seen.length).toBeLessThan(10);
    for (const location of [
      "ftp://x.example/",
      "file:///etc/passwd",
      "http://user:word@127.0.0.1/",
      "http://[",
      "//",
    ]) {
      const liar = await serve((_, response) => response.writeHead(302, { location }).end());
      expect(["foreign host", "malformed"]).toContain((await failureOf(sourceAt(liar.url).probe(never))).failure);
    }
  });

  test("a blob is not followed to where machines of a cloud get their credentials", async () => {
    for (const target of [
      "http://169.254.169.254/latest/meta-data/",
      "http://[fe80::1]/",
      "http://[::ffff:169.254.169.254]/",
      "http://2852039166/",
    ]) {
      const source = await serveContent([content], (request, response) => {
        if (request.url?.includes("/blobs/") !== true) return false;
        response.writeHead(307, { location: target }).end();
        return true;
      });
      const failed = await failureOf(sourceAt(source.url).read(repository, content.digest, never));
      expect(failed.failure).toBe("foreign host");
      expect(failed.message).toContain("nearer to this machine");
    }
  });

  test("a store of blobs that asks for credentials itself gets none", async () => {
    const store = await serve((_, response, url) =>
      json(response, {}, { "www-authenticate": `Bearer realm="${url}/token"` }, 401),
    );
    const source = await serveContent([content], (request, response) => {
      if (asking(request, response)) return true;
      if (request.url?.includes("/blobs/") !== true) return false;
      response.writeHead(307, { location: `${store.url}/blob` }).end();
      return true;
    });
    expect(
      (await failureOf(sourceAt(source.url, { credentials }).read(repository, content.digest, never))).failure,
    ).toBe("unauthorized");
    expectNoCredentials(store.seen);
  });

  test("F5-12: a registry that says its tokens are given out elsewhere does not get the credentials sent there", async () => {
    const thief = await serve((_, response) => json(response, { token: "a-token" }));
    const source = await serve((_, response) =>
      json(response, {}, { "www-authenticate": `Bearer realm="${thief.url}/token",service="x"` }, 401),
    );
    const failed = await failureOf(sourceAt(source.url, { credentials }).probe(never));
    expect(failed.failure).toBe("foreign host");
    expect(failed.message).toContain(`${thief.host}; if that belongs to it, add it to tokenHosts`);
    expect(thief.seen).toEqual([]);
    // Without credentials there is nothing to lose.
    expect((await failureOf(sourceAt(source.url).probe(never))).failure).toBe("unauthorized");
    expectNoCredentials(thief.seen);
  });

  test("a token goes to the registry alone, with the scope that is needed and not the one that was asked for", async () => {
    const tokens = await serve((_, response) => json(response, { access_token: "a-token", expires_in: 300 }));
    const store = await serve((request, response) =>
      response.end(content.blobs.find((blob) => request.url?.endsWith(digestOf(blob).slice(7)))),
    );
    const source = await serveContent([content], (request, response) => {
      if (request.headers.authorization !== "Bearer a-token") {
        json(
          response,
          {},
          {
            "www-authenticate": `Bearer realm="${tokens.url}/token",service="x",scope="repository:${repository}:push,pull,delete"`,
          },
          401,
        );
        return true;
      }
      const [, hex] = /blobs\/sha256:(.*)/.exec(request.url ?? "") ?? [];
      if (hex === undefined) return false;
      response.writeHead(307, { location: `${store.url}/${hex}` }).end();
      return true;
    });
    const open = sourceAt(source.url, { credentials, tokenHosts: [tokens.host] });
    expect(await open.read(repository, content.digest, never)).toMatchObject({ text: "name: led elsewhere" });
    expect(tokens.seen.map(({ url }) => url)).toEqual([
      `/token?service=x&scope=${encodeURIComponent(`repository:${repository}:pull`)}`,
    ]);
    expectNoCredentials(store.seen);
  });

  test("tokens that run out are asked for again, and those that never help end", async () => {
    let count = 0;
    const tokens = await serve((_, response) => json(response, { token: `t${++count}` }));
    const source = await serveContent([content], (request, response) => {
      if (request.headers.authorization === `Bearer t${count}` && count > 0) return false;
      json(response, {}, { "www-authenticate": `Bearer realm="${tokens.url}/token"` }, 401);
      return true;
    });
    const open = sourceAt(source.url);
    await open.probe(never);
    count++;
    await open.probe(never);
    expect(count).toBe(3);
    const stubborn = await serve((_, response) =>
      json(response, {}, { "www-authenticate": `Bearer realm="${tokens.url}/token"` }, 401),
    );
    expect((await failureOf(sourceAt(stubborn.url).probe(never))).failure).toBe("unauthorized");
    expect(stubborn.seen.length).toBeLessThan(5);
  });

  test.each([
    ["a place for tokens that is not trusted", "foreign host", 'Bearer realm="http://127.0.0.2:9/token"', credentials],
    ["a place for tokens where nobody is", "unreachable", 'Bearer realm="http://127.0.0.1:9/token"', undefined],
    ["credentials that there are none of", "unauthorized", 'Basic realm="x"', undefined],
  ] as const)("a registry that once asked for %s is asked again", async (_, failure, challenge, own) => {
    let isWrong = true;
    const source = await serve((_request, response) => {
      if (isWrong) json(response, {}, { "www-authenticate": challenge }, 401);
      else json(response, {});
    });
    const open = sourceAt(source.url, own === undefined ? {} : { credentials: own });
    expect((await failureOf(open.probe(never))).failure).toBe(failure);
    isWrong = false;
    await open.probe(never);
  });

  test("tokens that are none do not become a header", async () => {
    for (const document of [{ token: "a\r\nx-evil: 1" }, { token: 7 }, {}, { token: "" }, []]) {
      const tokens = await serve((_, response) => json(response, document));
      const source = await serve((_, response) =>
        json(response, {}, { "www-authenticate": `Bearer realm="${tokens.url}"` }, 401),
      );
      expect((await failureOf(sourceAt(source.url).probe(never))).failure).toBe("malformed");
    }
    for (const challenge of [
      "",
      "Digest realm=x",
      "Bearer",
      'Bearer realm="',
      "Bearer realm=nowhere",
      'Bearer realm="file:///etc/passwd"',
    ]) {
      const source = await serve((_, response) => json(response, {}, { "www-authenticate": challenge }, 401));
      expect(["unauthorized", "malformed", "foreign host"]).toContain(
        (await failureOf(sourceAt(source.url).probe(never))).failure,
      );
    }
  });
});

describe("archives", () => {
  type Entry = HeaderData & { readonly body?: string };

  function tar(entries: readonly Entry[]): Buffer {
    const blocks = entries.flatMap(({ body = "", ...data }) => {
      const header = new Header({
        mode: 0o644,
        size: Buffer.byteLength(body),
        type: "File",
        mtime: new Date(0),
        uid: 0,
        gid: 0,
        ...data,
      });
      header.encode();
      const padded = Buffer.alloc(Math.ceil(Buffer.byteLength(body) / 512) * 512);
      padded.write(body);
      return [header.block ?? Buffer.alloc(0), padded];
    });
    return Buffer.concat([...blocks, Buffer.alloc(1024)]);
  }

  async function fetched(
    layers: readonly Buffer[],
    limits = {},
  ): Promise<{ failure: SourceFailure | null; message: string; folder: string; outer: string }> {
    const content = artifact("name: x", layers);
    const source = await serveContent([content]);
    const outer = temporaryFolder();
    const folder = join(outer, "into");
    execFileSync("mkdir", [folder]);
    const work = sourceAt(source.url, { limits }).fetch(repository, content.digest, folder, never);
    const failed = await work.then(
      () => null,
      () => failureOf(work),
    );
    return { failure: failed?.failure ?? null, message: failed?.message ?? "", folder, outer };
  }

  const evil: Readonly<Record<string, readonly Entry[]>> = {
    "an absolute name": [{ path: "/tmp/osbert-evil", body: "x" }],
    "a name that leads up": [{ path: "../evil", body: "x" }],
    "a name that leads up from inside": [{ path: "a/../../evil", body: "x" }],
    "a link to an absolute name": [{ path: "link", type: "SymbolicLink", linkpath: "/etc/passwd", size: 0 }],
    "a link that leads up": [{ path: "link", type: "SymbolicLink", linkpath: "../evil", size: 0 }],
    "a file through a link": [
      { path: "link", type: "SymbolicLink", linkpath: "..", size: 0 },
      { path: "link/evil", body: "x" },
    ],
    "links through links": [
      { path: "a/b/c/up", type: "SymbolicLink", linkpath: "../../..", size: 0 },
      { path: "a/b/c/out", type: "SymbolicLink", linkpath: "up/../evil", size: 0 },
    ],
    "a file through links that each seem to stay": [
      { path: "a/up", type: "SymbolicLink", linkpath: "..", size: 0 },
      { path: "x", type: "SymbolicLink", linkpath: "a/up/..", size: 0 },
      { path: "x/evil", body: "x" },
    ],
    "a hard link": [{ path: "link", type: "Link", linkpath: "/etc/passwd", size: 0 }],
    "a device": [{ path: "device", type: "CharacterDevice", size: 0 }],
    "a pipe": [{ path: "pipe", type: "FIFO", size: 0 }],
    "a deep name": [
      { path: `${"d/".repeat(40)}${"e/".repeat(40)}x`.slice(-99), body: "x" },
      { path: "../x", body: "x" },
    ],
  };

  for (const [name, entries] of Object.entries(evil)) {
    test(`${name} is refused, nothing is outside, and the folder is empty again`, async () => {
      const { failure, folder, outer } = await fetched([gzipSync(tar([{ path: "good", body: "x" }, ...entries]))]);
      expect(failure).toBe("malformed");
      expect(readdirSync(folder)).toEqual([]);
      expect(readdirSync(outer)).toEqual(["into"]);
    });
  }

  test("links that stay inside are kept, and modes that give rights are not", async () => {
    const { failure, folder } = await fetched([
      gzipSync(
        tar([
          { path: "bin/run", body: "#!/bin/sh\n", mode: 0o4777 },
          { path: "run", type: "SymbolicLink", linkpath: "bin/run", size: 0 },
          { path: "bin/again", type: "SymbolicLink", linkpath: "../run", size: 0 },
          { path: "closed", body: "x", mode: 0 },
        ]),
      ),
    ]);
    expect(failure).toBeNull();
    expect(lstatSync(join(folder, "bin/run")).mode & 0o7777).toBe(0o755);
    expect(lstatSync(join(folder, "closed")).mode & 0o7777).toBe(0o644);
    expect(lstatSync(join(folder, "bin/again")).isSymbolicLink()).toBe(true);
  });

  test("a bomb, too many files, too many layers and half an archive are refused", async () => {
    const bomb = gzipSync(
      Buffer.concat([tar([{ path: "zeros", size: 50_000_000 }]).subarray(0, 512), Buffer.alloc(50_000_000)]),
    );
    expect(bomb.length).toBeLessThan(100_000);
    expect(await fetched([bomb], { filesBytes: 1_000_000 })).toMatchObject({ failure: "too large" });
    const files = gzipSync(tar(Array.from({ length: 50 }, (_, at) => ({ path: `f${at}`, body: "x" }))));
    expect(await fetched([files], { files: 49 })).toMatchObject({
      failure: "too large",
    });
    expect(await fetched([files, files], { layers: 1 })).toMatchObject({ failure: "too large" });
    expect(await fetched([files, files], { files: 60 })).toMatchObject({
      failure: "too large",
    });
    expect(await fetched([files], { layerBytes: 10 })).toMatchObject({ failure: "too large" });
    expect(await fetched([files.subarray(0, 100)])).toMatchObject({ failure: "malformed" });
    // An archive in an archive: what counts sees the outer one alone.
    const inner = gzipSync(tar([{ path: "large", body: "x".repeat(5_000_000) }]), { level: 1 });
    expect(await fetched([gzipSync(inner)], { filesBytes: 1_000_000 })).toMatchObject({ failure: "malformed" });
    expect(await fetched([gzipSync(bomb)], { filesBytes: 1_000_000 })).toMatchObject({ failure: "malformed" });
    expect(await fetched([Buffer.from("no archive")])).toMatchObject({ failure: "malformed" });
    expect(await fetched([gzipSync(Buffer.from("x".repeat(2_000)))])).toMatchObject({ failure: "malformed" });
  });

  test("a layer that is not what its digest says leaves nothing behind", async () => {
    const layer = gzipSync(tar([{ path: "good", body: "x" }]));
    const content = artifact("name: x", [layer]);
    const other = gzipSync(tar([{ path: "evil", body: "y" }]));
    for (const lie of [other, Buffer.concat([layer, layer]), layer.subarray(0, -1)]) {
      const source = await serveContent([content], (request, response) => {
        if (request.url?.endsWith(digestOf(layer)) !== true) return false;
        response.end(lie);
        return true;
      });
      const folder = temporaryFolder();
      const failed = await failureOf(sourceAt(source.url).fetch(repository, content.digest, folder, never));
      expect(["digest mismatch", "malformed"]).toContain(failed.failure);
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  test("a layer that comes byte by byte ends in its time, and who calls it off is not kept waiting", async () => {
    const layer = gzipSync(tar([{ path: "good", body: "x" }]));
    const content = artifact("name: x", [layer]);
    const controller = new AbortController();
    const source = await serveContent([content], (request, response) => {
      if (request.url?.endsWith(digestOf(layer)) !== true) return false;
      response.writeHead(200).write(layer.subarray(0, 20));
      if (source.seen.length > 3) controller.abort(new Error("enough"));
      return true;
    });
    const folder = temporaryFolder();
    expect(
      (
        await failureOf(
          sourceAt(source.url, { limits: { layerMs: 300 } }).fetch(repository, content.digest, folder, never),
        )
      ).failure,
    ).toBe("timeout");
    await expect(sourceAt(source.url).fetch(repository, content.digest, folder, controller.signal)).rejects.toThrow(
      "enough",
    );
    expect(readdirSync(folder)).toEqual([]);
  });
});
