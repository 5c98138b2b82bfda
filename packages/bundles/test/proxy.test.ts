import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findProxy, WrongProxy } from "../src/sources/find-proxy.js";
import { digestOf, failureOf, never, repositoriesOf, sourceAt, temporaryFolder } from "./registry-lab.js";

// A real proxy on loopback, and names that only it knows: what reaches a registry has come through it.

const proxyOf = (environment: Readonly<Record<string, string>>) => {
  const find = findProxy((name) => environment[name]);
  return (url: string) => find(new URL(url));
};

describe("which proxy", () => {
  test("a scheme has its own, lower case counts first, and without any there is none", () => {
    const proxies = proxyOf({ HTTPS_PROXY: "http://one.example:3128", http_proxy: "two.example", HTTP_PROXY: "three" });
    expect(proxies("https://registry.example")).toMatchObject({ hostname: "one.example", port: 3_128, isTls: false });
    expect(proxies("http://registry.example")).toMatchObject({ hostname: "two.example", port: 80 });
    expect(proxyOf({ HTTPS_PROXY: " " })("https://registry.example")).toBeNull();
    expect(proxyOf({})("http://registry.example")).toBeNull();
  });

  test("its login is for it alone, and is shown nowhere", () => {
    const proxy = proxyOf({ https_proxy: "https://me:p%40ss@proxy.example" })("https://registry.example");
    expect(proxy).toMatchObject({ isTls: true, port: 443, shown: "proxy.example:443" });
    expect(proxy?.authorization).toBe(`Basic ${Buffer.from("me:p@ss").toString("base64")}`);
    for (const wrong of ["socks5://me:s3cret@proxy.example", "http://", "http://me:%zz@s3cret.example"]) {
      const find = () => proxyOf({ HTTPS_PROXY: wrong })("https://registry.example");
      expect(find).toThrow(WrongProxy);
      expect(find).toThrow(/HTTPS_PROXY/);
      expect(find).not.toThrow(/s3cret/);
    }
  });

  test.each([
    ["registry.example", "https://registry.example", true],
    ["registry.example", "https://eu.registry.example", true],
    ["registry.example", "https://myregistry.example", false],
    [".example", "https://registry.example", true],
    ["*.example", "https://registry.example", true],
    ["registry.example:5000", "https://registry.example:5000", true],
    ["registry.example:5000", "https://registry.example", false],
    ["registry.example:443", "https://registry.example", true],
    ["other.example, REGISTRY.example", "https://registry.example.", true],
    ["*", "https://registry.example", true],
    ["10.0.0.0/8", "https://10.1.2.3", true],
    ["10.0.0.0/8", "https://11.1.2.3", false],
    ["10.1.2.3", "https://10.1.2.3:5000", true],
    ["fd00::/8", "https://[fd12::1]", true],
    ["[fd12::1]:5000", "https://[fd12::1]:5000", true],
    ["10.0.0.0/99, 10.0.0.0/x, :, ., ,", "https://10.1.2.3", false],
    ["", "https://127.0.0.1:5000", true],
    ["", "http://[::1]:5000", true],
    ["", "https://localhost", true],
    ["", "https://registry.example", false],
  ])("with NO_PROXY %j, %s goes without: %s", (no, url, isDirect) => {
    const proxies = proxyOf({ https_proxy: "proxy.example", http_proxy: "proxy.example", NO_PROXY: no });
    expect(proxies(url) === null).toBe(isDirect);
  });
});

/** What a proxy has seen: its requests as they came. */
interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
}

