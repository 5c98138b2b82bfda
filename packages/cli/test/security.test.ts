import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { hashPassword } from "@osbert/broker/http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { generate } from "selfsigned";
import { beforeAll, expect, test } from "vitest";
import { answersAt, ask, folderWith, run, servicesModule, start } from "./program.js";

const base = `module: ${servicesModule}\nlisten: { port: 0 }\nstore: 'memory:'\n`;

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

async function certificate(name: string, ca?: Certificate, isAuthority = false): Promise<Certificate> {
  const made = await generate([{ name: "commonName", value: name }], {
    algorithm: "sha256",
    keyType: "ec",
    ...(ca !== undefined && { ca }),
    extensions: isAuthority
      ? [
          { name: "basicConstraints", cA: true, critical: true },
          { name: "keyUsage", keyCertSign: true, digitalSignature: true, critical: true },
        ]
      : [{ name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] }],
  });
  return { cert: made.cert, key: made.private };
}

let authority: Certificate;
let first: Certificate;
let second: Certificate;
let client: Certificate;
beforeAll(async () => {
  authority = await certificate("Authority", undefined, true);
  [first, second, client] = (await Promise.all(
    ["first", "second", "platform"].map((name) => certificate(name, authority)),
  )) as [Certificate, Certificate, Certificate];
});

/** Asks over TLS; tells the status and the name of the server's certificate. */
function askTls(url: string, { from, credential }: { readonly from?: Certificate; readonly credential?: string }) {
  return new Promise<{ readonly status: number; readonly server: string }>((resolve, reject) => {
    const request = httpsRequest(
      `${url}/v2/catalog`,
      {
        ca: authority.cert,
        agent: false,
        ...from,
        headers: { "x-broker-api-version": "2.17", ...(credential && { authorization: `Basic ${btoa(credential)}` }) },
      },
      (response) => {
        const server = (response.socket as import("node:tls").TLSSocket).getPeerCertificate().subject.CN as string;
        response.resume().on("end", () => resolve({ status: response.statusCode ?? 0, server }));
      },
    );
    request.on("error", reject).end();
  });
}

test("TLS, certificates of clients and hashed passwords; a renewed certificate is taken by a reload", async () => {
  const yaml = `${base}tls:
  certificate: tls.crt
  key: { file: tls.key }
  clientAuthority: ca.crt
  clients: [{ subject: CN=platform, name: cloud }]
credentials:
  - username: a
    passwordHash: ${await hashPassword("b", { ln: 10, r: 8, p: 1 })}
`;
  const cwd = folderWith({
    "osbert.yaml": yaml,
    "tls.crt": first.cert,
    "tls.key": first.key,
    "ca.crt": authority.cert,
  });
  const broker = start(["serve"], { cwd });
  const url = await answersAt(broker);
  expect(url).toMatch(/^https:/);
  expect(await askTls(url, { from: client })).toEqual({ status: 200, server: "first" });
  expect(await askTls(url, { credential: "a:b" })).toEqual({ status: 200, server: "first" });
  expect(await askTls(url, { credential: "a:c" })).toMatchObject({ status: 401 });
  expect(await askTls(url, {})).toMatchObject({ status: 401 });

  // The two files are written one after the other, as programs do that renew them: in between they do not belong together.
  writeFileSync(join(cwd, "tls.crt"), second.cert);
  broker.signal("SIGHUP");
  await broker.says(/not reloaded .*osbert.yaml:5:16 tls.certificate: cannot be used with tls.key: /);
  expect(await askTls(url, { from: client })).toEqual({ status: 200, server: "first" });
  writeFileSync(join(cwd, "tls.key"), second.key);
  await broker.says(/info {2}reloaded \(a file changed\): changed tls.certificate, tls.key/);
  expect(await askTls(url, { from: client })).toEqual({ status: 200, server: "second" });

  writeFileSync(join(cwd, "osbert.yaml"), `${base}credentials: [{ username: a, password: b }]\n`);
  await broker.says(/not reloaded .*TLS can be turned on or off by a restart alone/);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
  expect(broker.stdout() + broker.stderr()).not.toContain("PRIVATE KEY");
});