/** Knows `registry.example` as the server at a port of this machine. */
async function startProxy(registryPort: number, { login }: { readonly login?: string } = {}) {
  const seen: Seen[] = [];
  const isLetIn = ({ headers }: IncomingMessage) =>
    login === undefined || headers["proxy-authorization"] === `Basic ${Buffer.from(login).toString("base64")}`;
  const server = createServer((asked, answer) => {
    seen.push({ method: asked.method ?? "", url: asked.url ?? "", headers: asked.headers });
    if (!isLetIn(asked)) return void answer.writeHead(407).end();
    const { pathname, search } = new URL(asked.url ?? "");
    const { "proxy-authorization": _, ...headers } = asked.headers;
    const on = request({ host: "127.0.0.1", port: registryPort, path: `${pathname}${search}`, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 0, got.headers);
      got.pipe(answer);
    });
    on.end();
  });
  server.on("connect", (asked, client) => {
    seen.push({ method: asked.method ?? "", url: asked.url ?? "", headers: asked.headers });
    if (!isLetIn(asked)) return void client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    if (!asked.url?.startsWith("registry.example:")) return void client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    const on = connect(registryPort, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      on.pipe(client).pipe(on);
    });
    on.on("error", () => client.destroy());
    client.on("error", () => on.destroy());
  });
  return { seen, port: await listening(server) };
}

async function listening(server: Server): Promise<number> {
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A registry that wants a login, and remembers what it was sent. */
function registry() {
  const seen: IncomingMessage["headers"][] = [];
  const answer = (asked: IncomingMessage, response: ServerResponse) => {
    seen.push(asked.headers);
    const isIn = asked.headers.authorization !== undefined;
    response.statusCode = isIn ? 200 : 401;
    response.setHeader("www-authenticate", "Basic realm=x");
    response.end(JSON.stringify({ repositories: ["team/one"] }));
  };
  return { seen, answer };
}

function certificate() {
  const folder = temporaryFolder();
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const to = ["-subj", "/CN=registry", "-addext", "subjectAltName=DNS:registry.example", "-keyout", key, "-out", cert];
  const kind = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", [...kind, ...to], { stdio: "ignore" });
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

const credentials = { kind: "basic", username: "reader", password: "s3cret" } as const;

async function startTls(login?: string) {
  const { key, cert } = certificate();
  const { seen, answer } = registry();
  const port = await listening(createTlsServer({ key, cert }, answer));
  const proxy = await startProxy(port, login === undefined ? {} : { login });
  const source = (address: string, ca: string | null = cert) =>
    sourceAt("https://registry.example", {
      ...{ credentials, tls: { ca, verify: true } },
      findProxy: findProxy((name) => (name === "HTTPS_PROXY" ? address : undefined)),
    });
  return { seen, proxy, source };
}

test("a registry behind a proxy is read through a tunnel, whose proxy learns host and port and nothing else", async () => {
  const { seen, proxy, source } = await startTls();
  const behind = source(`http://127.0.0.1:${proxy.port}`);
  expect(await repositoriesOf(behind)).toEqual(["team/one"]);
  expect(seen.at(-1)?.authorization).toMatch(/^Basic /);
  expect(seen.some((headers) => headers["proxy-authorization"] !== undefined)).toBe(false);
  // Tunnels are used again, and nothing stands in what opens them that is the source's.
  for (let probe = 0; probe < 5; probe++) await behind.probe(never);
  expect(proxy.seen.length).toBeLessThanOrEqual(2);
  for (const asked of proxy.seen)
    expect(asked).toEqual({
      ...{ method: "CONNECT", url: "registry.example:443" },
      headers: { host: "registry.example:443", connection: "close" },
    });
});

test("the certificate is the registry's: a proxy cannot stand in for it", async () => {
  const { proxy, source } = await startTls();
  expect((await failureOf(source(`127.0.0.1:${proxy.port}`, null).probe(never))).failure).toBe("tls");
});

test("a proxy that wants a login gets its own, and the registry does not", async () => {
  const { seen, proxy, source } = await startTls("me:p@ss");
  expect(await repositoriesOf(source(`http://me:p%40ss@127.0.0.1:${proxy.port}`))).toEqual(["team/one"]);
  expect(seen.some((headers) => headers["proxy-authorization"] !== undefined)).toBe(false);
  const refused = await failureOf(source(`http://me:wrong@127.0.0.1:${proxy.port}`).probe(never));
  expect([refused.failure, refused.message]).toEqual([
    "unreachable",
    expect.stringContaining("wants other credentials"),
  ]);
  expect(refused.message).not.toContain("wrong");
});

test("a proxy that is down, refuses, or is none, is told as such, and never its password", async () => {
  const { proxy, source } = await startTls();
  const down = await failureOf(source("http://me:s3cret@127.0.0.1:1").probe(never));
  expect([down.failure, down.message]).toEqual([
    "unreachable",
    expect.stringContaining("the proxy 127.0.0.1:1 cannot be reached (ECONNREFUSED)"),
  ]);
  const wrong = await failureOf(source("socks5://me:s3cret@127.0.0.1:1").probe(never));
  expect([wrong.failure, wrong.message]).toEqual(["unreachable", expect.stringContaining("HTTPS_PROXY must be")]);
  for (const { message } of [down, wrong]) expect(message).not.toContain("s3cret");
  const elsewhere = sourceAt("https://other.example", { findProxy: findProxy(() => `http://127.0.0.1:${proxy.port}`) });
  // NO_PROXY is the same text here, and names no host.
  const refused = await failureOf(elsewhere.probe(never));
  expect([refused.failure, refused.message]).toEqual(["unreachable", expect.stringContaining("status 403")]);
});

test("over plain http a proxy is asked for the whole address, and no credential of the source is sent through it", async () => {
  const open = createServer((_, response) => void response.end(JSON.stringify({ repositories: ["team/two"] })));
  const proxy = await startProxy(await listening(open), { login: "me:pass" });
  const proxies = findProxy((name) => (name === "http_proxy" ? `http://me:pass@127.0.0.1:${proxy.port}` : undefined));
  expect(await repositoriesOf(sourceAt("http://registry.example:5000", { findProxy: proxies }))).toEqual(["team/two"]);
  expect(proxy.seen.at(-1)).toMatchObject({
    ...{ method: "GET", url: "http://registry.example:5000/v2/_catalog?n=100" },
    headers: { host: "registry.example:5000" },
  });
  const { answer } = registry();
  const asking = await startProxy(await listening(createServer(answer)));
  const through = findProxy((name) => (name === "http_proxy" ? `http://127.0.0.1:${asking.port}` : undefined));
  const refused = await failureOf(
    sourceAt("http://registry.example", { credentials, findProxy: through }).probe(never),
  );
  expect([refused.failure, refused.message]).toEqual([
    "foreign host",
    expect.stringContaining("would read the credentials; use https, or put registry.example into NO_PROXY"),
  ]);
  expect(asking.seen.some(({ headers }) => headers.authorization !== undefined)).toBe(false);
});

test("a server behind a proxy does not lead to an address that is nearer than the Internet", async () => {
  const blob = `sha256:${"0a".repeat(32)}` as const;
  const manifest = JSON.stringify({
    ...{ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", layers: [] },
    config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: blob, size: 2 },
  });
  const { key, cert } = certificate();
  for (const target of ["https://10.0.0.1/blob", "https://127.0.0.1/blob", "https://localhost/blob"]) {
    const server = createTlsServer({ key, cert }, (asked, response) => {
      if (asked.url?.includes("/blobs/")) return void response.writeHead(307, { location: target }).end();
      response.end(manifest);
    });
    const proxy = await startProxy(await listening(server));
    const source = sourceAt("https://registry.example", {
      tls: { ca: cert, verify: true },
      findProxy: findProxy((name) => (name === "HTTPS_PROXY" ? `127.0.0.1:${proxy.port}` : undefined)),
    });
    const { failure } = await failureOf(source.read("team/one", digestOf(manifest), never));
    expect([target, failure]).toEqual([target, "foreign host"]);
    expect(proxy.seen.every(({ url }) => url === "registry.example:443")).toBe(true);
  }
});

test("a request that is called off while its tunnel is opened ends at once", async () => {
  const silent = createServer();
  silent.on("connect", () => undefined);
  const port = await listening(silent);
  const source = sourceAt("https://registry.example", {
    findProxy: findProxy((name) => (name === "HTTPS_PROXY" ? `127.0.0.1:${port}` : undefined)),
    limits: { requestMs: 200 },
  });
  expect((await failureOf(source.probe(never))).failure).toBe("timeout");
});