test("credentials are exchanged by a reload, and never all taken away", async () => {
  const yaml = (list: string) => `${base}reload: { watch: false }\ncredentials: [${list}]\n`;
  const cwd = folderWith({ "osbert.yaml": yaml("{ username: a, password: old }") });
  const broker = start(["serve"], { cwd });
  const url = await answersAt(broker);
  const statuses = async () => [
    (await ask(url, "GET", "/v2/catalog", { credential: "a:old" })).status,
    (await ask(url, "GET", "/v2/catalog", { credential: "b:new" })).status,
  ];
  const reload = async (text: string, says: RegExp) => {
    writeFileSync(join(cwd, "osbert.yaml"), text);
    broker.signal("SIGHUP");
    await broker.says(says);
  };
  expect(await statuses()).toEqual([200, 401]);
  await reload(yaml("{ username: a, password: old }, { username: b, password: new }"), /changed credentials\[1\]/);
  expect(await statuses()).toEqual([200, 200]);
  await reload(yaml("{ username: b, password: new }"), /changed credentials\[0\]/);
  expect(await statuses()).toEqual([401, 200]);
  await reload(`${base}reload: { watch: false }\n`, /not reloaded .*nobody could ask any more/);
  await reload(
    yaml("{ username: b, passwordHash: $scrypt$ln=1 }"),
    /not reloaded .*osbert.yaml:5:15 credentials\[0\]: a passwordHash must look/,
  );
  expect(await statuses()).toEqual([401, 200]);
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
  for (const secret of ["old", "new"]) expect(broker.stderr()).not.toMatch(new RegExp(`\\b${secret}\\b`));
});

test("bearer tokens of an issuer are taken", async () => {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" }] });
  const server: Server = createServer((_request, response) => response.end(keys)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const jwks = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const yaml = `${base}tokens: [{ issuer: "https://login.example", audience: osbert, jwks: "${jwks}", scopes: [use] }]\n`;
  const broker = start(["serve"], { cwd: folderWith({ "osbert.yaml": yaml }) });
  const url = await answersAt(broker);
  const statusWith = async (scope: string) => {
    const token = await new SignJWT({ scope })
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setIssuer("https://login.example")
      .setAudience("osbert")
      .setSubject("cf")
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(privateKey);
    const headers = { authorization: `Bearer ${token}`, "x-broker-api-version": "2.17", connection: "close" };
    return (await fetch(`${url}/v2/catalog`, { headers })).status;
  };
  expect([await statusWith("use"), await statusWith("other")]).toEqual([200, 401]);
  server.close();
  broker.signal("SIGTERM");
  expect(await broker.ended).toBe(0);
});

test("a certificate that is none is told with its place, and nothing of the key", async () => {
  const yaml = `${base}tls: { certificate: tls.crt, key: { file: tls.key } }\n`;
  const cwd = folderWith({ "osbert.yaml": yaml, "tls.crt": "hunter2", "tls.key": first.key });
  const { status, stderr } = await run(["serve"], { cwd });
  expect(stderr).toMatch(/^osbert.yaml:4:21 tls.certificate: cannot be used with tls.key: [^\n]*\n$/);
  expect(stderr).not.toContain("hunter2");
  expect(status).toBe(2);
});

test("a file that should hold the made credential and does not is told, not replaced", async () => {
  const cwd = folderWith({ "osbert.yaml": `${base}data: .\n`, "credential.json": "{}" });
  const { status, stderr } = await run(["serve"], { cwd });
  expect(stderr).toBe(
    `${join(cwd, "credential.json")} does not hold a credential; remove it, and another one is made\n`,
  );
  expect(status).toBe(1);
  expect(readFileSync(join(cwd, "credential.json"), "utf8")).toBe("{}");
});
